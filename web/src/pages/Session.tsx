import { useEffect, useRef, useState } from 'preact/hooks';
import { detail, get, post } from '../api';
import { place } from '../derive';
import { bits, octets, span } from '../format';
import { Chart } from '../parts/Chart';
import { Badge, Button, Dialog, ErrorBox, Facts, Loading, Notice } from '../parts/basics';
import { Table } from '../parts/Table';
import { usePoll } from '../poll';
import { link, type Route } from '../router';
import { isRow, number, rows, text, texts, type Row } from '../row';
import { useRefusal } from '../session';
import { Explain } from './Explain';
import { History } from './History';
import { Messages } from './Messages';
import { Directions } from './Policy';

/** Seconds between two readings of a session. */
const INTERVAL = 2;
/**
 * Seconds after which counters that stay the same mean that nothing is sent. The user plane reads them about once in a second, so that two
 * answers may have the same reading.
 */
const STILL = 6;
/** Readings that the chart shows. */
const MOST_READINGS = 150;

interface Reading {
  /** Seconds since 1970. */
  time: number;
  up: number | null;
  down: number | null;
}

/** Rates from one reading of the session's counters to the next. */
function useRates(session: Row | undefined, at: number): Reading[] {
  const [readings, setReadings] = useState<Reading[]>([]);
  const last = useRef<{ at: number; session: Row } | null>(null);
  useEffect(() => {
    if (!session) return;
    const before = last.current;
    const over = before ? (at - before.at) / 1000 : 0;
    if (before && over < STILL && JSON.stringify(before.session['traffic']) === JSON.stringify(session['traffic'])) return;
    last.current = { at, session };
    const rate = (field: string) => {
      if (!before || over <= 0) return null;
      const more = (number(session, field) ?? 0) - (number(before.session, field) ?? 0);
      return (8 * Math.max(more, 0)) / over;
    };
    const reading = { time: Date.now() / 1000, up: rate('traffic.up_octets'), down: rate('traffic.down_octets') };
    setReadings((all) => [...all.slice(1 - MOST_READINGS), reading]);
  }, [session, at]);
  return readings;
}

export function Session({ route }: { route: Route }) {
  const id = route.parts[1] ?? '';
  const refusal = useRefusal('support');
  const [ended, setEnded] = useState(false);
  const key = refusal || ended ? null : `session ${id}`;
  const answer = usePoll(key, (signal) => get<Row>('session', { session: id }, signal), INTERVAL);
  const last = useRef<Row | undefined>(undefined);
  last.current = answer.data ?? last.current;
  const gone = answer.error?.status === 404;
  useEffect(() => {
    if (gone) setEnded(true); // it does not come back: its subscriber gets another one
  }, [gone]);
  const readings = useRates(answer.data, answer.at);
  if (refusal) return <Notice kind="warn">{refusal}</Notice>;
  const session = last.current;
  if (ended) return <Ended id={id} session={session} />;
  if (!session) return answer.error ? <ErrorBox error={answer.error} retry={answer.refresh} /> : <Loading />;
  const name = text(session, 'user') || text(session, 'mac');
  return (
    <>
      <h1><span>{name}</span> <Badge word={text(session, 'state')} /></h1>
      {answer.error && <ErrorBox error={answer.error} />}
      <Actions session={session} name={name} refresh={answer.refresh} />
      <Facts facts={facts(session)} />
      <Warnings session={session} />
      <Explain key={id} subscriber={id} />
      <Traffic session={session} readings={readings} />
      <Messages key={`messages ${id}`} who={id} />
      <Settings settings={rows(session, 'settings')} />
      <Directions session={session} />
      <h2>History of this subscriber</h2>
      <History subscriber={text(session, 'user') || text(session, 'mac') || id} />
    </>
  );
}

function Ended({ id, session }: { id: string; session: Row | undefined }) {
  const name = session ? text(session, 'user') || text(session, 'mac') : '';
  return (
    <>
      <h1>Session <span>{name || id}</span></h1>
      <Notice kind="warn">
        {`Session ${id} has ended, or never was. `}
        {name && <a href={link(['search'], { q: name })}>{`Look for ${name} again`}</a>}
      </Notice>
      <History subscriber={id} />
    </>
  );
}

function facts(session: Row): [string, preact.ComponentChildren][] {
  const address = text(session, 'ipv4');
  const prefix = text(session, 'ipv6_prefix');
  const who = (of: string) => of && <><span>{of}</span>{' '}<a href={link(['who'], { address: of })}>who had it</a></>;
  const line = text(session, 'line');
  return [
    ['IPv4', who(address)],
    ['IPv6', who(prefix)],
    ['Routes', texts(session, 'routes').join(', ')],
    ['Line', line && <a href={link(['lines'], { line })}>{line}</a>],
    ['Port and VLANs', place(session)],
    ['MAC', text(session, 'mac')],
    ['Online for', span(number(session, 'online_seconds') ?? 0)],
    ['Profile', text(session, 'profile') || 'the defaults'],
    ['Limited by', text(session, 'limited_by')],
    ['Subscriber group', text(session, 'group')],
    ['Network instance', text(session, 'network_instance')],
    ['Session', text(session, 'id')],
    ['PPPoE session id', text(session, 'pppoe_session_id')],
    ['Access loop', texts(session, 'access_loop').join(', ')],
  ];
}

