/** A word that may come next on a line. */
export interface Option {
  word: string;
  help: string;
}

/** What the API says of a line up to the cursor. */
export interface Completions {
  /** Characters of the line before the word that is being typed. */
  begins: number;
  place: string;
  about: string;
  expected: string | null;
  options: Option[];
  /** Options beyond those. */
  more: number;
}

/** A line up to the cursor, and the lines above it. */
export interface Typed {
  line: string;
  edits: string[];
}

/** Characters of the lines above that are told at most, and of a line that is asked about: the API takes 16 KiB. */
const MOST_ABOVE = 4000;
const LONGEST_LINE = 1000;

const lineStart = (text: string, cursor: number): number => text.slice(0, cursor).lastIndexOf('\n') + 1;

/** What the API is asked at a cursor. Of the lines above, the nearest ones count. */
export function typedAt(text: string, cursor: number): Typed {
  const start = lineStart(text, cursor);
  const above = text.slice(Math.max(0, start - MOST_ABOVE), start);
  const whole = start > MOST_ABOVE ? above.slice(above.indexOf('\n') + 1) : above;
  const edits = whole.split('\n').filter((line) => line.trim() !== '');
  return { line: text.slice(start, cursor), edits };
}

/** Whether a line can be helped with: no comment, and no longer than lines are. */
export const canBeHelped = ({ line }: Typed): boolean => !line.trimStart().startsWith('#') && line.length <= LONGEST_LINE;

/** Where in a line the word begins that is being typed. */
const wordStart = (line: string, begins: number): number => [...line].slice(0, begins).join('').length;

/** What an earlier answer says of a line on which the same word is longer now, so that it need not be asked for; `null` if it has to be. */
export function narrowed(answer: Completions, asked: Typed, now: Typed): Completions | null {
  const sameAbove = asked.edits.join('\n') === now.edits.join('\n');
  if (!sameAbove || !now.line.startsWith(asked.line)) return null;
  if (now.line === asked.line) return answer;
  const word = now.line.slice(wordStart(now.line, answer.begins));
  if (answer.more > 0 || /[\s"\\]/.test(word)) return null;
  return { ...answer, options: answer.options.filter((option) => option.word.replace(/^"/, '').startsWith(word)) };
}

/** What an option replaces, and with what: the word up to the cursor, and a blank behind it. */
export function insertion(text: string, cursor: number, begins: number, option: Option): { from: number; to: number; text: string } {
  const start = lineStart(text, cursor);
  const from = start + wordStart(text.slice(start, cursor), begins);
  return { from, to: text[cursor] === ' ' ? cursor + 1 : cursor, text: `${option.word} ` };
}
