import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, type Page } from '../api';
import { count } from '../format';
import { usePoll } from '../poll';
import { at, type Json, type Row } from '../row';
import { answerAddress, tables, type Column } from '../schema';
import { useRefusal } from '../session';
import { useStore } from '../store';
import { Button, ErrorBox, Loading, Notice } from './basics';
import { Table, type View } from './Table';

/** Rows of a page to choose from; the last one is the most that the API gives. */
const SIZES = [100, 300, 1000];

export interface PanelProps {
  /** Path of the table below `/api/v1/`. */
  path: string;
  caption?: string;
  values?: { [name: string]: string };
  /** Fields to show, in order, or columns of the page's own. Default: all that have a value somewhere. */
  views?: (string | View)[];
  /** Seconds after which it is read again; 0: only when it is asked for. */
  every?: number;
  limit?: number;
  empty?: string;
  actions?: (row: Row) => ComponentChildren;
  /** A field to type in, which filters the rows of this page. */
  filter?: boolean;
}

/** A table of the API: its pages, with all that belongs to them. */
export function TablePanel({ path, values = {}, every = 0, limit: first = 100, filter = false, ...look }: PanelProps) {
  const table = useStore(tables).get(path);
  const refusal = useRefusal(table?.role ?? 'view');
  const [cursors, setCursors] = useState<number[]>([0]);
  const [words, setWords] = useState('');
  const [limit, setLimit] = useState(first);
  const asked = JSON.stringify(values);
  useEffect(() => setCursors([0]), [path, asked, limit]);
  const cursor = cursors[cursors.length - 1] ?? 0;
  const key = table && refusal === null ? `${path} ${asked} ${limit} ${cursor}` : null;
  const answer = usePoll(key, (signal) => get<Page>(path, { ...values, limit, cursor }, signal), every);
  if (!table) return <Loading />;
  if (refusal) return <Notice kind="warn">{`${table.about}: ${refusal}`}</Notice>;
  const page = answer.data;
  const caption = look.caption ?? table.about;
  if (!page) return answer.error ? <ErrorBox error={answer.error} retry={answer.refresh} /> : <Loading />;
  const shown = filter ? matching(page.rows, words) : page.rows;
  const whole = cursor === 0 && page.next === null;
  return (
    <section class="panel">
      {answer.error && <ErrorBox error={answer.error} retry={answer.refresh} />}
      {page.missing.map((why) => <Notice key={why} kind="warn">{`Not complete: ${why}`}</Notice>)}
      {filter && page.rows.length > 0 && (
        <label class="inline">
          {whole ? 'Filter' : 'Filter this page'}
          <input type="search" class="names" placeholder=" " value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        </label>
      )}
      <Table
        caption={caption}
        views={viewsOf(table.columns, look.views, page.rows)}
        rows={shown}
        whole={whole}
        {...(look.actions ? { actions: look.actions } : {})}
        empty={words && page.rows.length > 0 ? 'No row of this page has that.' : look.empty ?? 'The table is empty.'}
      />
      <footer class="bar">
        <span>{`${count(shown.length)} rows${page.total === undefined || whole ? '' : ` of ${count(page.total)}`}${whole ? '' : `, page ${cursors.length}`}`}</span>
        {cursors.length > 1 && <Button onClick={() => setCursors(cursors.slice(0, -1))}>Previous page</Button>}
        {page.next !== null && <Button onClick={() => setCursors([...cursors, page.next ?? 0])}>Next page</Button>}
        {!(whole && limit === first) && (
          <label class="inline">
            Rows of a page
            <select value={String(limit)} onChange={(event) => setLimit(Number(event.currentTarget.value))}>
              {SIZES.map((size) => <option key={size} value={String(size)}>{String(size)}</option>)}
            </select>
          </label>
        )}
        <Button onClick={answer.refresh}>Refresh</Button>
        <a href={answerAddress(path, { ...values, limit: String(limit), cursor: String(cursor) })} target="_blank" rel="noreferrer">JSON</a>
      </footer>
    </section>
  );
}

function matching(rows: Row[], words: string): Row[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return rows;
  return rows.filter((row) => {
    const text = JSON.stringify(row).toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

/** What tells rows apart comes first. The API's description has no order of its own. */
const FIRST = ['at', 'severity', 'version', 'id', 'name', 'user', 'users', 'line', 'node_id', 'user_plane', 'plane', 'acl', 'number', 'port',
  'state', 'kind', 'prefix', 'address', 'count', 'mac', 'ipv4', 'ipv6_prefix'];

const there = (value: Json | undefined): boolean =>
  value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);

export function viewsOf(columns: Column[], wanted: (string | View)[] | undefined, rows: Row[]): View[] {
  if (wanted) {
    return wanted.map((view) => {
      const field = typeof view === 'string' ? view : view.field;
      const column = columns.find((one) => one.field === field);
      return typeof view === 'string' ? column ?? { field } : { ...column, ...view };
    });
  }
  const place = (column: Column) => {
    const first = FIRST.indexOf(column.field);
    return first >= 0 ? first : column.field.includes('.') ? 200 : 100;
  };
  const used = rows.length === 0 ? columns : columns.filter((column) => rows.some((row) => there(at(row, column.field))));
  return [...used].sort((a, b) => place(a) - place(b));
}
