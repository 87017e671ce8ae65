import { get, type Page } from '../api';
import { bits, count, percent, perSecond, span } from '../format';
import { Chart } from '../parts/Chart';
import { Badge, Loading, Stat } from '../parts/basics';
import { Table } from '../parts/Table';
import { TablePanel } from '../parts/TablePanel';
import { usePoll } from '../poll';
import { number, rows, text, type Row } from '../row';
import { live, type Live } from '../stream';
import { useStore } from '../store';
import { aggregateName } from '../derive';
import { Alarms } from './Alarms';

/** Seconds between two readings of what the stream does not tell. */
const SLOW = 30;
/** Seconds between two readings of what was. */
const PAST = 60;
const MOST_DROPS = 12;
const MOST_AGGREGATES = 10;

export function Overview() {
  const now = useStore(live);
  if (!now.state) return <Loading />;
  return (
    <>
      <h1>Overview</h1>
      <Alarms alarms={now.state.alarms} />
      <Numbers now={now} />
      <Charts now={now} />
      <UserPlanes now={now} />
      <Aggregates planes={now.state.user_planes} />
      <Servers />
      <Pools />
      <Drops now={now} />
    </>
  );
}

function Numbers({ now }: { now: Live }) {
  const { state, rates } = now;
  const of = (field: string) => count(number(state?.sessions ?? {}, field) ?? 0);
  const planes = state?.user_planes ?? [];
  const peak = useDaysPeak();
  const up = planes.filter((plane) => plane['associated'] === true).length;
  return (
    <section class="stats" aria-label="The gateway now">
      <Stat name="Sessions online" value={of('online')} note={`most in a day: ${count(Math.max(peak, now.peak))}`} />
      <Stat name="Being set up" value={of('connecting')} note={`${of('closing')} closing`} />
      <Stat name="Set-ups" value={rates ? perSecond(rates.opened) : '–'} note={rates ? `${perSecond(rates.begun)} begin, ${perSecond(rates.ended)} end` : ''} />
      <Stat name="From subscribers" value={rates ? bits(rates.up) : '–'} note="at the access ports" />
      <Stat name="To subscribers" value={rates ? bits(rates.down) : '–'} note="at the access ports" />
      <Stat name="Dropped" value={rates ? perSecond(rates.drops.reduce((all, drop) => all + drop.rate, 0)) : '–'} note="in every plane" />
      <Stat name="User planes" value={`${up} of ${planes.length}`} note="associated" bad={up < planes.length} />
    </section>
  );
}

/** Most sessions that were online at once in the last day; 0 while it is not known. */
function useDaysPeak(): number {
  const day = usePoll('peak', (signal) => get<Page>('figures', { since: '-24h', of: '' }, signal), PAST);
  const online = day.data?.rows.find((row) => row['name'] === 'online');
  return number(online ?? {}, 'most') ?? 0;
}

function Charts({ now }: { now: Live }) {
  const { samples } = now;
  if (samples.length < 2) return null;
  const times = samples.map((one) => one.time);
  return (
    <section aria-labelledby="charts">
      <h2 id="charts"><a href="#/figures">{`The last ${span(Math.max(times[times.length - 1]! - times[0]!, 1))}`}</a></h2>
      <div class="charts">
        <Chart
          title="Throughput"
          times={times}
          show={bits}
          lines={[
            { name: 'from subscribers', colour: 'one', values: samples.map((one) => one.up) },
            { name: 'to subscribers', colour: 'two', values: samples.map((one) => one.down) },
          ]}
        />
        <Chart
          title="Sessions online"
          times={times}
          show={count}
          lines={[{ name: 'online', colour: 'one', values: samples.map((one) => one.online) }]}
        />
        <Chart
          title="Set-ups and ends"
          times={times}
          show={perSecond}
          lines={[
            { name: 'came online', colour: 'one', values: samples.map((one) => one.opened) },
            { name: 'ended', colour: 'two', values: samples.map((one) => one.ended) },
          ]}
        />
        <Chart
          title="Dropped"
          times={times}
          show={perSecond}
          lines={[{ name: 'dropped', colour: 'three', values: samples.map((one) => one.drops) }]}
        />
      </div>
    </section>
  );
}

