import { useState } from 'preact/hooks';
import { detail, post } from '../api';
import { plural } from '../format';
import { Button, Dialog } from '../parts/basics';
import { number, text, texts, type Row } from '../row';
import { tellChange } from '../versions';

/** Sessions that end in a second at most. */
const MOST_RATE = 10000;

/** Has a user plane take no new sessions, or take them again. Both are commits of its `admin-state`. */
export function Drain({ plane }: { plane: Row }) {
  const [asking, setAsking] = useState(false);
  const [told, setTold] = useState('');
  const name = text(plane, 'node_id');
  const drained = plane['drain'] !== null && plane['drain'] !== false;
  const order = async (more: { 'end-sessions'?: number; stop?: true }) => {
    setAsking(false);
    try {
      const done = await post<Row>('actions/drain-user-plane', { 'user-plane': name, ...more });
      setTold([`Version ${number(done, 'version') ?? 0} is in force.`, ...texts(done, 'pending')].join(' '));
      tellChange();
    } catch (error) {
      setTold(detail(error));
    }
  };
  const drain = (event: Event) => {
    event.preventDefault();
    const rate = String(new FormData(event.currentTarget as HTMLFormElement).get('rate') ?? '');
    void order(rate === '' ? {} : { 'end-sessions': Number(rate) });
  };
  return (
    <>
      {drained
        ? <Button needs="configure" onClick={() => void order({ stop: true })}>Take sessions again</Button>
        : <Button needs="configure" onClick={() => setAsking(true)}>Drain…</Button>}
      {told && <small role="status">{told}</small>}
      {asking && (
        <Dialog title={`Drain ${name}?`} close={() => setAsking(false)}>
          <form onSubmit={drain}>
            <p>{`It takes no new sessions: another user plane of its group has to. It has ${plural(number(plane, 'sessions') ?? 0, 'session')} now.`}</p>
            <label>
              End its sessions, so many in a second (empty: they stay until they end by themselves)
              <input name="rate" type="number" min={1} max={MOST_RATE} />
            </label>
            <div class="actions">
              <Button kind="danger" needs="configure" type="submit">Drain</Button>
              <Button onClick={() => setAsking(false)}>Cancel</Button>
            </div>
          </form>
        </Dialog>
      )}
    </>
  );
}
