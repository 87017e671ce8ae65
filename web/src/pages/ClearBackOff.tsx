import { useState } from 'preact/hooks';
import { detail, post } from '../api';
import { Button } from '../parts/basics';
import { text, type Row } from '../row';

/** Has a sender that is held off answered again. */
export function ClearBackOff({ row }: { row: Row }) {
  const [told, setTold] = useState('');
  const who = text(row, 'level') === 'line' ? text(row, 'circuit_id') || text(row, 'mac') : text(row, 'mac');
  const clear = async () => {
    try {
      await post('actions/clear-back-off', { who });
      setTold('Cleared.');
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
