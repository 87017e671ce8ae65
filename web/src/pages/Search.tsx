import { useEffect } from 'preact/hooks';
import { get, Problem } from '../api';
import { learn } from '../hide';
import { ErrorBox, Loading, Notice, Tabs } from '../parts/basics';
import { Table } from '../parts/Table';
import { TablePanel } from '../parts/TablePanel';
import { usePoll } from '../poll';
import { identities, isAddress } from '../query';
import { link, type Route } from '../router';
import { text, type Row } from '../row';
import { useRefusal } from '../session';
import { ClearBackOff } from './ClearBackOff';
import { Explain } from './Explain';
import { History } from './History';
import { Holders } from './Holders';
import { Sessions } from './Sessions';
import { LINE_VIEWS, SESSION_VIEWS } from './views';

/** Sessions that a text names, and the text in the form in which the API knows it. */
async function find(typed: string, signal: AbortSignal): Promise<{ sessions: Row[]; as: string }> {
  const forms = identities(typed);
  for (const form of forms) {
    try {
      return { sessions: await get<Row[]>('subscriber', { subscriber: form }, signal), as: form };
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) throw error;
    }
  }
  return { sessions: [], as: forms[forms.length - 1] ?? typed };
}

/** Whatever a text names: sessions now, lines, who had the address, and what happened. */
export function Search({ route }: { route: Route }) {
  const typed = route.values.get('q') ?? '';
  learn(typed); // whoever is looked for may be in no answer
  const refusal = useRefusal('support');
  const found = usePoll(refusal || !typed ? null : typed, (signal) => find(typed, signal));
  const only = found.data?.sessions.length === 1 ? found.data.sessions[0] : undefined;
  useEffect(() => {
    // one session is what was looked for; going back leads to what was before the search
    if (only) location.replace(link(['session', text(only, 'id')]));
  }, [only]);
  if (refusal) return <Notice kind="warn">{refusal}</Notice>;
  if (!typed) return <Notice>Type a user name, an address, a MAC address, a line, a circuit id or a session into the search field.</Notice>;
  if (found.error) return <ErrorBox error={found.error} retry={found.refresh} />;
  if (!found.data || only) return <Loading />;
  const { sessions, as } = found.data;
  return (
    <>
      <h1>Search: <span>{typed}</span></h1>
      {sessions.length > 0
        ? <Table caption="Sessions now" views={SESSION_VIEWS} rows={sessions} />
        : <Notice kind="warn">It has no session now. What is known from before:</Notice>}
      {sessions.length === 0 && !isAddress(as) && <div class="actions"><ClearBackOff who={as} /></div>}
      {sessions.length === 0 && <Explain key={as} subscriber={as} open />}
      {isAddress(as) && <Holders address={as} at="" />}
      <h2>Access lines</h2>
      <TablePanel path="lines" caption="Lines where it has been" values={{ line: as }} views={LINE_VIEWS} empty="It was on no line in the last day." />
      <h2>Events</h2>
      <History subscriber={as} />
    </>
  );
}

/** All sessions, or all subscribers, by pages. */
export function Subscribers({ route }: { route: Route }) {
  const which = route.parts[1] === 'all' ? 'Subscribers' : 'Sessions';
  return (
    <>
      <h1>Subscribers</h1>
      <Tabs label="Tables of subscribers" now={which} tabs={[['Sessions', '#/subscribers'], ['Subscribers', '#/subscribers/all']]} />
      {which === 'Sessions'
        ? <Sessions route={route} />
        : <TablePanel key="subscribers" path="subscribers" views={SUBSCRIBER_VIEWS} filter empty="Nobody is connected." />}
    </>
  );
}

const SUBSCRIBER_VIEWS = [
  { field: 'name', label: 'Subscriber', cell: (row: Row) => <a href={link(['search'], { q: text(row, 'name') })}>{text(row, 'name')}</a> },
  'sessions', 'online', 'ipv4', 'ipv6_prefixes', 'routes', 'online_seconds', 'profile', 'user_planes', 'subscriber',
];
