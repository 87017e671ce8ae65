import { useEffect, useRef, useState } from 'preact/hooks';
import { url } from './api';
import { number, type Row } from './row';

/** Seconds after which a stream that was refused is asked for again. */
const AGAIN = 10;
/** New events that are kept. Then the stream waits, so that a page that is left open does not grow. */
export const MOST = 1000;

/**
 * Events that happen behind the one with the number `after` (`undefined`: from now on), the newest first. While it is paused, or nobody
 * sees the page, nothing is asked, and nothing is missed: it goes on behind the last one. `null` follows nothing.
 */
export function useFollow(after: number | null | undefined, subscriber: string, kinds: string, paused: boolean): Row[] {
  const [events, setEvents] = useState<Row[]>([]);
  const place = useRef(after);
  const full = events.length >= MOST;
  useEffect(() => {
    place.current = after;
    setEvents([]);
  }, [after, subscriber, kinds]);
  useEffect(() => {
    if (after === null || paused || full) return;
    let source: EventSource | null = null;
    let timer = 0;
    const stop = () => {
      source?.close();
      source = null;
      window.clearTimeout(timer);
    };
    const listen = () => {
      stop();
      if (document.hidden) return;
      const own = new EventSource(url('events/stream', { subscriber, kinds, after: String(place.current ?? '') }));
      source = own;
      own.onmessage = (message: MessageEvent<string>) => {
        const event = JSON.parse(message.data) as Row;
        place.current = number(event, 'number');
        setEvents((before) => [event, ...before]);
      };
      // the browser itself asks again after an end, but not after an error
      own.onerror = () => {
        if (own.readyState === EventSource.CLOSED && source === own) timer = window.setTimeout(listen, AGAIN * 1000);
      };
    };
    listen();
    document.addEventListener('visibilitychange', listen);
    return () => {
      document.removeEventListener('visibilitychange', listen);
      stop();
    };
  }, [after, subscriber, kinds, paused, full]);
  return events;
}
