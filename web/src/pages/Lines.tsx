import { TablePanel } from '../parts/TablePanel';
import { go, link, type Route } from '../router';
import { LINE_VIEWS } from './views';

/** Access lines: those with the most trouble first, unless all are asked for. */
export function Lines({ route }: { route: Route }) {
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
      <h1>Access lines</h1>
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
