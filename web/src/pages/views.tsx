import { lastTrouble, place } from '../derive';
import type { View } from '../parts/Table';
import { link } from '../router';
import { number, text, type Row } from '../row';

// Columns of tables that several pages show. Sentences and units come from the API.

export const SESSION_VIEWS: View[] = [
  { field: 'user', cell: (row) => <a href={link(['session', text(row, 'id')])}>{text(row, 'user') || text(row, 'mac')}</a> },
  { field: 'state', label: 'State' },
  { field: 'ipv4', label: 'IPv4' },
  { field: 'ipv6_prefix', label: 'IPv6' },
  { field: 'mac', label: 'MAC' },
  { field: 'port', label: 'Port', cell: (row: Row) => place(row), order: (row: Row) => place(row) },
  { field: 'online_seconds', label: 'Online', unit: 'seconds', kind: 'number' },
  { field: 'traffic.up_octets', label: 'Up', unit: 'octets', kind: 'number' },
  { field: 'traffic.down_octets', label: 'Down', unit: 'octets', kind: 'number' },
  { field: 'id', label: 'Session', cell: (row) => <a href={link(['session', text(row, 'id')])}>{text(row, 'id')}</a> },
];

export const LINE_VIEWS: (string | View)[] = [
  { field: 'line', cell: (row) => <a href={link(['search'], { q: text(row, 'line') })}>{text(row, 'line')}</a> },
  'users',
  'online',
  { field: 'online_seconds', label: 'For' },
  { field: 'set_ups', label: 'Came' },
  { field: 'ends', label: 'Went' },
  { field: 'refusals', label: 'Refused' },
  { field: 'failures', label: 'Failed' },
  {
    field: 'last_trouble',
    label: 'Last trouble',
    cell: lastTrouble,
    order: (row) => Math.max(...['refused', 'failed', 'ended'].map((kind) => number(row, `last_${kind}.at`) ?? 0)),
  },
];
