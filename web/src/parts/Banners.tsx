import { useEffect, useState } from 'preact/hooks';
import { detail, get, lost, post, serverNow, type Page } from '../api';
import { isAcknowledged } from '../derive';
import { plural, span } from '../format';
import { usePoll } from '../poll';
import { number, text } from '../row';
import { live } from '../stream';
import { useStore } from '../store';
import { changed, tellChange } from '../versions';
import { Button } from './basics';

/** Says that the gateway does not answer. What is shown meanwhile is old. */
export function Lost() {
  const why = useStore(lost);
  if (why === null) return null;
  return <div class="banner bad" role="alert">{`The connection is lost: what is shown may be old. It is tried again. ${why}`}</div>;
}

/** Counts down while a version waits for its confirmation, whoever committed it. */
export function Unconfirmed() {
  const change = useStore(changed);
  const answer = usePoll('unconfirmed', (signal) => get<Page>('versions', { limit: 1000 }, signal), 10, change);
  const [, tick] = useState(0);
  const [error, setError] = useState('');
  const waits = answer.data?.rows.find((version) => typeof version['confirm_by'] === 'number');
  const waiting = waits !== undefined;
  useEffect(() => {
    setError('');
    if (!waiting) return;
    const timer = setInterval(() => tick((now) => now + 1), 1000);
    return () => clearInterval(timer);
  }, [waiting]);
  if (!waits) return null;
  const left = Math.ceil((number(waits, 'confirm_by') ?? 0) - serverNow());
  const confirm = async () => {
    try {
      await post('configuration/confirm');
      tellChange();
    } catch (problem) {
      setError(detail(problem));
    }
  };
  return (
    <div class="banner warn" role="region" aria-label="A version waits for its confirmation">
      <span>
        {`Version ${text(waits, 'version')} of ${text(waits, 'by')} waits for its confirmation. `}
        {left > 0 ? `The version before comes back in ${span(left)}.` : 'The version before comes back now.'}
      </span>
      <Button needs="configure" kind="main" onClick={() => void confirm()}>Confirm</Button>
      {error && <span role="alert">{error}</span>}
    </div>
  );
}

/** Tells alarms that are raised or cleared to whoever cannot see the page. */
export function AlarmTeller() {
  const alarms = useStore(live).state?.alarms ?? [];
  const names = alarms.map((alarm) =>
    `${text(alarm, 'severity')}: ${text(alarm, 'name')} ${text(alarm, 'resource')}${isAcknowledged(alarm) ? ' (acknowledged)' : ''}`);
  return (
    <div class="unseen" aria-live="polite">
      {alarms.length > 0 ? `${plural(alarms.length, 'alarm')}: ${names.join('; ')}` : 'No alarm is raised.'}
    </div>
  );
}

export function AlarmCount() {
  const alarms = useStore(live).state?.alarms ?? [];
  if (alarms.length === 0) return null;
  const open = alarms.filter((alarm) => !isAcknowledged(alarm)).length;
  const [kind, told] = open > 0 ? ['bad', plural(open, 'alarm')] : ['note', `${alarms.length} acknowledged`];
  return <a class={`badge ${kind}`} href="#/events/alarms">{told}</a>;
}
