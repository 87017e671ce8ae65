/** A line of a comparison: in both, only in the old text, or only in the new one. */
export interface DiffLine {
  kind: 'same' | 'gone' | 'new';
  text: string;
}

/** Lines of two texts that are compared at most in full; beyond it the middle is shown as replaced. */
const MOST_CELLS = 25_000_000;

/** Compares two texts by their lines: the longest common subsequence, after what both begin and end with. */
export function diff(before: string[], after: string[]): DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (
    end < before.length - start && end < after.length - start
    && before[before.length - 1 - end] === after[after.length - 1 - end]
  ) end += 1;
  const same = (text: string): DiffLine => ({ kind: 'same', text });
  return [
    ...before.slice(0, start).map(same),
    ...middle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ];
}

function middle(before: string[], after: string[]): DiffLine[] {
  const [rows, columns] = [before.length, after.length];
  if (rows * columns > MOST_CELLS) {
    return [
      ...before.map((text): DiffLine => ({ kind: 'gone', text })),
      ...after.map((text): DiffLine => ({ kind: 'new', text })),
    ];
  }
  // common[i][j]: length of the longest common subsequence of before[i..] and after[j..]
  const width = columns + 1;
  const common = new Uint32Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i -= 1) {
    for (let j = columns - 1; j >= 0; j -= 1) {
      common[i * width + j] = before[i] === after[j]
        ? common[(i + 1) * width + j + 1]! + 1
        : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < rows || j < columns) {
    if (i < rows && j < columns && before[i] === after[j]) {
      lines.push({ kind: 'same', text: before[i]! });
      i += 1;
      j += 1;
    } else if (j >= columns || (i < rows && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) {
      lines.push({ kind: 'gone', text: before[i]! });
      i += 1;
    } else {
      lines.push({ kind: 'new', text: after[j]! });
      j += 1;
    }
  }
  return lines;
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
