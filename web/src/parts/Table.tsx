import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { heading, moment, show, span } from '../format';
import { serverNow } from '../api';
import { link } from '../router';
import { at, isRow, type Json, type Row } from '../row';
import type { Column } from '../schema';
import { Badge } from './basics';

/** A column of a page: one of the API, or one that the page makes. */
export interface View {
  field: string;
  label?: string;
  about?: string;
  unit?: string;
  kind?: Column['kind'];
  below?: Column[];
  /** What is shown. Default: the field's value with its unit. */
  cell?: (row: Row) => ComponentChildren;
  /** What rows are sorted by. Default: the field's value. */
  order?: (row: Row) => Json | undefined;
}

interface TableProps {
  caption: string;
  views: View[];
  rows: Row[];
  /** The rows are all that there are: only then sorting says something. */
  whole?: boolean;
  empty?: string;
  /** Buttons of a row. */
  actions?: (row: Row) => ComponentChildren;
}

interface Order {
  field: string;
  down: boolean;
}

export function Table({ caption, views, rows, whole = true, empty = 'Nothing.', actions }: TableProps) {
  const [order, setOrder] = useState<Order | null>(null);
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  const by = whole && order ? views.find((view) => view.field === order.field) : undefined;
  const sorted = by && order ? sort(rows, by, order.down) : rows;
  const turn = (field: string) =>
    setOrder((now) => (now?.field !== field ? { field, down: false } : now.down ? null : { field, down: true }));
  return (
    <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {views.map((view) => <Heading key={view.field} view={view} order={order} turn={whole && rows.length > 1 ? turn : null} />)}
            {actions && <th scope="col">Actions</th>}
          </tr>
        </thead>
        <tbody>
          {sorted.map((row, index) => (
            <tr key={index}>
              {views.map((view, place) => <Cell key={view.field} view={view} row={row} first={place === 0} />)}
              {actions && <td>{actions(row)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Characters from which on a text is a sentence. */
const LONG = 40;

const isNumber = (view: View) => view.kind === 'number' && view.unit !== 'seconds since 1970';

function Heading({ view, order, turn }: { view: View; order: Order | null; turn: ((field: string) => void) | null }) {
  const label = (view.label ?? heading(view.field)) + (view.unit === 'seconds since 1970' ? ' (UTC)' : '');
  const own = order?.field === view.field ? order : null;
  return (
    <th
      scope="col"
      title={view.about}
      class={isNumber(view) ? 'number' : ''}
      {...(own && turn ? { 'aria-sort': own.down ? 'descending' as const : 'ascending' as const } : {})}
    >
      {turn ? <button type="button" onClick={() => turn(view.field)}>{label}</button> : label}
    </th>
  );
}

function Cell({ view, row, first }: { view: View; row: Row; first: boolean }) {
  const made = view.cell?.(row);
  const content = view.cell ? made : <Value view={view} row={row} />;
  const told = view.cell ? made : at(row, view.field);
  // a sentence needs room, also on a narrow page
  const long = typeof told === 'string' && told.length > LONG;
  const style = isNumber(view) ? 'number' : view.unit === 'seconds since 1970' ? 'moment' : long ? 'long' : '';
  return first ? <th scope="row" class={style}>{content}</th> : <td class={style}>{content}</td>;
}

/** Fields whose values lead to a page. */
const LEADS: { [field: string]: (value: string) => string } = {
  user: (value) => link(['search'], { q: value }),
  users: (value) => link(['search'], { q: value }),
  'subscriber.user': (value) => link(['search'], { q: value }),
  'subscriber.session': (value) => link(['session', value]),
};

function Value({ view, row }: { view: View; row: Row }) {
  const value = at(row, view.field);
  if (typeof value === 'string' && /(^|[._])(state|severity|became)$/.test(view.field)) {
    return value === '' || value === 'unspecified' ? null : <Badge word={value} />;
  }
  const lead = LEADS[view.field];
  if (lead && typeof value === 'string' && value !== '') return <a href={lead(value)}>{value}</a>;
  if (lead && Array.isArray(value)) {
    return <>{value.map((one) => <a key={String(one)} href={lead(String(one))}>{`${String(one)} `}</a>)}</>;
  }
  if (view.unit === 'seconds since 1970' && typeof value === 'number') {
    return <time dateTime={new Date(value * 1000).toISOString()} title={`${span(serverNow() - value)} ago`}>{moment(value)}</time>;
  }
  if (view.kind === 'rows' && Array.isArray(value)) {
    return <>{value.filter(isRow).map((one, index) => <div key={index}>{small(one, view.below ?? [])}</div>)}</>;
  }
  return <>{show(value, view.unit)}</>;
}

/** A row in a cell: its values in a line. */
function small(row: Row, below: Column[]): string {
  const named = below.length > 0 ? below : Object.keys(row).map((field) => ({ field, kind: 'text' as const, unit: undefined }));
  return named.flatMap((column) => {
    const told = show(at(row, column.field), column.unit);
    if (told === '') return [];
    return column.kind === 'number' || column.kind === 'flag' ? [`${heading(column.field).toLowerCase()} ${told}`] : [told];
  }).join(', ');
}

function sort(rows: Row[], view: View, down: boolean): Row[] {
  const key = (row: Row) => (view.order ? view.order(row) : at(row, view.field)) ?? '';
  const compare = (a: Json, b: Json): number =>
    typeof a === 'number' && typeof b === 'number' ? a - b : show(a).localeCompare(show(b), 'en', { numeric: true });
  return [...rows].sort((a, b) => (down ? -1 : 1) * compare(key(a), key(b)));
}