/** What is not as AAA or the configuration wants it. */
function Warnings({ session }: { session: Row }) {
  const fallback = text(session, 'fallback');
  return (
    <>
      {fallback && <Notice kind="warn">{`It came in by the fallback ${fallback}, because no RADIUS server answered.`}</Notice>}
      {texts(session, 'without_effect').map((one) => <Notice key={one} kind="warn">{`Without effect: ${one}`}</Notice>)}
      {texts(session, 'next_connection').map((one) => <Notice key={one}>{`From the next connection on: ${one}`}</Notice>)}
    </>
  );
}

function Traffic({ session, readings }: { session: Row; readings: Reading[] }) {
  const families: [string, string][] = [['All', 'traffic'], ['IPv4', 'ipv4_traffic'], ['IPv6', 'ipv6_traffic']];
  return (
    <section aria-labelledby="traffic">
      <h2 id="traffic">Traffic</h2>
      <Chart
        title="Rates now"
        times={readings.map((one) => one.time)}
        show={bits}
        lines={[
          { name: 'from the subscriber', colour: 'one', values: readings.map((one) => one.up) },
          { name: 'to the subscriber', colour: 'two', values: readings.map((one) => one.down) },
        ]}
      />
      <Table
        caption="IP packets since the session began"
        rows={families.map(([family, field]) => {
          const counters = session[field];
          return { family, ...(isRow(counters) ? counters : {}) };
        })}
        views={[
          { field: 'family' },
          { field: 'up_octets', label: 'Up', unit: 'octets', kind: 'number', cell: (row) => octets(number(row, 'up_octets') ?? 0) },
          { field: 'up_packets', label: 'Up packets', kind: 'number' },
          { field: 'down_octets', label: 'Down', unit: 'octets', kind: 'number', cell: (row) => octets(number(row, 'down_octets') ?? 0) },
          { field: 'down_packets', label: 'Down packets', kind: 'number' },
        ]}
      />
    </section>
  );
}

function Settings({ settings }: { settings: Row[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? settings : settings.filter((one) => text(one, 'value') !== '' || typeof one['wanted'] === 'string');
  return (
    <section aria-labelledby="settings">
      <h2 id="settings">Policy</h2>
      <label class="inline">
        <input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} /> also settings without a value
      </label>
      <Table
        caption="Settings in force, and where each comes from"
        rows={shown}
        empty="The control plane does not tell them."
        views={[
          { field: 'label', label: 'Setting' },
          { field: 'value' },
          { field: 'origin' },
          {
            field: 'wanted',
            label: 'Wanted',
            about: 'The value wanted, where the user plane has not taken it',
            cell: (row) => typeof row['wanted'] === 'string' && <><Badge word="waits" />{` ${row['wanted'] || 'none'}`}</>,
          },
        ]}
      />
    </section>
  );
}

function Actions({ session, name, refresh }: { session: Row; name: string; refresh: () => void }) {
  const [asking, setAsking] = useState(false);
  const [told, setTold] = useState<{ kind: 'good' | 'bad'; text: string } | null>(null);
  const id = text(session, 'id');
  const order = async (action: string, body: unknown, done: string) => {
    try {
      await post(`actions/${action}`, body);
      setTold({ kind: 'good', text: done });
      refresh();
    } catch (error) {
      setTold({ kind: 'bad', text: detail(error) });
    }
  };
  const disconnect = () => {
    setAsking(false);
    void order('clear-session', { session: id }, `The session of ${name} ends; the subscriber may connect again.`);
  };
  return (
    <>
      <div class="actions">
        <Button needs="operate" kind="danger" onClick={() => setAsking(true)}>Disconnect…</Button>
        <Button
          needs="operate"
          onClick={() => void order('watch-session', { session: id }, 'For a minute it is counted which rules its packets match: see below.')}
        >
          Watch rules
        </Button>
        <Button
          needs="operate"
          onClick={() => void order('clear-back-off', { who: text(session, 'mac') }, `Failed set-ups and logins of ${text(session, 'mac')} are forgotten.`)}
        >
          Clear back-off
        </Button>
      </div>
      {told && <Notice kind={told.kind}>{told.text}</Notice>}
      {asking && (
        <Dialog title={`Disconnect ${name}?`} close={() => setAsking(false)}>
          <Facts
            facts={[['User', name], ['IPv4', text(session, 'ipv4')], ['IPv6', text(session, 'ipv6_prefix')], ['Line', text(session, 'line')],
              ['Online for', span(number(session, 'online_seconds') ?? 0)], ['Session', id]]}
          />
          <p>The session ends now. The subscriber may connect again.</p>
          <div class="actions">
            <Button kind="danger" needs="operate" onClick={disconnect}>Disconnect</Button>
            <Button onClick={() => setAsking(false)}>Cancel</Button>
          </div>
        </Dialog>
      )}
    </>
  );
}
