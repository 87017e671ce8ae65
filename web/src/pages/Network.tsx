import { get } from '../api';
import { aggregateName, limitedBy, place } from '../derive';
import { count, percent, plural } from '../format';
import { Notice, Tabs } from '../parts/basics';
import { TablePanel, type PanelProps } from '../parts/TablePanel';
import { usePoll } from '../poll';
import { go, link, type Route } from '../router';
import { isRow, number, rows, text, type Row } from '../row';
import { may, me } from '../session';
import { live, type Live } from '../stream';
import { useStore } from '../store';
import { Audit } from './Audit';
import { ClearBackOff, offender } from './ClearBackOff';
import { MoveAggregate } from './MoveAggregate';
import { Drain } from './Drain';
import { TestAaa } from './TestAaa';

/** Parts of the page: name in the address, heading. */
const PARTS: [path: string, name: string][] = [
  ['user-planes', 'User planes'],
  ['ports', 'Ports'],
  ['lag-members', 'LAG members'],
  ['workers', 'Workers'],
  ['pools', 'Pools'],
  ['aaa-servers', 'RADIUS servers'],
  ['associations', 'Associations'],
  ['routes', 'Routes'],
  ['neighbours', 'Neighbours'],
  ['qos', 'Queues'],
  ['policies', 'Policies'],
  ['acl', 'ACLs'],
  ['protection', 'Protection'],
  ['drops', 'Drops'],
  ['audit', 'Resource audit'],
];

export function Network({ route }: { route: Route }) {
  const part = PARTS.find(([path]) => path === route.parts[1]) ?? PARTS[0]!;
  return (
    <>
      <h1>Network</h1>
      <Tabs label="Parts of the network" now={part[1]} tabs={PARTS.map(([path, name]) => [name, link(['network', path])])} />
      <Part key={part[0]} part={part[0]} route={route} />
    </>
  );
}

function Part({ part, route }: { part: string; route: Route }) {
  const now = useStore(live);
  if (part === 'acl') return <Acl route={route} />;
  if (part === 'audit') return <Audit />;
  return (
    <>
      <TablePanel {...panel(part, now)} />
      {part === 'aaa-servers' && <TestAaa />}
    </>
  );
}

/** What the table of a part shows. */
function panel(part: string, now: Live): PanelProps {
  const rates = (row: Row) => now.rates?.planes[text(row, 'user_plane')];
  const busy = (row: Row) => rates(row)?.busy[text(row, 'number')] ?? 0;
  const every = 5;
  switch (part) {
    case 'user-planes':
      return { path: part, every, views: ['node_id', 'state', 'address', 'sessions', 'since_seconds', 'started_at', 'restarts', 'access_ports',
        'drain.rate', 'drain.remaining_seconds'], actions: (row) => <Drain plane={row} /> };
    case 'workers':
      return { path: part, every, views: ['user_plane', 'number', { field: 'busy', label: 'Busy now', kind: 'number', order: busy, cell: (row) => percent(busy(row), 1) },
        'busy_nanoseconds', 'bursts', 'rx_packets', 'tx_packets', 'handed_over', 'taken_over', 'punted', 'injected'] };
    case 'ports':
      return { path: part, every, views: ['user_plane', 'name', 'role', 'link_up', 'rx_octets', 'tx_octets', 'rx_packets', 'tx_packets', 'rx_lost',
        'tx_dropped', 'device', 'mac'] };
    case 'lag-members':
      return { path: part, every, empty: 'No port has a LAG.', views: ['user_plane', 'port', 'device', 'link_up', 'speed_bits_per_second', 'state', 'partner',
        'partner_port', 'partner_key', 'tx_lacpdus', 'rx_lacpdus', 'rx_malformed'] };
    case 'qos':
      return { path: 'qos/aggregates', every: 2, empty: 'No port has queues.', views: [
        { field: 'name', label: 'Aggregate', cell: aggregateName, order: aggregateName }, 'rate_bits_per_second', 'bits_per_second',
        { field: 'limited_by', cell: limitedBy }, 'delay_milliseconds', 'waiting_octets', 'waiting_packets', 'most_octets', 'subscribers',
        'waiting_subscribers', 'packets', 'octets', 'drops', { field: 'worker', cell: workers }],
      actions: (row) => <MoveAggregate row={row} name={aggregateName(row)} /> };
    case 'protection':
      return { path: part, every, empty: 'Nobody floods the gateway, and nobody is held off.', views: [
        'mac', { field: 'port', label: 'Line', cell: (row) => place(row), order: (row) => place(row) }, 'circuit_id', 'kind', 'level', 'dropped',
        'since_seconds', 'holds', 'held_seconds'], actions: (row) => <ClearBackOff who={offender(row)} /> };
    case 'drops':
      return { path: part, every, views: ['name', 'plane', 'count', 'meaning'], filter: true, limit: 1000 };
    case 'pools':
      return { path: part, every, views: ['name', 'prefix', 'used', 'size',
        { field: 'free', kind: 'number', cell: (row) => count(free(row)), order: free }, 'full_at', { field: 'shares', label: 'Groups', cell: shares },
        'network_instance', 'prefix_length', 'lent_nets', 'nets', 'net_length'] };
    case 'routes':
      return { path: part, filter: true, views: ['prefix', 'kind', 'next_hop', 'port', 'mac', 'further', 'user_plane', 'network_instance'] };
    case 'policies':
      return { path: part, every, empty: 'No policy is configured.' };
    case 'aaa-servers':
      return { path: part, every, empty: 'No RADIUS server is configured: users are local.', views: ['name', 'group', 'role', 'state', 'out_seconds', 'address',
        'transport', 'requests', 'answers', 'retransmissions', 'timeouts', 'round_trip_microseconds', 'last_answer_seconds', 'waiting', 'window', 'trouble'] };
    default:
      return { path: part, every };
  }
}

