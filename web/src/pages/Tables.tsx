import { Notice } from '../parts/basics';
import { Field } from '../parts/Field';
import { TablePanel } from '../parts/TablePanel';
import { go, link, type Route } from '../router';
import { tables, type Table } from '../schema';
import { useStore } from '../store';
import { may, me } from '../session';

/** Every table of the API, as the API describes it. */
export function Tables({ route }: { route: Route }) {
  const all = useStore(tables);
  const path = route.parts.slice(1).join('/');
  const table = all.get(path);
  if (path && !table) return <Notice kind="warn">{`There is no table ${path}.`}</Notice>;
  return table ? <One key={path} table={table} route={route} /> : <List all={[...all.values()]} />;
}

function List({ all }: { all: Table[] }) {
  const role = useStore(me)?.role ?? 'view';
  return (
    <>
      <h1>All tables</h1>
      <ul class="list">
        {all.map((table) => (
          <li key={table.path}>
            <a href={link(['tables', ...table.path.split('/')])}>{table.path.replace('/', ' ')}</a>
            {` ${table.about}`}
            {!may(role, table.role) && <small>{` (needs the role ${table.role})`}</small>}
          </li>
        ))}
      </ul>
      <p><a href="/api/v1/openapi.json" target="_blank" rel="noreferrer">Description of the API (OpenAPI 3.1)</a></p>
    </>
  );
}

function One({ table, route }: { table: Table; route: Route }) {
  const values = Object.fromEntries(table.arguments.map(({ name }) => [name, route.values.get(name) ?? '']));
  const missing = table.arguments.filter(({ name, required }) => required && !values[name]);
  const ask = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const typed = table.arguments.map(({ name }) => [name, String(form.get(name) ?? '').trim()]);
    go(link(['tables', ...table.path.split('/')], Object.fromEntries(typed)));
  };
  return (
    <>
      <p class="crumbs"><a href="#/tables">All tables</a></p>
      <h1>{table.path.replace('/', ' ')}</h1>
      {table.arguments.length > 0 && (
        <form class="row" onSubmit={ask} key={JSON.stringify(values)}>
          {table.arguments.map((argument) => <Field key={argument.name} argument={argument} value={values[argument.name] ?? ''} />)}
          <button type="submit" class="main">Show</button>
        </form>
      )}
      {missing.length > 0
        ? <Notice>{`Fill in: ${missing.map(({ name }) => name).join(', ')}`}</Notice>
        : <TablePanel path={table.path} values={values} filter />}
      <details>
        <summary>Columns</summary>
        <dl class="facts">
          {table.columns.map((column) => (
            <div key={column.field}><dt><code>{column.field}</code></dt><dd>{column.about}{column.unit ? ` (${column.unit})` : ''}</dd></div>
          ))}
        </dl>
      </details>
    </>
  );
}
