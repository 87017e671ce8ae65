import { useState } from 'preact/hooks';
import { detail, post } from '../api';
import { plural } from '../format';
import { Button, Dialog } from '../parts/basics';
import { number, text, type Row } from '../row';

/** Number of the last worker that a user plane may have. */
const LAST_WORKER = 15;

/** Moves a segment or a VLAN of one to another worker of its user plane. */
export function MoveAggregate({ row, name }: { row: Row; name: string }) {
  const [asking, setAsking] = useState(false);
  const [told, setTold] = useState('');
  const move = async (event: Event) => {
    event.preventDefault();
    const worker = Number(new FormData(event.currentTarget as HTMLFormElement).get('worker'));
    setAsking(false);
    try {
      const done = await post<Row>('actions/move-aggregate', { aggregate: name, worker });
      const split = number(done, 'split_subscribers') ?? 0;
      const moved = `It is at worker ${worker}: ${plural(number(done, 'sessions') ?? 0, 'session')} moved.`;
      setTold(split === 0 ? moved : `${moved} ${plural(split, 'subscriber')} of it with other sessions at other workers: each ` +
        `worker holds their home rates alone. Move those segments or VLANs to worker ${worker} too.`);
    } catch (error) {
      setTold(detail(error));
    }
  };
  if (!text(row, 'segment')) return null;
  return (
    <>
      <Button needs="operate" onClick={() => setAsking(true)}>Move…</Button>
      {told && <small role="status">{told}</small>}
      {asking && (
        <Dialog title={`Move ${name}?`} close={() => setAsking(false)}>
          <form onSubmit={(event) => void move(event)}>
            <p>Its sessions go to another worker of the user plane, with what waits for them. No session ends.</p>
            <label>
              Worker
              <input name="worker" type="number" min={0} max={LAST_WORKER} required />
            </label>
            <div class="actions">
              <Button kind="main" needs="operate" type="submit">Move</Button>
              <Button onClick={() => setAsking(false)}>Cancel</Button>
            </div>
          </form>
        </Dialog>
      )}
    </>
  );
}
