import { get } from './api';
import { query } from './query';
import { isRow, type Json, type Row } from './row';
import { ROLES, type Role } from './session';
import { Store } from './store';

/** A column of a table, as the API describes it. */
export interface Column {
  field: string;
  about: string;
  unit?: string;
  kind: 'text' | 'number' | 'flag' | 'texts' | 'rows';
  /** Columns of rows that are in a cell. */
  below: Column[];
}

/** An argument of a table. */
export interface Argument {
  name: string;
  about: string;
  required: boolean;
  kind: 'text' | 'number' | 'flag';
  /** The words of which it is one. */
  words?: string[];
}

export interface Table {
  /** Its path below `/api/v1/`. */
  path: string;
  about: string;
  role: Role;
  arguments: Argument[];
  columns: Column[];
}

/** The tables of the API by their paths; empty until they are read. */
export const tables = new Store<Map<string, Table>>(new Map());

export async function readTables(signal: AbortSignal): Promise<void> {
  tables.set(describe(await get<Row>('openapi.json', {}, signal)));
}

/** Arguments of every table that are not its own: the page turns pages. */
const OF_PAGES = ['limit', 'cursor'];

function dig(value: Json | undefined, ...names: string[]): Json | undefined {
  return names.reduce<Json | undefined>((below, name) => (isRow(below) ? below[name] : undefined), value);
}

const word = (value: Json | undefined): string => (typeof value === 'string' ? value : '');

/** Reads the tables in a description of the API (OpenAPI 3.1): what answers GET with `rows`. */
export function describe(document: Row): Map<string, Table> {
  const found = new Map<string, Table>();
  const paths = dig(document, 'paths');
  for (const [path, methods] of Object.entries(isRow(paths) ? paths : {})) {
    const operation = dig(methods, 'get');
    const row = dig(operation, 'responses', '200', 'content', 'application/json', 'schema', 'properties', 'rows', 'items');
    if (!isRow(row) || !isRow(operation)) continue;
    const name = path.replace(/^\/api\/v1\//, '');
    const parameters = operation['parameters'];
    found.set(name, {
      path: name,
      about: word(operation['summary']),
      role: ROLES.find((role) => role === operation['x-sluice-role']) ?? 'configure',
      arguments: Array.isArray(parameters) ? parameters.filter(isRow).flatMap(argument) : [],
      columns: columns(row),
    });
  }
  return found;
}

function argument(parameter: Row): Argument[] {
  const name = word(parameter['name']);
  if (parameter['in'] !== 'query' || OF_PAGES.includes(name)) return [];
  const type = word(dig(parameter, 'schema', 'type'));
  const kind = type === 'boolean' ? 'flag' : type === 'integer' ? 'number' : 'text';
  const words = dig(parameter, 'schema', 'enum');
  return [{
    name,
    about: word(parameter['description']),
    required: parameter['required'] === true,
    kind,
    ...(Array.isArray(words) ? { words: words.map(word) } : {}),
  }];
}

/** The columns of a row's schema. A member `b` of an object `a` is the column `a.b`. */
function columns(schema: Json | undefined, before = ''): Column[] {
  const properties = dig(schema, 'properties');
  if (!isRow(properties)) return [];
  return Object.entries(properties).flatMap(([name, of]) => {
    const field = before + name;
    const about = word(dig(of, 'description'));
    const below = columns(of, `${field}.`);
    // an object without a sentence of its own only holds others
    return about === '' && below.length > 0 ? below : [column(field, about, of), ...below];
  });
}

function column(field: string, about: string, schema: Json): Column {
  const type = dig(schema, 'type');
  const types = Array.isArray(type) ? type : [type ?? null];
  const below = columns(dig(schema, 'items'));
  const kind = types.includes('boolean') ? 'flag'
    : types.includes('integer') ? 'number'
    : types.includes('array') ? (below.length > 0 ? 'rows' : 'texts')
    : 'text';
  const unit = word(dig(schema, 'x-sluice-unit'));
  return { field, about, kind, below, ...(unit ? { unit } : {}) };
}

/** Address of the answer itself, as JSON. */
export const answerAddress = (path: string, values: { [name: string]: string }): string => `/api/v1/${path}${query(values)}`;
