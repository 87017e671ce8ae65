import { diffArrays } from 'diff';

/** A line of a comparison: in both, only in the old text, or only in the new one. */
export interface DiffLine {
  kind: 'same' | 'gone' | 'new';
  text: string;
}

/** Lines that may be gone and new together; beyond it everything is shown as replaced. The time rises with the square of it. */
const MOST_EDITS = 5000;

/** Compares two texts by their lines. */
export function diff(before: string[], after: string[]): DiffLine[] {
  const lines = (kind: DiffLine['kind'], texts: string[]) => texts.map((text): DiffLine => ({ kind, text }));
  const changes = diffArrays(before, after, { maxEditLength: MOST_EDITS });
  if (!changes) return [...lines('gone', before), ...lines('new', after)];
  return changes.flatMap(({ removed, added, value }) => lines(removed ? 'gone' : added ? 'new' : 'same', value));
}

/** Leaves out what is the same, except some lines around each change. `null` stands for lines that are left out. */
export function around(lines: DiffLine[], context: number): (DiffLine | null)[] {
  const near = new Set<number>();
  lines.forEach((line, index) => {
    if (line.kind === 'same') return;
    for (let i = index - context; i <= index + context; i += 1) near.add(i);
  });
  const shown: (DiffLine | null)[] = [];
  lines.forEach((line, index) => {
    if (near.has(index)) shown.push(line);
    else if (shown.length === 0 || shown[shown.length - 1] !== null) shown.push(null);
  });
  return shown;
}
