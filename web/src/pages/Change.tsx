import { useEffect, useState } from 'preact/hooks';
import { detail, post, Problem, type Fault } from '../api';
import { plural } from '../format';
import { Button, ErrorBox, Notice } from '../parts/basics';
import { Diff } from '../parts/Diff';
import type { Json } from '../row';
import { setLines } from '../setlines';
import { tellChange } from '../versions';

/** A change, as the API takes it. */
export type Order = { edits: string[]; base: number } | { version: number };

interface Effect {
  text: string;
  sessions: number;
  ends: boolean;
}

interface Checked {
  /** What was checked. Another change has to be checked again. */
  order: string;
  faults: Fault[];
  effects: Effect[];
  tree: Json;
}

interface Committed {
  version: number;
  effects: Effect[];
  pending: string[];
}

/** Seconds to choose from, within which a commit has to be confirmed. */
const TERMS: [seconds: number, name: string][] = [[0, 'no confirmation is needed'], [60, '1 minute'], [300, '5 minutes'], [600, '10 minutes'], [3600, '1 hour']];

interface ChangeProps {
  change: Order | null;
  /** The configuration before it. */
  before: Json;
  done: () => void;
}

/** Checks a change, and commits it once it is clear what it does to whom. */
export function Change({ change, before, done }: ChangeProps) {
  const [checked, setChecked] = useState<Checked | null>(null);
  const [committed, setCommitted] = useState<Committed | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const order = JSON.stringify(change);
  useEffect(() => setError(null), [order]);
  useEffect(() => {
    if (change) setCommitted(null);
  }, [order]);
  const run = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem instanceof Problem ? problem : new Error(detail(problem)));
    }
    setBusy(false);
  };
  const check = () => run(async () => {
    const would = await post<Omit<Checked, 'order'>>('configuration/check', change);
    setChecked({ ...would, order });
  });
  const commit = (how: How) => run(async () => {
    const result = await post<Committed>('configuration/commit', { ...change, ...how });
    setCommitted(result);
    setChecked(null);
    done();
    tellChange();
  });
  const own = checked?.order === order ? checked : null;
  return (
    <>
      <div class="actions">
        <Button needs="configure" kind="main" disabled={busy || !change} onClick={() => void check()}>Check</Button>
        {!own && change && <small>A check changes nothing. The commit comes after it.</small>}
      </div>
      <div aria-live="polite">
        {error && <ErrorBox error={error} />}
        {committed && <Done committed={committed} />}
        {own && <Result checked={own} before={before} />}
      </div>
      {own && own.faults.length === 0 && <Commit key={order} effects={own.effects} busy={busy} commit={(how) => void commit(how)} />}
    </>
  );
}

function Result({ checked, before }: { checked: Checked; before: Json }) {
  if (checked.faults.length > 0) {
    return (
      <div class="notice bad">
        <p>{`${plural(checked.faults.length, 'fault')}: it cannot be committed.`}</p>
        <ul>
          {checked.faults.map((fault) => <li key={fault.path + fault.message}>{fault.path && <code>{fault.path}</code>} {fault.message}</li>)}
        </ul>
      </div>
    );
  }
  return (
    <>
      <Effects effects={checked.effects} />
      <h3>What changes</h3>
      <Diff label="What changes" before={setLines(before)} after={setLines(checked.tree)} />
    </>
  );
}

function Effects({ effects }: { effects: Effect[] }) {
  if (effects.length === 0) return <Notice kind="good">It has no effect on sessions or user planes.</Notice>;
  return (
    <div class={effects.some((effect) => effect.ends) ? 'notice warn' : 'notice note'}>
      <p>Effects:</p>
      <ul>
        {effects.map((effect) => (
          <li key={effect.text}>
            {effect.text}
            {effect.ends && <>{' '}<strong class="badge bad">ends sessions</strong></>}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Done({ committed }: { committed: Committed }) {
  return (
    <>
      <Notice kind="good">{`Version ${committed.version} is in force.`}</Notice>
      {committed.effects.length > 0 && <Effects effects={committed.effects} />}
      {committed.pending.length > 0 && <Notice kind="warn">{`Not there yet: ${committed.pending.join('; ')}`}</Notice>}
    </>
  );
}

interface How {
  comment: string;
  'confirm-within': number;
  'end-sessions': boolean;
}

function Commit({ effects, busy, commit }: { effects: Effect[]; busy: boolean; commit: (how: How) => void }) {
  const [how, setHow] = useState<How>({ comment: '', 'confirm-within': 0, 'end-sessions': false });
  const ends = effects.filter((effect) => effect.ends);
  const sessions = ends.reduce((all, effect) => all + effect.sessions, 0);
  const submit = (event: Event) => {
    event.preventDefault();
    commit(how);
  };
  return (
    <form onSubmit={submit}>
      <label>
        Why (comment)
        <input maxLength={1000} value={how.comment} onInput={(event) => setHow({ ...how, comment: event.currentTarget.value })} autocomplete="off" />
      </label>
      <label>
        To be confirmed within
        <select value={String(how['confirm-within'])} onChange={(event) => setHow({ ...how, 'confirm-within': Number(event.currentTarget.value) })}>
          {TERMS.map(([seconds, name]) => <option key={seconds} value={String(seconds)}>{name}</option>)}
        </select>
        <small>Without a confirmation in time, the version before comes back.</small>
      </label>
      {ends.length > 0 && (
        <label class="inline">
          <input type="checkbox" checked={how['end-sessions']} onChange={(event) => setHow({ ...how, 'end-sessions': event.currentTarget.checked })} />
          {` end ${plural(sessions, 'session')}`}
        </label>
      )}
      <div class="actions">
        <Button type="submit" needs="configure" kind={ends.length > 0 ? 'danger' : 'main'} disabled={busy || (ends.length > 0 && !how['end-sessions'])}>
          Commit
        </Button>
      </div>
    </form>
  );
}
