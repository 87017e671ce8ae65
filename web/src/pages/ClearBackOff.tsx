import { useState } from 'preact/hooks';
import { detail, post } from '../api';
import { Button } from '../parts/basics';
import { text, type Row } from '../row';

/** Has a sender answered again whose set-ups or logins have failed: a MAC address, a circuit id, or a line. */
export function ClearBackOff({ who }: { who: string }) {
  const [told, setTold] = useState('');
  const clear = async () => {
    try {
      await post('actions/clear-back-off', { who });
      setTold(`Failed set-ups and logins of ${who} are forgotten.`);
    } catch (error) {
      setTold(detail(error));
    }
  };
  return (
    <>
      <Button needs="operate" onClick={() => void clear()}>Clear back-off</Button>
      {told && <small role="status">{told}</small>}
    </>
  );
}

/** Whom a row of `protection` is about. */
export const offender = (row: Row): string =>
  (text(row, 'level') === 'line' && text(row, 'circuit_id')) || text(row, 'mac');
