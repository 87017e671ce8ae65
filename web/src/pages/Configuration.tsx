import { useEffect, useMemo, useState } from 'preact/hooks';
import { get } from '../api';
import { plural } from '../format';
import { ErrorBox, Loading, Notice, Tabs } from '../parts/basics';
import { LineEditor } from '../parts/LineEditor';
import { Yaml } from '../parts/Yaml';
import { usePoll } from '../poll';
import { setValues, type Route } from '../router';
import { text, type Json, type Row } from '../row';
import { useRefusal } from '../session';
import { editLines, setLines } from '../setlines';
import { Store, useStore } from '../store';
import { changed } from '../versions';
import { Change } from './Change';
import { BringBack, Compare, Versions } from './Versions';

/** Lines to choose from at most. */
const MOST_CHOICES = 300;

/** What is typed. It stays when another page is looked at. */
const typed = new Store('');

export function Configuration({ route }: { route: Route }) {
  const part = route.parts[1];
  return (
    <>
      <h1>Configuration</h1>
      <Tabs
        label="Configuration"
        now={part === undefined ? 'Now, and changes' : 'Versions'}
        tabs={[['Now, and changes', '#/configuration'], ['Versions', '#/configuration/versions']]}
      />
      {part === undefined && <Now route={route} />}
      {part === 'versions' && <Versions />}
      {part === 'compare' && <Compare route={route} />}
      {part === 'bring-back' && <BringBack version={Number(route.parts[2])} />}
    </>
  );
}

function Now({ route }: { route: Route }) {
  const refusal = useRefusal('support');
  const change = useStore(changed);
  const answer = usePoll(refusal ? null : 'configuration', (signal) => get<Row>('configuration', {}, signal), 0, change);
  const offered = route.values.get('lines');
  useEffect(() => {
    if (!offered) return;
    add(offered);
    setValues(route, { lines: '' });
  }, [offered]);
  if (refusal) return <Notice kind="warn">{refusal}</Notice>;
  if (!answer.data) return answer.error ? <ErrorBox error={answer.error} retry={answer.refresh} /> : <Loading />;
  const version = Number(answer.data['version']);
  const tree = answer.data['tree'] ?? null;
  return (
    <div class="split">
      <Editor version={version} tree={tree} />
      <section aria-labelledby="now">
        <h2 id="now">{`Version ${version}, in force`}</h2>
        <View document={text(answer.data, 'document')} tree={tree} />
      </section>
    </div>
  );
}

function add(line: string): void {
  const before = typed.get();
  typed.set(before === '' || before.endsWith('\n') ? `${before}${line}\n` : `${before}\n${line}\n`);
}

function Editor({ version, tree }: { version: number; tree: Json }) {
  const lines = useStore(typed);
  const refusal = useRefusal('configure');
  // what the edits start from: others may commit while they are typed
  const [base, setBase] = useState(version);
  useEffect(() => {
    if (lines === '') setBase(version);
  }, [lines === '', version]);
  const edits = editLines(lines);
  return (
    <section aria-labelledby="change">
      <h2 id="change">Change</h2>
      {refusal && <Notice kind="warn">{refusal}</Notice>}
      <LineEditor
        value={lines}
        readOnly={refusal !== null}
        placeholder="set ipv4-pools more prefix 100.96.0.0/16"
        onChange={(text) => typed.set(text)}
      >
        Lines, as in <code>sluice configure</code>: <code>set PATH VALUE</code> or <code>delete PATH</code>, one a line
      </LineEditor>
      {base !== version && lines !== '' && (
        <Notice kind="warn">
          {`The lines start from version ${base}, but version ${version} is in force. What it changed elsewhere stays; a change of the same place is refused. `}
          <button type="button" onClick={() => setBase(version)}>{`Start from version ${version}`}</button>
        </Notice>
      )}
      <Change change={edits.length > 0 ? { edits, base } : null} before={tree} done={() => typed.set('')} />
    </section>
  );
}

function View({ document, tree }: { document: string; tree: Json }) {
  const [as, setAs] = useState<'yaml' | 'set'>('yaml');
  return (
    <>
      <fieldset class="choice">
        <legend>Shown as</legend>
        <label><input type="radio" name="as" checked={as === 'yaml'} onChange={() => setAs('yaml')} /> YAML</label>
        <label><input type="radio" name="as" checked={as === 'set'} onChange={() => setAs('set')} /> set lines, to take into the change</label>
      </fieldset>
      {as === 'yaml' ? <Yaml document={document} /> : <Choices tree={tree} />}
      <a href="/api/v1/configuration" target="_blank" rel="noreferrer">JSON</a>
    </>
  );
}

/** The configuration in lines, each of which can be taken into the editor. */
function Choices({ tree }: { tree: Json }) {
  const [words, setWords] = useState('');
  const all = useMemo(() => setLines(tree), [tree]);
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((line) => wanted.every((word) => line.toLowerCase().includes(word)));
  return (
    <>
      <label class="inline">Filter <input type="search" class="names" placeholder=" " value={words} onInput={(event) => setWords(event.currentTarget.value)} /></label>
      <ul class="choices">
        {found.slice(0, MOST_CHOICES).map((line) => (
          <li key={line}><button type="button" class="bare" onClick={() => add(line)}><code>{line}</code></button></li>
        ))}
      </ul>
      {found.length > MOST_CHOICES && <p>{`${plural(found.length - MOST_CHOICES, 'line')} more: filter them.`}</p>}
    </>
  );
}

