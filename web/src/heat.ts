import { number, rows, text, type Row } from './row';

/** Levels of colour above none. */
const LEVELS = 5;

/** A cell of the heat map: an hour of lines that belong together. */
export interface Cell {
  /** How much there was; `null`: nothing was counted then. */
  count: number | null;
  /** 0: nothing; the largest count has the highest level. */
  level: number;
}

/** A row of the heat map. */
export interface Heat {
  lines: string;
  total: number;
  cells: Cell[];
}

/** Rows of the table `trouble` as cells. Levels grow with the logarithm of the count: one failure is seen beside a thousand. */
export function heat(table: Row[]): { hours: number[]; rows: Heat[] } {
  const hours = rows(table[0] ?? {}, 'hours').map((hour) => number(hour, 'at') ?? 0);
  const counted = table.map((row) => {
    // the hour in which counting began is known in part
    const since = number(row, 'counted_since') ?? 0;
    return rows(row, 'hours').map((hour) => ((number(hour, 'at') ?? 0) + 3600 <= since ? null : sum(hour)));
  });
  const most = Math.max(1, ...counted.flat().map((count) => count ?? 0));
  const level = (count: number | null) => (count ? Math.max(1, Math.ceil((LEVELS * Math.log(1 + count)) / Math.log(1 + most) - 1e-9)) : 0);
  return {
    hours,
    rows: table.map((row, place) => ({
      lines: text(row, 'lines'),
      total: sum(row),
      cells: counted[place]!.map((count) => ({ count, level: level(count) })),
    })),
  };
}

const sum = (row: Row): number => ['ended', 'failed', 'refused'].reduce((all, field) => all + (number(row, field) ?? 0), 0);
