import { useState } from 'preact/hooks';
import { detail, get, post, serverNow, type Page } from '../api';
import { moment, plural, span } from '../format';
import { Button, Dialog, Facts, Notice } from '../parts/basics';
import { Table } from '../parts/Table';
import { usePoll } from '../poll';
import { number, text, type Row } from '../row';
import { useRefusal } from '../session';
import { Store, useStore } from '../store';
import { SESSION_VIEWS } from './views';

/** Sessions that are shown before many end. */
const SHOWN = 5;
/** Sessions that end in a second, at first and at most. */
const RATE = 100;
const MOST_RATE = 1000;
/** Seconds between two looks at how far a clear is, while one is under way and otherwise. */
const SOON = 1;
const LATER = 30;

/** Arguments that are numbers in a body; in an address all are texts. */
const NUMBERS = ['s-tag', 'c-tag'];

/** When this page has ordered a clear, in seconds since 1970: it is told until it is done, and then that it is. */
const ordered = new Store(Infinity);

interface Preview {
  matching: number;
  first: Row[];
}

/** Ends the sessions that a filter matches, after a look at how many they are. */
export function ClearSessions({ values }: { values: { [name: string]: string } }) {
  const [preview, setPreview] = useState<Preview | null>(null);
  const [refused, setRefused] = useState('');
  const close = () => {
    setPreview(null);
    setRefused('');
  };
  const look = async () => {
    try {
      const page = await get<Page>('sessions', { ...values, limit: SHOWN });
      setRefused('');
      setPreview({ matching: page.total ?? 0, first: page.rows });
    } catch (error) {
      setRefused(detail(error));
    }
  };
  const clear = async (event: Event) => {
    event.preventDefault();
    const rate = Number(new FormData(event.currentTarget as HTMLFormElement).get('rate'));
    const begun = Math.floor(serverNow()) - 1;
    try {
      const filter = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, NUMBERS.includes(name) ? Number(value) : value]));
      await post('actions/clear-sessions', { ...filter, expect: preview?.matching ?? 0, rate });
      close();
      ordered.set(begun);
    } catch (error) {
      setRefused(detail(error));
    }
  };
  return (
    <>
      <Button needs="operate" kind="danger" onClick={() => void look()}>Disconnect them…</Button>
      {refused && !preview && <Notice kind="bad">{refused}</Notice>}
      {preview && (
        <Dialog title={`Disconnect ${plural(preview.matching, 'session')}?`} close={close}>
          <form onSubmit={(event) => void clear(event)}>
            <Facts facts={Object.entries(values)} />
            <Table caption={`The first ${preview.first.length}`} views={SESSION_VIEWS.slice(0, 4)} rows={preview.first} whole={false} />
            <label>
              Sessions in a second
              <input name="rate" type="number" min={1} max={MOST_RATE} defaultValue={String(RATE)} required />
            </label>
            <p>Each session ends once. Its subscriber may connect again. If clearly more or fewer sessions match by then, none ends.</p>
            {refused && <div class="notice bad" role="alert">{refused}</div>}
            <div class="actions">
              <Button kind="danger" needs="operate" type="submit" disabled={preview.matching === 0}>Disconnect</Button>
              {refused && <Button onClick={() => void look()}>Look again</Button>}
              <Button onClick={close}>Cancel</Button>
            </div>
          </form>
        </Dialog>
      )}
    </>
  );
}

/** How far the last clear is while it is under way, and that it is done if it was ordered here. */
export function Clearing() {
  const refusal = useRefusal('support');
  const [every, setEvery] = useState(LATER);
  const [refused, setRefused] = useState('');
  const ask = async (signal: AbortSignal) => {
    const [last] = (await get<Page>('session-clears', { limit: 1 }, signal)).rows;
    setEvery(last && number(last, 'remaining_seconds') !== undefined ? SOON : LATER);
    return last ?? null;
  };
  const since = useStore(ordered);
  const last = usePoll(refusal ? null : 'session-clears', ask, every, Number.isFinite(since) ? since : 0).data;
  const stop = async () => {
    try {
      await post('actions/clear-sessions', { stop: true });
      setRefused('');
    } catch (error) {
      setRefused(detail(error));
    }
  };
  if (!last) return null;
  const left = number(last, 'remaining_seconds');
  if (left === undefined && (number(last, 'at') ?? 0) < since) return null;
  const [all, done] = [number(last, 'sessions') ?? 0, (number(last, 'ended') ?? 0) + (number(last, 'gone') ?? 0)];
  const stopped = text(last, 'stopped_by');
  return (
    <Notice kind={left === undefined ? 'good' : 'warn'}>
      <p>
        {`${text(last, 'by')} ends ${plural(all, 'session')} (${text(last, 'filter')}) since ${moment(number(last, 'at') ?? 0)} UTC: `}
        {left !== undefined ? `${done} are done, the others in about ${span(left)}.`
          : stopped ? `${stopped} stopped it after ${done}.` : 'all are done.'}
      </p>
      <progress max={Math.max(all, 1)} value={done} aria-label="Sessions that have ended" />
      {left !== undefined && <Button needs="operate" onClick={() => void stop()}>Stop</Button>}
      {refused && <p>{refused}</p>}
    </Notice>
  );
}
