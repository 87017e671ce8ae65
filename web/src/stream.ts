import { get, lost, url, type Page } from './api';
import { Meter, sample, type Rates, type Sample, type State } from './rates';
import { text, type Row } from './row';
import { may, me } from './session';
import { Store } from './store';

/** Seconds between two states. */
const INTERVAL = 2;
/** Seconds between two readings of tables, for whom the stream is not. */
const SLOW = 5;
/** Seconds that the charts go back. */
const KEPT_SECONDS = 30 * 60;
/** Longest time between two tries, in seconds. */
const MOST_SECONDS = 30;
/** Failures of the stream after which tables are read instead: 16 pages may have it at once. */
const PATIENCE = 3;

/** What is known of the gateway now, and what the page has seen so far. It outlives the pages that show it. */
export interface Live {
  state: State | null;
  rates: Rates | null;
  samples: Sample[];
  /** Most sessions that were online at once while this page looked. */
  peak: number;
}

const NOTHING: Live = { state: null, rates: null, samples: [], peak: 0 };
export const live = new Store<Live>(NOTHING);

let meter = new Meter();
let source: EventSource | null = null;
let timer = 0;
let failures = 0;
/** Counts beginnings and ends: an answer to what was asked before the latest one is nobody's. */
let turn = 0;

function take(state: State): void {
  const now = Date.now() / 1000;
  const before = live.get();
  const rates = meter.read(state);
  const samples = before.samples.filter((one) => one.time > now - KEPT_SECONDS);
  const last = samples[samples.length - 1];
  // a gap in what was seen is a gap in the chart
  if (last && now - last.time > 3 * SLOW) {
    samples.push({ time: (last.time + now) / 2, up: null, down: null, online: null, opened: null, ended: null, drops: null });
  }
  const latest = sample(now, state, rates);
  live.set({ state, rates, samples: [...samples, latest], peak: Math.max(before.peak, latest.online ?? 0) });
}

function again(ask: () => void, seconds: number): void {
  timer = window.setTimeout(ask, seconds * 1000);
}

function listen(): void {
  const events = new EventSource(url('top', { interval: INTERVAL }));
  source = events;
  events.onmessage = (event: MessageEvent<string>) => {
    failures = 0;
    lost.set(null);
    take(JSON.parse(event.data) as State);
  };
  events.onerror = () => {
    // the browser itself asks again after an end, but not after an error
    if (events.readyState !== EventSource.CLOSED || source !== events) return;
    source = null;
    failures += 1;
    again(() => void retry(), Math.min(2 ** failures, MOST_SECONDS));
  };
}

/** An EventSource does not say why it was refused: asking who is signed in tells an end of the session, or that nobody answers. */
async function retry(): Promise<void> {
  const own = turn;
  try {
    await get('me');
    if (own !== turn) return;
    if (failures >= PATIENCE) void readTables();
    else listen();
  } catch {
    failures += 1;
    if (own === turn) again(() => void retry(), Math.min(2 ** failures, MOST_SECONDS));
  }
}

/** The same state, made of the tables that the role `view` may read. */
async function readTables(): Promise<void> {
  const own = turn;
  try {
    const names = ['session-counts', 'ports', 'drops', 'pools', 'alarms', 'user-planes'];
    const pages = await Promise.all(names.map((name) => get<Page>(name, { limit: 1000 })));
    const [counts, ports, drops, pools, alarms, planes] = pages.map((page) => page.rows) as [Row[], Row[], Row[], Row[], Row[], Row[]];
    if (own !== turn) return;
    const at = performance.now();
    take({
      at_milliseconds: at,
      sessions: counts[0] ?? {},
      user_planes: planes.map((plane) => ({
        ...plane,
        at_milliseconds: at,
        associated: plane['state'] === 'associated',
        reached: true,
        ports: ports.filter((port) => port['user_plane'] === plane['node_id']),
        drops: drops.filter((drop) => drop['plane'] === plane['node_id']),
        workers: [],
      })),
      drops: drops.filter((drop) => text(drop, 'plane') === 'control-plane'),
      pools,
      alarms,
    });
    failures = 0;
  } catch {
    failures += 1;
  }
  if (own === turn) again(() => void readTables(), failures > 0 ? Math.min(2 ** failures, MOST_SECONDS) : SLOW);
}

function stop(): void {
  turn += 1;
  source?.close();
  source = null;
  window.clearTimeout(timer);
}

/** Begins or ends to look, by who is signed in and whether anybody sees the page. */
function follow(): void {
  stop();
  const who = me.get();
  if (!who) {
    meter = new Meter();
    live.set(NOTHING);
  } else if (!document.hidden) {
    failures = 0;
    if (may(who.role, 'support')) listen();
    else void readTables();
  }
}

me.subscribe(follow);
document.addEventListener('visibilitychange', follow);
