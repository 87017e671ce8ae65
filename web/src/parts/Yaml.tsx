import { plural } from '../format';

/** Lines that are shown at most. */
const MOST_LINES = 5000;

/** A configuration as a document. */
export function Yaml({ document }: { document: string }) {
  const lines = document.split('\n');
  return (
    <>
      <pre tabIndex={0} aria-label="Configuration as YAML">{lines.slice(0, MOST_LINES).join('\n')}</pre>
      {lines.length > MOST_LINES && <p>{`${plural(lines.length - MOST_LINES, 'line')} more: see JSON.`}</p>}
    </>
  );
}
