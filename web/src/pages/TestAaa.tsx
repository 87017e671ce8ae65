import { useState } from 'preact/hooks';
import { detail, post } from '../api';
import { Button, Notice } from '../parts/basics';
import { Table } from '../parts/Table';
import { rows, text, type Row } from '../row';

/** Asks AAA about a user as a session would. No session begins. */
export function TestAaa() {
  const [answer, setAnswer] = useState<Row | null>(null);
  const [refused, setRefused] = useState('');
  const test = async (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const typed = (name: string) => String(form.get(name) ?? '');
    const profile = typed('access-profile').trim();
    const asked = { user: typed('user'), password: typed('password'), ...(profile && { 'access-profile': profile }) };
    setAnswer(null);
    try {
      setAnswer(await post<Row>('actions/test-aaa', asked));
      setRefused('');
    } catch (error) {
      setRefused(detail(error));
    }
  };
  return (
    <section aria-labelledby="test-aaa">
      <h2 id="test-aaa">Test a user</h2>
      <p>The servers of the access profile, or the local users, are asked as for a session. No session begins, and nothing is accounted.</p>
      <form class="row" onSubmit={(event) => void test(event)}>
        <label>User <input name="user" class="names" required autocomplete="off" /></label>
        <label>Password <input name="password" type="password" autocomplete="off" /></label>
        <label>Access profile, if there are several <input name="access-profile" autocomplete="off" /></label>
        <Button needs="operate" kind="main" type="submit">Ask</Button>
      </form>
      {refused && <Notice kind="bad">{refused}</Notice>}
      {answer && <Answer answer={answer} />}
    </section>
  );
}

function Answer({ answer }: { answer: Row }) {
  const accepted = answer['accepted'] === true;
  const reply = text(answer, 'reply');
  return (
    <>
      <Notice kind={accepted ? 'good' : 'bad'}>
        <p>{`${accepted ? 'Accepted' : `Not accepted: ${text(answer, 'reason')}`} (asked: ${text(answer, 'asked')}).`}</p>
        {reply && <p>{`The subscriber is told "${reply}".`}</p>}
      </Notice>
      <Table
        caption="What a session would get, and what has no effect"
        empty="The answer has no values."
        rows={rows(answer, 'results')}
        views={[{ field: 'name', label: 'Name' }, { field: 'value', label: 'Value' }, { field: 'origin', label: 'From' }]}
      />
    </>
  );
}
