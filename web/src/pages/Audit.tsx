import { useState } from 'preact/hooks';
import { post, Problem } from '../api';
import { Button, Dialog, ErrorBox, Notice } from '../parts/basics';
import { Table } from '../parts/Table';
import { rows, texts, type Row } from '../row';

/** The resource audit of every plane: what is leaked, and what is missing. */
export function Audit() {
  const [result, setResult] = useState<Row | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const run = async (repair: boolean) => {
    setAsking(false);
    setBusy(true);
    setError(null);
    try {
      setResult(await post<Row>('actions/check', repair ? { resources: true, repair } : { resources: true }));
    } catch (problem) {
      setError(problem instanceof Problem ? problem : new Error(String(problem)));
    }
    setBusy(false);
  };
  const accounts = result ? rows(result, 'accounts') : [];
const findings = result ? rows(result, 'findings') : [];
  const balanced = result?.['balanced'] === true;
  return (
    <section>
      <p>Compares addresses, ids, tunnels, rules, routes and timers of every plane with the sessions that they are for.</p>
      <div class="actions">
        <Button needs="operate" kind="main" disabled={busy} onClick={() => void run(false)}>{busy ? 'It runs…' : 'Run the audit'}</Button>
        {result && !balanced && <Button needs="operate" kind="danger" disabled={busy} onClick={() => setAsking(true)}>Repair…</Button>}
      </div>
      {asking && (
        <Dialog title="Repair?" close={() => setAsking(false)}>
          <p>Leaked resources are released, missing ones are allocated. A session that cannot keep its resources ends.</p>
          <div class="actions">
            <Button kind="danger" needs="operate" onClick={() => void run(true)}>Repair</Button>
            <Button onClick={() => setAsking(false)}>Cancel</Button>
          </div>
        </Dialog>
      )}
      {error && <ErrorBox error={error} />}
      {result && (balanced
        ? <Notice kind="good">Every resource has its owner, and nothing is missing.</Notice>
        : <Notice kind="bad">Resources are leaked or missing: see below.</Notice>)}
      {result && (
        <Table
          caption="Resources of each plane"
          rows={accounts}
          views={[
            { field: 'plane' },
            { field: 'kind' },
            { field: 'booked', label: 'Allocated', kind: 'number' },
            { field: 'owned', label: 'Owned', kind: 'number' },
            { field: 'without_owner', label: 'Leaked', kind: 'number' },
            { field: 'missing', label: 'Missing', kind: 'number' },
          ]}
        />
      )}
      {findings.length > 0 && (
        <Table
          caption="Differences"
          rows={findings}
          views={[{ field: 'plane' }, { field: 'kind' }, { field: 'fault' }, { field: 'what' }, { field: 'whose' }, { field: 'meaning' },
            { field: 'repaired', kind: 'flag' }]}
        />
      )}
      {result && texts(result, 'missing').map((why) => <Notice key={why} kind="warn">{`Not complete: ${why}`}</Notice>)}
    </section>
  );
}
