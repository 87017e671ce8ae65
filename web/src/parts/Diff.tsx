import { around, diff } from '../diff';

/** Lines around a change. */
const CONTEXT = 3;

/** What two texts differ in. */
export function Diff({ label, before, after }: { label: string; before: string[]; after: string[] }) {
  const lines = diff(before, after);
  if (lines.every((line) => line.kind === 'same')) return <p class="empty">There is no difference.</p>;
  const marks = { same: ' ', gone: '-', new: '+' };
  return (
    <pre class="diff" tabIndex={0} aria-label={label}>
      {around(lines, CONTEXT).map((line, index) => (line === null
        ? <span key={index} class="left-out">{'⋯\n'}</span>
        : <span key={index} class={line.kind}>{`${marks[line.kind]} ${line.text}\n`}</span>))}
    </pre>
  );
}