function UserPlanes({ now }: { now: Live }) {
  const planes = now.state?.user_planes ?? [];
  const of = (plane: Row) => now.rates?.planes[text(plane, 'node_id')];
  const busiest = (plane: Row) => Math.max(0, ...Object.values(of(plane)?.busy ?? {}));
  const state = (plane: Row) => (plane['associated'] !== true ? 'lost' : plane['reached'] === true ? 'associated' : 'not reached');
  return (
    <section aria-labelledby="planes">
      <h2 id="planes"><a href="#/network/user-planes">User planes</a></h2>
      <Table
        caption="User planes now"
        rows={planes}
        empty="No user plane is configured."
        views={[
          { field: 'node_id', label: 'Node' },
          { field: 'state', label: 'State', cell: (plane) => <Badge word={state(plane)} /> },
          { field: 'sessions', label: 'Sessions', kind: 'number' },
          { field: 'up', label: 'From subscribers', kind: 'number', cell: (plane) => bits(of(plane)?.up ?? 0), order: (plane) => of(plane)?.up ?? 0 },
          { field: 'down', label: 'To subscribers', kind: 'number', cell: (plane) => bits(of(plane)?.down ?? 0), order: (plane) => of(plane)?.down ?? 0 },
          { field: 'busy', label: 'Busiest worker', kind: 'number', cell: (plane) => percent(busiest(plane), 1), order: busiest },
        ]}
      />
    </section>
  );
}

function Aggregates({ planes }: { planes: Row[] }) {
  const all = planes.flatMap((plane) => rows(plane, 'queue_aggregates').map((one) => ({ ...one, user_plane: plane['node_id'] ?? '' })));
  if (all.length === 0) return null;
  const use = (row: Row) => (number(row, 'bits_per_second') ?? 0) / (number(row, 'rate_bits_per_second') || Infinity);
  const share = (row: Row) => (number(row, 'rate_bits_per_second') ? percent(use(row), 1) : '');
  const busiest = [...all].sort((a, b) => use(b) - use(a) || (number(b, 'waiting_octets') ?? 0) - (number(a, 'waiting_octets') ?? 0)).slice(0, MOST_AGGREGATES);
  return (
    <section aria-labelledby="queues">
      <h2 id="queues"><a href="#/network/qos">Busiest queues</a></h2>
      <Table
        caption="Ports, segments and VLANs, those that use most of their rates first"
        rows={busiest}
        views={[
          { field: 'name', label: 'Aggregate', cell: aggregateName, order: aggregateName },
          { field: 'bits_per_second', label: 'Sent now', unit: 'bits per second', kind: 'number' },
          { field: 'rate_bits_per_second', label: 'Rate', unit: 'bits per second', kind: 'number' },
          { field: 'use', label: 'Use', kind: 'number', order: use, cell: share },
          { field: 'waiting_octets', label: 'Queued', unit: 'octets', kind: 'number' },
          { field: 'drops', label: 'Dropped', kind: 'number' },
        ]}
      />
    </section>
  );
}

function Servers() {
  return (
    <section aria-labelledby="servers">
      <h2 id="servers"><a href="#/network/aaa-servers">RADIUS servers</a></h2>
      <TablePanel
        path="aaa-servers"
        every={SLOW}
        empty="No RADIUS server is configured: users are local."
        views={[
          'name', 'role', 'state', 'requests', 'timeouts',
          { field: 'round_trip_microseconds', label: 'Round trip' },
          'waiting',
          { field: 'last_answer_seconds', label: 'Last answer (ago)' },
        ]}
      />
    </section>
  );
}

function Pools() {
  const share = (row: Row) => (number(row, 'used') ?? 0) / (number(row, 'size') ?? Infinity);
  return (
    <section aria-labelledby="pools">
      <h2 id="pools"><a href="#/network/pools">Address pools</a></h2>
      <TablePanel
        path="pools"
        every={SLOW}
        empty="No pool is configured."
        views={[
          { field: 'name', label: 'Pool' },
          'prefix', 'used', 'size',
          {
            field: 'share', label: 'In use', kind: 'number', order: share,
            cell: (row) => <><meter min={0} max={1} high={0.9} value={share(row)} aria-label="Share in use" />{` ${percent(share(row), 1)}`}</>,
          },
          { field: 'full_at', label: 'Full', about: 'When it is full if it goes on growing as in the last week' },
        ]}
      />
    </section>
  );
}

function Drops({ now }: { now: Live }) {
  const drops = (now.rates?.drops ?? []).slice(0, MOST_DROPS);
  return (
    <section aria-labelledby="drops">
      <h2 id="drops"><a href="#/network/drops">Drops by reason</a></h2>
      <Table
        caption="Dropped or refused, those of now first"
        rows={drops.map((drop) => ({ ...drop }))}
        empty="Nothing was dropped."
        views={[
          { field: 'name', label: 'Reason' },
          { field: 'plane' },
          { field: 'rate', label: 'Now', kind: 'number', cell: (row) => perSecond(number(row, 'rate') ?? 0) },
          { field: 'count', label: 'Since start', kind: 'number' },
          { field: 'meaning' },
        ]}
      />
    </section>
  );
}

