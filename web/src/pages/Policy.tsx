import { delay, limitedBy } from '../derive';
import { count, octets, span } from '../format';
import { Badge, Facts, Notice } from '../parts/basics';
import { Table } from '../parts/Table';
import { at, isRow, number, rows, text, type Row } from '../row';

/** What the policies of a session have done, for each direction that has one. */
export function Directions({ session }: { session: Row }) {
  const up = at(session, 'policy.up');
  const down = at(session, 'policy.down');
  if (session['policy'] === null) return <Notice>The user plane does not tell what the policies of the session have done.</Notice>;
  return (
    <>
      {isRow(up) && <Direction title="Policy for packets from the subscriber" did={up} />}
      {isRow(down) && <Direction title="Policy for packets to the subscriber" did={down} />}
    </>
  );
}

function Direction({ title, did }: { title: string; did: Row }) {
  const packets = (field: string) => {
    const many = number(did, field) ?? 0;
    return many > 0 ? `${count(many)} packets` : '';
  };
  const name = text(did, 'name');
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      {did['drops_all'] === true && <Notice kind="bad">All packets of this direction are dropped: the policy is missing.</Notice>}
      {text(did, 'trouble') && <Notice kind="bad">{text(did, 'trouble')}</Notice>}
      <Facts
        facts={[
          ['Policy', name && <><span>{name}</span> <Badge word={text(did, 'state')} /></>],
          ['Compiled', compiled(did['compiled'])],
          ['Denied', packets('denied_packets') && `${packets('denied_packets')}, ${octets(number(did, 'denied_octets') ?? 0)}`],
          ['Last denial', denial(did)],
          ['Above the rate', packets('exceeded_packets')],
          ['Above the committed rate, passed', packets('yellow_packets')],
          ['Above the rate of the home', packets('subscriber_exceeded_packets')],
        ]}
      />
      <Policers policers={rows(did, 'policers')} />
      <Queues queues={rows(did, 'queues')} />
      <Classes classes={rows(did, 'classes')} />
      <Watch watch={did['rule_watch']} />
    </section>
  );
}

/** What denied a packet last, in the words of the answer. */
function denial(did: Row): string {
  const last = did['last_denial'];
  if (!isRow(last)) return '';
  return Object.entries(last).filter(([, value]) => value !== null && value !== '' && value !== 0).map(([name, value]) =>
    `${name.replaceAll('_', ' ')} ${isRow(value) ? JSON.stringify(value) : String(value)}`).join(', ');
}

/** What the workers have of the policy. */
function compiled(of: Row[string] | undefined): string {
  if (!isRow(of)) return '';
  const size = (name: string, part: Row) => `${name}${number(part, 'rules') ?? 0} rules in ${octets(number(part, 'octets') ?? 0)}`;
  const families = [['IPv4 ', of['ipv4']], ['IPv6 ', of['ipv6']]] as const;
  const sizes = families.flatMap(([name, part]) => (isRow(part) ? [size(name, part)] : []));
  return [`number ${number(of, 'number') ?? 0}`, `compilation ${number(of, 'compilation') ?? 0}`, size('', of), ...sizes].join(', ');
}

function Policers({ policers }: { policers: Row[] }) {
  if (policers.length === 0) return null;
  return (
    <Table
      caption="Policers"
      rows={policers}
      views={[
        { field: 'owner', label: 'Of', cell: (row) => text(row, 'class') || text(row, 'owner') },
        { field: 'kind' },
        { field: 'committed_rate', label: 'Rate', unit: 'bits per second', kind: 'number' },
        { field: 'committed_burst', label: 'Burst', unit: 'octets', kind: 'number' },
        { field: 'second_rate', label: 'Peak or excess rate', unit: 'bits per second', kind: 'number' },
        { field: 'second_burst', label: 'Peak or excess burst', unit: 'octets', kind: 'number' },
      ]}
    />
  );
}

function Queues({ queues }: { queues: Row[] }) {
  if (queues.length === 0) return null;
  return (
    <Table
      caption="Queues"
      rows={queues}
      views={[
        { field: 'class', label: 'Class', cell: (row) => text(row, 'class') || 'no class' },
        { field: 'waiting_octets', label: 'Queued', unit: 'octets', kind: 'number' },
        { field: 'most_octets', label: 'Most', unit: 'octets', kind: 'number' },
        { field: 'limited_by', label: 'Limited by', cell: limitedBy },
        { field: 'delay', label: 'Delay', about: 'Within which 99 of 100 frames that had to wait were sent', cell: delay },
        { field: 'packets', label: 'Sent', kind: 'number' },
        { field: 'octets', label: 'Octets', unit: 'octets', kind: 'number' },
        { field: 'full_drops', label: 'Dropped: full', kind: 'number' },
        { field: 'delay_drops', label: 'Dropped: waited', kind: 'number' },
        { field: 'marks', label: 'Marked (ECN)', kind: 'number' },
      ]}
    />
  );
}

function Classes({ classes }: { classes: Row[] }) {
  const fields = Object.keys(classes[0] ?? {});
  if (fields.length === 0) return null;
  return (
    <Table
      caption="Classes"
      rows={classes}
      views={fields.map((field) => (field.endsWith('octets') ? { field, unit: 'octets', kind: 'number' as const }
        : { field, kind: typeof classes[0]![field] === 'number' ? 'number' as const : 'text' as const }))}
    />
  );
}

/** Which rules the packets of the session match, while they are watched. */
function Watch({ watch }: { watch: Row[string] | undefined }) {
  if (!isRow(watch)) return null;
  return (
    <>
      <p>{`Rules are watched for another ${span(number(watch, 'seconds_left') ?? 0)}.`}</p>
      <Table
        caption="Rules that its packets match"
        rows={rows(watch, 'hits')}
        empty="No packet so far."
        views={[
          { field: 'kind' },
          { field: 'acl', label: 'ACL' },
          { field: 'rule', kind: 'number' },
          { field: 'text', label: 'Rule text' },
          { field: 'packets', kind: 'number' },
          { field: 'octets', unit: 'octets', kind: 'number' },
        ]}
      />
    </>
  );
}