/** The worker that has an aggregate's sessions. If several have them, each keeps the rate for its own. */
const workers = (row: Row) => {
  const worker = number(row, 'worker');
  const several = number(row, 'workers') ?? 0;
  if (worker !== undefined) return String(worker);
  return text(row, 'segment') && several > 1 ? plural(several, 'worker') : '';
};

const free = (pool: Row): number => (number(pool, 'size') ?? 0) - (number(pool, 'used') ?? 0);

/** Groups that have a part of a pool: a line each. */
const shares = (pool: Row) => rows(pool, 'shares').map((share) => {
  const group = text(share, 'group') || text(share, 'user_plane');
  return <div key={group}>{`${group}: ${count(number(share, 'used') ?? 0)} used`}</div>;
});

/** Rules of an ACL. Their names are in the configuration, which the role `view` cannot read: it types one. */
function Acl({ route }: { route: Route }) {
  const chosen = route.values.get('acl') ?? '';
  const who = me.get();
  const reads = !!who && may(who.role, 'support');
  const answer = usePoll(reads ? 'acl names' : null, (signal) => get<Row>('configuration', {}, signal));
  const acls = answer.data ? answer.data['tree'] : undefined;
  const names = isRow(acls) && isRow(acls['acls']) ? Object.keys(acls['acls']) : [];
  const ask = (event: Event) => {
    event.preventDefault();
    go(link(['network', 'acl'], { acl: String(new FormData(event.currentTarget as HTMLFormElement).get('acl')) }));
  };
  if (reads && answer.data && names.length === 0) return <Notice>No ACL is configured.</Notice>;
  return (
    <>
      <form class="row" onSubmit={ask} key={chosen}>
        <label>
          ACL
          <input name="acl" list="acl-names" defaultValue={chosen} required autocomplete="off" />
          <datalist id="acl-names">{names.map((name) => <option key={name} value={name} />)}</datalist>
        </label>
        <button type="submit" class="main">Show</button>
      </form>
      {!chosen && names.map((name) => <p key={name}><a href={link(['network', 'acl'], { acl: name })}>{name}</a></p>)}
      {chosen && <TablePanel path="acl" values={{ acl: chosen }} every={5} views={['number', 'text', 'packets', 'octets', 'user_plane']} filter limit={1000} />}
    </>
  );
}
