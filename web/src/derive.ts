import { octets, show } from './format';
import { at, isRow, number, rows, text, type Row } from './row';

// Columns that the API leaves to whoever shows a table, as the command line makes them.

/** Port of an access line, and its VLANs: `up1/access0.100.7`. */
export function place(row: Row, below = ''): string {
  const field = (name: string) => at(row, below + name);
  const port = [field('user_plane'), field('port')].filter(Boolean).join('/');
  return [port, field('s_tag'), field('c_tag')].filter((part) => part !== null && part !== undefined && part !== '').join('.');
}

/** Whom or what an event is about. */
export const who = (event: Row): string =>
  text(event, 'subscriber.user') || text(event, 'subscriber.mac') || text(event, 'alarm') || text(event, 'resource');

/** Whether an operator has acknowledged an alarm. */
export const isAcknowledged = (alarm: Row): boolean => isRow(alarm['acknowledged']);

/** Why something happened, or with which addresses. */
export function reason(event: Row): string {
  const others = rows(event, 'other_bindings').map((binding) => `${text(binding, 'role')} ${text(binding, 'prefix')}`);
  const by = text(event, 'by');
  const [up, down] = [number(event, 'traffic.up_octets'), number(event, 'traffic.down_octets')];
  const parts = [
    text(event, 'alarm') && text(event, 'resource'),
    text(event, 'text'),
    up !== undefined && `${octets(up)} up, ${octets(down ?? 0)} down`,
    text(event, 'reply') && `(${text(event, 'reply')})`,
    text(event, 'ipv4'),
    text(event, 'ipv6_prefix'),
    ...others,
    by && `by ${by}`,
  ];
  return parts.filter(Boolean).join(' ');
}

/** Name of a port, segment or VLAN with queues: `up1/access0/olt1.100`. */
export function aggregateName(row: Row): string {
  const path = [text(row, 'user_plane'), text(row, 'port'), text(row, 'segment')].filter(Boolean).join('/');
  const vlan = number(row, 's_tag');
  return vlan === undefined ? path : `${path}.${vlan === 0 ? 'untagged' : vlan}`;
}

/** The latest refusal, failure or end on a line. */
export function lastTrouble(line: Row): string {
  const kinds = [['refused', 'last_refused'], ['failed', 'last_failed'], ['ended', 'last_ended']] as const;
  const known = kinds.filter(([, field]) => number(line, `${field}.at`) !== undefined);
  known.sort((a, b) => number(line, `${b[1]}.at`)! - number(line, `${a[1]}.at`)!);
  const latest = known[0];
  if (!latest) return '';
  const [word, field] = latest;
  return `${word} ${show(at(line, `${field}.at`), 'seconds since 1970')}: ${text(line, `${field}.text`)}`;
}

/** What frames wait for; nothing has no word of its own in the API. */
export const limitedBy = (row: Row): string => text(row, 'limited_by').replace('unspecified', 'nothing');

/** Bounds of the counts `waits` of a queue, in milliseconds; the last one has none. */
const WAITS = ['1', '2', '5', '10', '20', '50', '100'];

/** Within how long 99 of 100 frames that had to wait were sent. */
export function delay(queue: Row): string {
  const counts = queue['waits'];
  if (!Array.isArray(counts)) return '';
  const numbers = counts.map((one) => (typeof one === 'number' ? one : 0));
  const all = numbers.reduce((sum, one) => sum + one, 0);
  if (all === 0) return '';
  let seen = 0;
  for (const [index, one] of numbers.entries()) {
    seen += one;
    if (seen >= 0.99 * all) return WAITS[index] ? `< ${WAITS[index]} ms` : '> 100 ms';
  }
  return '';
}
