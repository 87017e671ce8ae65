import { useEffect, useState } from 'preact/hooks';
import { get, type Page } from '../api';
import { place, reason, who } from '../derive';
import { MOST, useFollow } from '../follow';
import { count, iso, plural } from '../format';
import { Button, ErrorBox, Loading } from '../parts/basics';
import { Table, type View } from '../parts/Table';
import { usePoll } from '../poll';
import { number, text, type Row } from '../row';
import { answerAddress } from '../schema';

/** Events of a page. */
const LAST = 100;

const VIEWS: View[] = [
  { field: 'at', label: 'Time', unit: 'seconds since 1970', kind: 'number' },
  { field: 'kind', label: 'Event', cell: (row) => text(row, 'kind').replaceAll('-', ' ') },
  { field: 'who', label: 'Who or what', cell: who, order: who },
  { field: 'line', label: 'Line', cell: (row) => place(row, 'subscriber.'), order: (row) => place(row, 'subscriber.') },
  { field: 'subscriber.mac', label: 'MAC' },
  { field: 'subscriber.session', label: 'Session' },
  { field: 'why', label: 'Why, or with what', cell: reason, order: reason },
];

interface HistoryProps {
  subscriber?: string;
  /** Of whom as well. */
  also?: string;
  /** Kinds, with commas between them. */
  kinds?: string;
  since?: string;
  until?: string;
  /** Events appear as they happen. */
  follows?: boolean;
}

/** Events, the newest first. Older ones are asked for from the end of what is there. */
export function History({ subscriber = '', also = '', kinds = '', since = '', until = '', follows = false }: HistoryProps) {
  const [older, setOlder] = useState<Row[]>([]);
  const [end, setEnd] = useState(false);
  const [turn, setTurn] = useState(0);
  const [paused, setPaused] = useState(false);
  const wanted = { subscriber, also, kinds, since };
  const key = `events ${JSON.stringify(wanted)} ${until} ${turn}`;
  useEffect(() => {
    setOlder([]);
    setEnd(false);
  }, [key]);
  const values = { ...wanted, until, last: String(LAST), limit: String(LAST) };
  const answer = usePoll(key, (signal) => get<Page>('events', values, signal));
  const newest = answer.data?.rows[answer.data.rows.length - 1];
  const fresh = useFollow(follows && answer.data ? newest && number(newest, 'number') : null, subscriber, kinds, paused);
  if (!answer.data) return answer.error ? <ErrorBox error={answer.error} retry={answer.refresh} /> : <Loading />;
  const events = [...fresh, ...[...answer.data.rows].reverse(), ...older];
  const more = async () => {
    const page = await before(events, wanted);
    setOlder([...older, ...page]);
    if (page.length === 0) setEnd(true);
  };
  return (
    <section class="panel">
      <Table caption="Events, the newest first" views={VIEWS} rows={events} whole={false} empty="Nothing has happened." />
      <footer class="bar">
        <span>{shown(events.length, fresh.length, end ? {} : answer.data)}</span>
        {follows && fresh.length >= MOST && <span>Many events have happened: refresh to go on.</span>}
        {follows && <Button onClick={() => setPaused(!paused)}>{paused ? 'Go on' : 'Pause'}</Button>}
        {events.length >= LAST && !end && <Button onClick={() => void more()}>Older</Button>}
        <Button onClick={() => setTurn(turn + 1)}>Refresh</Button>
        <a href={answerAddress('events', values)} target="_blank" rel="noreferrer">JSON</a>
      </footer>
    </section>
  );
}

/** How many events are shown, of how many. */
function shown(events: number, fresh: number, { total = 0, or_more }: Partial<Page>): string {
  const all = Math.max(total + fresh, events);
  if (or_more) return `${count(events)} of ${count(all)} or more events`;
  return all > events ? `${count(events)} of ${count(all)} events` : plural(events, 'event');
}

/** The events before those that are shown. A second may have several of them: it is asked for again, and what is known goes. */
async function before(events: Row[], values: { [name: string]: string }): Promise<Row[]> {
  const oldest = number(events[events.length - 1] ?? {}, 'at') ?? 0;
  const known = new Set(events.map((event) => JSON.stringify(event)));
  for (const until of [oldest, oldest - 1]) {
    const page = await get<Page>('events', { ...values, until: iso(until), last: LAST, limit: LAST });
    const fresh = page.rows.filter((event) => !known.has(JSON.stringify(event)));
    if (fresh.length > 0) return fresh.reverse();
  }
  return [];
}
