import { isRow, type Json } from './row';

/** A word as it is typed in `sluice configure`: in quotes where it has blanks, quotes or backslashes. */
export function quoted(word: string): string {
  if (word !== '' && word !== '|' && !/[\s"\\\p{Cc}]/u.test(word)) return word;
  return `"${word.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n')}"`;
}

/** The lines that make a configuration: one `set PATH VALUE` for each value. */
export function setLines(tree: Json, path: string[] = []): string[] {
  const line = (words: string[]) => `set ${words.map(quoted).join(' ')}`;
  if (isRow(tree)) {
    const members = Object.entries(tree);
    if (members.length === 0) return path.length > 0 ? [line(path)] : [];
    return members.flatMap(([name, below]) => setLines(below, [...path, name]));
  }
  if (Array.isArray(tree)) return tree.flatMap((one) => setLines(one, path));
  return [line([...path, tree === null ? '' : String(tree)])];
}

/** The lines of an editor that say something: blank lines and comments go. */
export function editLines(text: string): string[] {
  return text.split('\n').map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
}
