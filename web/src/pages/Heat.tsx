import { get, serverNow, type Page } from '../api';
import { count, iso, moment } from '../format';
import { heat, type Cell } from '../heat';
import { ErrorBox, Loading, Notice, Tabs } from '../parts/basics';
import { usePoll } from '../poll';
import { link, type Route } from '../router';
import { useRefusal } from '../session';

const DAY = 86_400;
/** Seconds after which the present day is read again. */
const AGAIN = 60;

/** What is counted, and how events of it are asked for. */
const KINDS: [kind: string, name: string, kinds: string][] = [
  ['', 'All', 'ended,failed,refused'],
  ['ended', 'Sessions that ended', 'ended'],
  ['failed', 'Set-ups that failed', 'failed'],
  ['refused', 'Refused by AAA', 'refused'],
];

/** Where sessions ended and set-ups failed, hour by hour: a table whose cells have a colour beside their numbers. */
export function Heat({ route }: { route: Route }) {
  const refusal = useRefusal('support');
  const until = route.values.get('until') ?? '';
  const [kind, name, kinds] = KINDS.find(([own]) => own === (route.values.get('kind') ?? '')) ?? KINDS[0]!;
  const key = refusal === null ? `${kind} ${until}` : null;
  const answer = usePoll(key, (signal) => get<Page>('trouble', { kind, until }, signal), until ? 0 : AGAIN);
  if (refusal) return <Notice kind="warn">{refusal}</Notice>;
  const address = (values: { kind?: string; until?: string }) => link(['lines', 'hours'], { kind, until, ...values });
  const end = until ? Date.parse(until) / 1000 : serverNow();
  const later = end + DAY < serverNow() ? iso(end + DAY) : '';
  return (
    <>
      <Tabs label="What is counted" now={name} tabs={KINDS.map(([own, label]) => [label, address({ kind: own })])} />
      <p class="bar">
        <a href={address({ until: iso(end - DAY) })}>The 24 hours before</a>
        {until && <a href={address({ until: later })}>{later ? 'The 24 hours after' : 'The last 24 hours'}</a>}
      </p>
      {answer.error && <ErrorBox error={answer.error} retry={answer.refresh} />}
      {answer.data ? <Map rows={answer.data.rows} name={name} kinds={kinds} /> : !answer.error && <Loading />}
    </>
  );
}

function Map({ rows, name, kinds }: { rows: Page['rows']; name: string; kinds: string }) {
  const map = heat(rows);
  const first = map.hours[0] ?? 0;
  const last = (map.hours[map.hours.length - 1] ?? 0) + 3600;
  if (map.rows.length === 0) return <p class="empty">Nothing ended or failed in these 24 hours, as far as it was counted.</p>;
  const caption = `${name}, by outer VLAN and hour, from ${moment(first)} to ${moment(last)} UTC; those with most first`;
  const events = (lines: string) => link(['events'], { subscriber: lines, kinds, since: iso(first), until: iso(last) });
  return (
    <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
      <table class="heat">
        <caption>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">Lines</th>
            {map.hours.map((hour) => <th key={hour} scope="col" class="number" title={`${moment(hour)} UTC`}>{moment(hour).slice(11, 13)}</th>)}
            <th scope="col" class="number">Total</th>
          </tr>
        </thead>
        <tbody>
          {map.rows.map((row) => (
            <tr key={row.lines}>
              <th scope="row"><a href={events(row.lines)}>{row.lines}</a></th>
              {row.cells.map((cell, place) => <Hour key={map.hours[place]} cell={cell} />)}
              <td class="number">{count(row.total)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Hour({ cell }: { cell: Cell }) {
  const unknown = cell.count === null;
  return (
    <td class="number" data-heat={cell.level} {...(unknown ? { title: 'Nothing was counted then' } : {})}>
      {unknown ? '–' : count(cell.count ?? 0)}
    </td>
  );
}
