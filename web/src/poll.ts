import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { Problem } from './api';

/** Longest time between two tries, in seconds. */
const MOST_SECONDS = 30;

/** An answer, and how to have a newer one. */
export interface Answer<T> {
  data: T | undefined;
  error: Problem | null;
  loading: boolean;
  /** Milliseconds, by `performance.now()`, of the answer. */
  at: number;
  refresh: () => void;
}

/**
 * Asks, and asks again every so many seconds (0: only once) while the page is visible. What cannot be answered now is asked again, later
 * each time. Another `key` is another question: the earlier answer goes. A `null` key asks nothing. Another `again` asks the same question
 * again, and what is known stays until the answer is there.
 */
export function usePoll<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>, every = 0, again = 0): Answer<T> {
  const [state, setState] = useState({ key, data: undefined as T | undefined, error: null as Problem | null, loading: true, at: 0 });
  const [turn, setTurn] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (key === null) return;
    const stop = new AbortController();
    let timer = 0;
    let failures = 0;
    let due = true;
    const later = (seconds: number) => {
      timer = window.setTimeout(() => {
        due = true;
        void look();
      }, seconds * 1000);
    };
    const look = async () => {
      if (document.hidden || !due) return;
      due = false;
      try {
        const data = await latest.current(stop.signal);
        if (stop.signal.aborted) return;
        failures = 0;
        setState({ key, data, error: null, loading: false, at: performance.now() });
        if (every > 0) later(every);
      } catch (error) {
        if (stop.signal.aborted) return;
        failures += 1;
        const problem = error instanceof Problem ? error : new Problem(-1, String(error));
        setState((before) => ({ ...before, key, data: before.key === key ? before.data : undefined, error: problem, loading: false }));
        const wait = problem.retryAfter ?? Math.max(every, 2 ** failures);
        if (problem.passes || every > 0) later(Math.min(wait, MOST_SECONDS));
      }
    };
    setState((before) => (before.key === key ? { ...before, loading: true } : { key, data: undefined, error: null, loading: true, at: 0 }));
    void look();
    const visible = () => void look();
    document.addEventListener('visibilitychange', visible);
    return () => {
      stop.abort();
      window.clearTimeout(timer);
      document.removeEventListener('visibilitychange', visible);
    };
  }, [key, every, again, turn]);
  const refresh = useCallback(() => setTurn((before) => before + 1), []);
  const own = state.key === key;
  return {
    data: own ? state.data : undefined,
    error: own ? state.error : null,
    loading: own ? state.loading && key !== null : key !== null,
    at: own ? state.at : 0,
    refresh,
  };
}
