import { useState } from 'preact/hooks';
import { detail, post } from '../api';
import { moment, plural } from '../format';
import { Badge, Button, Dialog, Notice } from '../parts/basics';
import { isAcknowledged } from '../derive';
import { number, text, type Row } from '../row';

/** The most characters of a comment that the API takes. */
const MOST_COMMENT = 1000;

/** Raised alarms: those that nobody has acknowledged, and apart from them the others. */
export function Alarms({ alarms }: { alarms: Row[] }) {
  if (alarms.length === 0) return <Notice kind="good">No alarm is raised.</Notice>;
  const open = alarms.filter((alarm) => !isAcknowledged(alarm));
  const known = alarms.filter(isAcknowledged);
  return (
    <>
      {open.length > 0 && <Part id="alarms" title={plural(open.length, 'alarm')} alarms={open} />}
      {known.length > 0 && <Part id="acknowledged" title={`${plural(known.length, 'acknowledged alarm')}`} alarms={known} />}
    </>
  );
}

function Part({ id, title, alarms }: { id: string; title: string; alarms: Row[] }) {
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {alarms.map((alarm) => <Alarm key={`${text(alarm, 'name')} ${text(alarm, 'resource')}`} alarm={alarm} />)}
    </section>
  );
}

function Alarm({ alarm }: { alarm: Row }) {
  const known = isAcknowledged(alarm);
  return (
    <div class={known ? 'notice known' : 'notice bad'}>
      <Badge word={text(alarm, 'severity')} /> <strong>{text(alarm, 'name')}</strong>{` ${text(alarm, 'resource')}`}
      <p>{text(alarm, 'text')}</p>
      <small>{`since ${moment(number(alarm, 'raised_at') ?? 0)} UTC`}</small>
      {known ? <Known alarm={alarm} /> : <Acknowledge alarm={alarm} />}
    </div>
  );
}

/** Who has acknowledged it when, and what that person says. */
function Known({ alarm }: { alarm: Row }) {
  const comment = text(alarm, 'acknowledged.comment');
  const at = moment(number(alarm, 'acknowledged.at') ?? 0);
  return <p>{`Acknowledged by ${text(alarm, 'acknowledged.by')} at ${at} UTC${comment && `: ${comment}`}`}</p>;
}

function Acknowledge({ alarm }: { alarm: Row }) {
  const [asking, setAsking] = useState(false);
  const [refused, setRefused] = useState('');
  const [name, resource] = [text(alarm, 'name'), text(alarm, 'resource')];
  const close = () => {
    setAsking(false);
    setRefused('');
  };
  const acknowledge = async (event: Event) => {
    event.preventDefault();
    const comment = String(new FormData(event.currentTarget as HTMLFormElement).get('comment') ?? '').trim();
    try {
      await post('actions/acknowledge-alarm', { alarm: name, resource, comment });
      close();
    } catch (error) {
      setRefused(detail(error));
    }
  };
  return (
    <div class="actions">
      <Button needs="operate" onClick={() => setAsking(true)}>
        Acknowledge… <span class="unseen">{`${name} ${resource}`}</span>
      </Button>
      {asking && (
        <Dialog title={`Acknowledge ${name} ${resource}`} close={close}>
          <form onSubmit={(event) => void acknowledge(event)}>
            <p>{text(alarm, 'text')}</p>
            <label>Comment <textarea name="comment" rows={3} maxLength={MOST_COMMENT} /></label>
            <p>It stays acknowledged until it is cleared.</p>
            {refused && <div class="notice bad" role="alert">{refused}</div>}
            <div class="actions">
              <Button kind="main" needs="operate" type="submit">Acknowledge</Button>
              <Button onClick={close}>Cancel</Button>
            </div>
          </form>
        </Dialog>
      )}
    </div>
  );
}
