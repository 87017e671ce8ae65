import { learn } from '../hide';
import { Field } from '../parts/Field';
import { TablePanel } from '../parts/TablePanel';
import { go, link, type Route } from '../router';
import { tables } from '../schema';
import { useStore } from '../store';
import { ClearSessions, Clearing } from './ClearSessions';
import { SESSION_VIEWS } from './views';

/** All sessions, or those that a filter matches, by pages. The filter is in the page's address. */
export function Sessions({ route }: { route: Route }) {
  const known = useStore(tables).get('sessions')?.arguments ?? [];
  const given = known.map(({ name }) => [name, route.values.get(name) ?? ''] as const).filter(([, value]) => value !== '');
  given.forEach(([, value]) => learn(value)); // whoever is looked for may be in no answer
  const values = Object.fromEntries(given);
  const address = JSON.stringify(values);
  const ask = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    go(link(['subscribers'], Object.fromEntries(known.map(({ name }) => [name, String(form.get(name) ?? '').trim()]))));
  };
  return (
    <>
      <details open={given.length > 0}>
        <summary>Filter all sessions</summary>
        <form class="row" onSubmit={ask} key={address}>
          {known.map((argument) => <Field key={argument.name} argument={argument} value={values[argument.name] ?? ''} />)}
          <button type="submit" class="main">Show</button>
          {given.length > 0 && <a href="#/subscribers">All sessions</a>}
        </form>
      </details>
      {given.length > 0 && <div class="actions"><ClearSessions key={address} values={values} /></div>}
      <Clearing />
      <TablePanel
        path="sessions"
        values={values}
        views={SESSION_VIEWS}
        filter
        empty={given.length > 0 ? 'No session matches.' : 'Nobody is connected.'}
      />
    </>
  );
}
