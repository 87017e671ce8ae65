import { number, type Row } from './row';

/** Lines of rows that stand for some seconds each. Where rows are missing, there is a gap. */
export function gaps(rows: Row[], fields: string[]): { times: number[]; lines: (number | null)[][] } {
  const times: number[] = [];
  const lines: (number | null)[][] = fields.map(() => []);
  for (const row of rows) {
    const time = number(row, 'at') ?? 0;
    const seconds = number(row, 'seconds') ?? 0;
    const last = times[times.length - 1];
    if (last !== undefined && time - last > 1.5 * seconds) {
      times.push(last + seconds);
      lines.forEach((line) => line.push(null));
    }
    times.push(time);
    fields.forEach((field, place) => lines[place]!.push(number(row, field) ?? null));
  }
  return { times, lines };
}

/** A mark on the axis of time: as much of the time as tells it from its neighbours. */
export function mark(time: number, times: ArrayLike<number>): string {
  const span = (times[times.length - 1] ?? 0) - (times[0] ?? 0);
  const whole = new Date(time * 1000).toISOString();
  if (span > 3 * 86400) return whole.slice(5, 10);
  return span > 2 * 3600 ? whole.slice(11, 16) : whole.slice(11, 19);
}
