import { useState } from 'preact/hooks';
import { get } from '../api';
import { Button, ErrorBox, Loading } from '../parts/basics';
import { usePoll } from '../poll';
import { texts, type Row } from '../row';

/** Why a subscriber is online or not, and where its packets go. It is asked only when somebody wants to know. */
export function Explain({ subscriber, open = false }: { subscriber: string; open?: boolean }) {
  const [wanted, setWanted] = useState(open);
  const answer = usePoll(wanted ? `explain ${subscriber}` : null, (signal) => get<Row>('explain', { subscriber }, signal));
  return (
    <section aria-labelledby="explain">
      <h2 id="explain">Explanation</h2>
      {!wanted && <Button needs="support" onClick={() => setWanted(true)}>Explain</Button>}
      {answer.error && <ErrorBox error={answer.error} retry={answer.refresh} />}
      {wanted && !answer.data && !answer.error && <Loading />}
      {answer.data && (
        <>
          <ul class="list">{texts(answer.data, 'sentences').map((one) => <li key={one}>{one}</li>)}</ul>
          <Button onClick={answer.refresh}>Explain again</Button>
        </>
      )}
    </section>
  );
}
