import { get, type Page } from '../api';
import { bits, count, moment, span } from '../format';
import { ErrorBox, Loading, Notice, Tabs } from '../parts/basics';
import { Chart } from '../parts/Chart';
import { Table } from '../parts/Table';
import { gaps } from '../past';
import { usePoll } from '../poll';
import { link, type Route } from '../router';
import { number, text, type Row } from '../row';

/** Spans to choose from, as the API takes them, with how often they are read again, in seconds. */
const SPANS: [since: string, name: string, every: number][] = [
  ['-1h', 'Last hour', 10],
  ['-24h', 'Last day', 60],
  ['-7d', 'Last week', 300],
  ['-30d', 'Last month', 300],
];
/** Rows of one chart: more than a series has. */
const MOST_ROWS = 1000;

/** What is drawn, and of what, until something is chosen. */
const FIRST = { figure: 'online', of: '' };

export function Figures({ route }: { route: Route }) {
  const chosen = SPANS.find(([since]) => since === route.values.get('since')) ?? SPANS[1]!;
  const [since, name, every] = chosen;
  const figure = route.values.get('figure') ?? FIRST.figure;
  const of = route.values.get('of') ?? FIRST.of;
  const address = (values: { since?: string; figure?: string; of?: string }) => link(['figures'], { since, figure, of, ...values });
  const all = usePoll(since, (signal) => get<Page>('figures', { since, limit: MOST_ROWS }, signal), every);
  return (
    <>
      <h1>Over time</h1>
      <Tabs label="Time" now={name} tabs={SPANS.map(([other, label]) => [label, address({ since: other })])} />
      <History figure={figure} of={of} since={since} every={every} />
      {all.error && <ErrorBox error={all.error} retry={all.refresh} />}
      {!all.data ? <Loading /> : (
        <Table
          caption={`Each figure: ${name.toLowerCase()}`}
          rows={all.data.rows}
          empty="Nothing is known of this time yet: samples are taken every ten seconds."
          views={[
            { field: 'name', label: 'Figure', cell: (row) => <a href={address({ figure: text(row, 'name'), of: text(row, 'resource') })}>{text(row, 'name')}</a> },
            { field: 'resource', label: 'Of', cell: (row) => text(row, 'resource') || 'the gateway' },
            { field: 'mean', label: 'Mean', kind: 'number', cell: (row) => shown(row)(number(row, 'mean') ?? 0) },
            { field: 'most', label: 'Highest', kind: 'number', cell: (row) => shown(row)(number(row, 'most') ?? 0) },
            { field: 'unit', label: 'Unit', cell: (row) => (isBits(row) ? '' : text(row, 'unit')) },
            { field: 'most_at', label: 'When it was highest', cell: (row) => `${moment(number(row, 'most_at') ?? 0)} UTC` },
          ]}
        />
      )}
    </>
  );
}

const isBits = (row: Row): boolean => row['unit'] === 'bits a second';
const shown = (row: Row): ((value: number) => string) => (isBits(row) ? bits : count);

function History({ figure, of, since, every }: { figure: string; of: string; since: string; every: number }) {
  const key = JSON.stringify([figure, of, since]);
  const answer = usePoll(key, (signal) => get<Page>('figures', { figure, of, since, limit: MOST_ROWS }, signal), every);
  if (!answer.data) return answer.error ? <ErrorBox error={answer.error} retry={answer.refresh} /> : <Loading />;
  const rows = answer.data.rows;
  const first = rows[0];
  const title = `${figure}${of ? ` of ${of}` : ''}`;
  if (!first) return <Notice kind="good">{`Nothing is known of ${title} in this time.`}</Notice>;
  const show = isBits(first) ? bits : (value: number) => count(Math.round(value));
  const { times, lines } = gaps(rows, ['mean', 'most']);
  return (
    <section aria-labelledby="over-time">
      <h2 id="over-time">{`${title}, ${isBits(first) ? '' : `${text(first, 'unit')}, `}a value for each ${span(number(first, 'seconds') ?? 0)}`}</h2>
      <div class="charts whole">
        <Chart
          key={key}
          title={title}
          times={times}
          show={show}
          lines={[
            { name: 'highest', colour: 'two', values: lines[1]! },
            { name: 'mean', colour: 'one', values: lines[0]! },
          ]}
        />
      </div>
    </section>
  );
}
