/** What JSON can hold. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A row of a table, or another object of the API. The columns are in the API's own description. */
export type Row = { [name: string]: Json };

export function isRow(value: Json | undefined): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value of a field such as `traffic.up_octets`. */
export function at(row: Row, field: string): Json | undefined {
  let value: Json | undefined = row;
  for (const name of field.split('.')) {
    if (!isRow(value)) return undefined;
    value = value[name];
  }
  return value;
}

export function text(row: Row, field: string): string {
  const value = at(row, field);
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}

export function number(row: Row, field: string): number | undefined {
  const value = at(row, field);
  return typeof value === 'number' ? value : undefined;
}

export function texts(row: Row, field: string): string[] {
  const value = at(row, field);
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

export function rows(row: Row, field: string): Row[] {
  const value = at(row, field);
  return Array.isArray(value) ? value.filter(isRow) : [];
}
