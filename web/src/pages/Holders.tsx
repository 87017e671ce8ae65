import { get } from '../api';
import { moment } from '../format';
import { ErrorBox, Loading, Notice } from '../parts/basics';
import { Table, type View } from '../parts/Table';
import { usePoll } from '../poll';
import { go, link, type Route } from '../router';
import { number, rows, type Row } from '../row';

const VIEWS: View[] = [
  { field: 'subscriber.user', label: 'User' },
  { field: 'subscriber.mac', label: 'MAC' },
  { field: 'binding.prefix', label: 'Had' },
  { field: 'from', label: 'From', unit: 'seconds since 1970', kind: 'number' },
  { field: 'to', label: 'To', unit: 'seconds since 1970', kind: 'number' },
  { field: 'now', label: 'Has it now', kind: 'flag' },
  { field: 'ended_because', label: 'Ended because' },
  { field: 'network_instance', label: 'Instance' },
  { field: 'subscriber.session', label: 'Session' },
];

/** Who had an address at a time (empty: now). */
export function Holders({ address, at }: { address: string; at: string }) {
  const answer = usePoll(`who ${address} ${at}`, (signal) => get<Row>('who', { address, at }, signal));
  if (!answer.data) return answer.error ? <ErrorBox error={answer.error} retry={answer.refresh} /> : <Loading />;
  const holders = rows(answer.data, 'holders');
  const others = rows(answer.data, 'others');
  const time = moment(number(answer.data, 'at') ?? 0);
  const oldest = number(answer.data, 'oldest');
  return (
    <section>
      {holders.length > 0
        ? <Table caption={`Who had ${address} at ${time} UTC`} views={VIEWS} rows={holders} />
        : <Notice kind="warn">{`Nobody had ${address} at ${time} UTC.`}</Notice>}
      {others.length > 0 && <Table caption="Who had it before, and who after" views={VIEWS} rows={others} />}
      {oldest !== undefined && <p><small>{`The history goes back to ${moment(oldest)} UTC.`}</small></p>}
    </section>
  );
}

/** Asks who had an address. */
export function Who({ route }: { route: Route }) {
  const address = route.values.get('address') ?? '';
  const at = route.values.get('at') ?? '';
  const ask = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    go(link(['who'], { address: String(form.get('address')).trim(), at: String(form.get('at')).trim() }));
  };
  return (
    <>
      <h1>Who had this address</h1>
      <form class="row" onSubmit={ask}>
        <label>Address or prefix <input name="address" class="names" placeholder=" " required defaultValue={address} autocomplete="off" /></label>
        <label>
          When
          <input name="at" defaultValue={at} placeholder="now" autocomplete="off" aria-describedby="when" />
        </label>
        <button type="submit" class="main">Ask</button>
      </form>
      <p id="when"><small>For instance 2026-11-22T07:15:00Z, 07:15 (UTC) or -2h. Empty: now.</small></p>
      {address && <Holders key={`${address} ${at}`} address={address} at={at} />}
    </>
  );
}

