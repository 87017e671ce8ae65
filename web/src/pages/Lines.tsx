import { Tabs } from '../parts/basics';
import { TablePanel } from '../parts/TablePanel';
import { go, link, type Route } from '../router';
import { Heat } from './Heat';
import { LINE_VIEWS } from './views';

export function Lines({ route }: { route: Route }) {
  const byHour = route.parts[1] === 'hours';
  return (
    <>
      <h1>Access lines</h1>
      <Tabs label="Access lines" now={byHour ? 'By hour' : 'Lines'} tabs={[['Lines', '#/lines'], ['By hour', '#/lines/hours']]} />
      {byHour ? <Heat route={route} /> : <Each route={route} />}
    </>
  );
}

/** Each line: those with the most trouble first, unless all are asked for. */
function Each({ route }: { route: Route }) {
  const line = route.values.get('line') ?? '';
  const since = route.values.get('since') ?? '';
  const worst = route.values.get('worst') ?? (line ? '' : 'true');
  const ask = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const typed = (name: string) => String(form.get(name) ?? '').trim();
    go(link(['lines'], { line: typed('line'), since: typed('since'), worst: form.has('worst') ? 'true' : 'no' }));
  };
  const values = { line, since, worst: worst === 'true' ? 'true' : '' };
  return (
    <>
      <form class="row" onSubmit={ask} key={JSON.stringify(values)}>
        <label>Line, circuit id, name or MAC <input name="line" class="names" placeholder=" " defaultValue={line} autocomplete="off" /></label>
        <label>Since <input name="since" defaultValue={since} placeholder="-24h" autocomplete="off" /></label>
        <label class="inline"><input type="checkbox" name="worst" defaultChecked={worst === 'true'} /> only lines with trouble, most first</label>
        <button type="submit" class="main">Show</button>
      </form>
      <TablePanel
        path="lines"
        values={values}
        views={LINE_VIEWS}
        filter
        empty={values.worst ? 'No line has had trouble.' : 'No line is known.'}
      />
    </>
  );
}
