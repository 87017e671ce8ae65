import { useState } from 'preact/hooks';
import { post, url } from '../api';
import { octets } from '../format';
import { Button, ErrorBox, Notice } from '../parts/basics';
import { number, text, type Row } from '../row';
import { useRefusal } from '../session';

/** Times of which records are offered. */
const TIMES = [['The last 24 hours', '-1d'], ['The last 31 days', '-31d']] as const;

/** A copy of the history, made while it is written. */
export function Backup() {
  const [made, setMade] = useState<Row | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const refusal = useRefusal('support');
  const run = async () => {
    setBusy(true);
    setMade(null);
    setError(null);
    try {
      setMade(await post<Row>('actions/backup-history', {}));
    } catch (problem) {
      setError(problem instanceof Error ? problem : new Error(String(problem)));
    }
    setBusy(false);
  };
  return (
    <section>
      <h2>Backup</h2>
      <p>Copies all events and figures up to now into one file beside the history, on the machine of the control plane. The next backup takes its place.</p>
      <div class="actions">
        <Button needs="operate" kind="main" disabled={busy} onClick={() => void run()}>{busy ? 'It is copied…' : 'Back up the history'}</Button>
      </div>
      {error && <ErrorBox error={error} />}
      {made && <Notice kind="good"><code>{text(made, 'path')}</code>{` has the history up to now, ${octets(number(made, 'octets') ?? 0)}.`}</Notice>}
      <h2>Session records</h2>
      <p>A line of JSON for each session that has ended, with its traffic.</p>
      {refusal && <Notice kind="warn">{refusal}</Notice>}
      {!refusal && TIMES.map(([label, since]) => <p key={since}><a href={url('records', { since })} download="records.jsonl">{label}</a></p>)}
    </section>
  );
}
