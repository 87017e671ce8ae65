import { useState } from 'preact/hooks';
import { get, type Page } from '../api';
import { Badge, Button, ErrorBox, Loading, Notice } from '../parts/basics';
import { Diff } from '../parts/Diff';
import { Table } from '../parts/Table';
import { Yaml } from '../parts/Yaml';
import { usePoll } from '../poll';
import { go, link, type Route } from '../router';
import { number, text, type Row } from '../row';
import { useRefusal } from '../session';
import { useStore } from '../store';
import { changed } from '../versions';
import { Change } from './Change';

const of = (row: Row): number => number(row, 'version') ?? 0;

/** The versions, the newest first: who made each, when and why. */
export function Versions() {
  const change = useStore(changed);
  const refusal = useRefusal('support');
  const answer = usePoll('versions', (signal) => get<Page>('versions', { limit: 1000 }, signal), 10, change);
  const [chosen, setChosen] = useState<number[]>([]);
  if (!answer.data) return answer.error ? <ErrorBox error={answer.error} retry={answer.refresh} /> : <Loading />;
  const versions = [...answer.data.rows].sort((a, b) => of(b) - of(a));
  const newest = of(versions[0] ?? {});
  // the latest two that were chosen
  const choose = (version: number) =>
    setChosen((now) => (now.includes(version) ? now.filter((one) => one !== version) : [...now.slice(-1), version]));
  const [a, b] = [...chosen].sort((x, y) => x - y);
  return (
    <section class="panel">
      <Table
        caption="Versions, the newest first"
        rows={versions}
        whole={false}
        views={[
          { field: 'version' },
          { field: 'at', label: 'When', unit: 'seconds since 1970', kind: 'number' },
          { field: 'by' },
          {
            field: 'state', label: 'State',
            cell: (row) => of(row) === newest && <Badge word={typeof row['confirm_by'] === 'number' ? 'waits' : 'in-force'} />,
          },
          { field: 'comment' },
          {
            field: 'compare', label: 'Compare',
            cell: (row) => <input type="checkbox" aria-label={`Compare version ${of(row)}`} checked={chosen.includes(of(row))} onChange={() => choose(of(row))} />,
          },
        ]}
        actions={(row) => (
          <>
            <a href={link(['configuration', 'compare'], { b: of(row) })}>Show</a>
            {of(row) !== newest && <>{' '}<a href={link(['configuration', 'bring-back', String(of(row))])}>Bring back…</a></>}
          </>
        )}
      />
      <footer class="bar">
        <Button disabled={a === undefined || b === undefined || refusal !== null} onClick={() => go(link(['configuration', 'compare'], { a, b }))}>
          {a !== undefined && b !== undefined ? `Compare ${a} with ${b}` : 'Compare: choose two'}
        </Button>
        <a href="/api/v1/versions?limit=1000" target="_blank" rel="noreferrer">JSON</a>
      </footer>
    </section>
  );
}

const useVersion = (version: string | null) =>
  usePoll(version ? `version ${version}` : null, (signal) => get<Row>('configuration', { version: version ?? '' }, signal));

/** What changed from one version to another; with only one, that version. */
export function Compare({ route }: { route: Route }) {
  const [a, b] = [route.values.get('a'), route.values.get('b')];
  const [before, after] = [useVersion(a), useVersion(b)];
  const error = before.error ?? after.error;
  if (error) return <ErrorBox error={error} />;
  if (!after.data || (a && !before.data)) return <Loading />;
  return (
    <section>
      <p class="crumbs"><a href="#/configuration/versions">All versions</a></p>
      <h2>{a ? `From version ${a} to version ${b}` : `Version ${b}`}</h2>
      {a && before.data
        ? <Diff label={`From version ${a} to version ${b}`} before={text(before.data, 'document').split('\n')} after={text(after.data, 'document').split('\n')} />
        : <Yaml document={text(after.data, 'document')} />}
    </section>
  );
}

/** Brings an earlier version back: a change like any other, with its effects before it is committed. */
export function BringBack({ version }: { version: number }) {
  const change = useStore(changed);
  const [done, setDone] = useState(false);
  const now = usePoll('configuration', (signal) => get<Row>('configuration', {}, signal), 0, change);
  const refusal = useRefusal('configure');
  if (refusal) return <Notice kind="warn">{refusal}</Notice>;
  if (!now.data) return now.error ? <ErrorBox error={now.error} retry={now.refresh} /> : <Loading />;
  return (
    <section>
      <p class="crumbs"><a href="#/configuration/versions">All versions</a></p>
      <h2>{`Bring version ${version} back`}</h2>
      <Change change={done ? null : { version }} before={now.data['tree'] ?? null} done={() => setDone(true)} />
    </section>
  );
}
