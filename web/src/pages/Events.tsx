import { get, type Page } from '../api';
import { ErrorBox, Loading, Notice, Tabs } from '../parts/basics';
import { Table } from '../parts/Table';
import { usePoll } from '../poll';
import { go, link, type Route } from '../router';
import { text, type Row } from '../row';
import { useRefusal } from '../session';
import { useStore } from '../store';
import { live } from '../stream';
import { Alarms } from './Alarms';
import { Backup } from './Backup';
import { History } from './History';

/** Rows of the alarm history that are read at most. */
const MOST = 5000;

/** Parts of the page, and the ends of their addresses. */
const PARTS: [name: string, path?: string][] = [['Events'], ['Alarms', 'alarms'], ['Alarm history', 'history'], ['Backup', 'backup']];

/** Kinds of events that are asked for together. */
const KINDS: [name: string, kinds: string][] = [
  ['All', ''],
  ['Online', 'online'],
  ['Ended', 'ended'],
  ['Counted', 'counted'],
  ['Refused or failed', 'refused,failed'],
  ['Changed or authorized', 'changed,authorized'],
  ['Accepted by fallback', 'fell-back'],
  ['Alarms', 'alarm-raised,alarm-cleared,alarm-acknowledged'],
  ['Gateway', 'started,stopped,user-plane-back,user-plane-lost,committed,confirmed,rolled-back'],
];

export function Events({ route }: { route: Route }) {
  const part = PARTS.find(([, path]) => path === route.parts[1])?.[0] ?? 'Events';
  return (
    <>
      <h1>Events and alarms</h1>
      <Tabs
        label="Events and alarms"
        now={part}
        tabs={PARTS.map(([name, path]) => [name, path ? `#/events/${path}` : '#/events'])}
      />
      {part === 'Events' && <Filtered route={route} />}
      {part === 'Alarms' && <Raised />}
      {part === 'Alarm history' && <AlarmHistory />}
      {part === 'Backup' && <Backup />}
    </>
  );
}

function Raised() {
  const { state } = useStore(live);
  return state ? <Alarms alarms={state.alarms} /> : <Loading />;
}

function Filtered({ route }: { route: Route }) {
  const refusal = useRefusal('support');
  if (refusal) return <Notice kind="warn">{refusal}</Notice>;
  const of = (name: string) => route.values.get(name) ?? '';
  const values = { subscriber: of('subscriber'), also: of('also'), kinds: of('kinds'), since: of('since'), until: of('until') };
  const ask = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const typed = (name: string) => String(form.get(name) ?? '').trim();
    go(link(['events'], Object.fromEntries(Object.keys(values).map((name) => [name, typed(name)]))));
  };
  return (
    <>
      <form class="row" onSubmit={ask} key={JSON.stringify(values)}>
        <label>Subscriber <input name="subscriber" class="names" defaultValue={values.subscriber} placeholder="name, line, MAC, session or address" autocomplete="off" /></label>
        <label>And <input name="also" class="names" defaultValue={values.also} placeholder="up1/access0.100.*" autocomplete="off" /></label>
        <label>
          Events
          <select name="kinds" defaultValue={values.kinds}>
            {KINDS.map(([name, kinds]) => <option key={name} value={kinds} selected={kinds === values.kinds}>{name}</option>)}
          </select>
        </label>
        <label>Since <input name="since" defaultValue={values.since} placeholder="-2h" autocomplete="off" /></label>
        <label>Until <input name="until" defaultValue={values.until} placeholder="now" autocomplete="off" /></label>
        <button type="submit" class="main">Show</button>
      </form>
      <History {...values} follows={values.until === '' && values.also === ''} />
    </>
  );
}

/** The whole history: the API tells the oldest first. */
async function allAlarms(signal: AbortSignal): Promise<Row[]> {
  const all: Row[] = [];
  let cursor: number | null = 0;
  while (cursor !== null && all.length < MOST) {
    const page: Page = await get<Page>('alarms/history', { limit: 1000, cursor }, signal);
    all.push(...page.rows);
    cursor = page.next;
  }
  return all.reverse();
}

function AlarmHistory() {
  const answer = usePoll('alarm history', allAlarms);
  if (!answer.data) return answer.error ? <ErrorBox error={answer.error} retry={answer.refresh} /> : <Loading />;
  const became = (row: Row) => (text(row, 'kind') === 'alarm-raised' ? text(row, 'severity') : text(row, 'kind').replace('alarm-', ''));
  return (
    <Table
      caption="Alarms that were raised and cleared, the newest first"
      rows={answer.data.map((row) => ({ ...row, became: became(row) }))}
      empty="No alarm was ever raised."
      views={[
        { field: 'at', label: 'Time', unit: 'seconds since 1970', kind: 'number' },
        { field: 'alarm' },
        { field: 'became', label: 'Severity' },
        { field: 'resource', label: 'Of' },
        { field: 'text' },
      ]}
    />
  );
}
