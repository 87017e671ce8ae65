import { number, rows, text, type Row } from './row';

/** The state of the gateway, as the stream tells it. The objects are those of the API. */
export interface State {
  at_milliseconds: number;
  sessions: Row;
  user_planes: Row[];
  drops: Row[];
  pools: Row[];
  alarms: Row[];
}

/** What is drawn of a moment; `null` in place of what is not known. */
export interface Sample {
  /** Seconds since 1970. */
  time: number;
  up: number | null;
  down: number | null;
  online: number | null;
  opened: number | null;
  ended: number | null;
  drops: number | null;
}

export interface PlaneRates {
  up: number;
  down: number;
  /** Share of the time in which each worker had work, by its number. */
  busy: { [worker: string]: number };
  /** Bits per second of each port. */
  ports: { [port: string]: { rx: number; tx: number } };
}

export interface DropRate {
  plane: string;
  name: string;
  count: number;
  rate: number;
  meaning: string;
}

export interface Rates {
  begun: number;
  opened: number;
  ended: number;
  up: number;
  down: number;
  planes: { [name: string]: PlaneRates };
  drops: DropRate[];
}

const seconds = (before: Row, now: Row): number =>
  ((number(now, 'at_milliseconds') ?? 0) - (number(before, 'at_milliseconds') ?? 0)) / 1000;

/** A rate of a counter. One that has become less began anew. */
function rate(before: Row, now: Row, field: string, over: number): number {
  const more = (number(now, field) ?? 0) - (number(before, field) ?? 0);
  return over > 0 ? Math.max(more, 0) / over : 0;
}

/** Makes rates of states. The counters of a user plane have a time of their own: two readings of it are kept. */
export class Meter {
  private state: State | null = null;
  private planes = new Map<string, [before: Row | null, last: Row]>();

  /** The rates up to this state; `null` with the first one. */
  read(now: State): Rates | null {
    const before = this.state;
    this.state = now;
    for (const plane of now.user_planes) {
      const name = text(plane, 'node_id');
      const known = this.planes.get(name);
      if (plane['reached'] !== true) this.planes.delete(name);
      else if (!known) this.planes.set(name, [null, plane]);
      else if (seconds(known[1], plane) > 0) this.planes.set(name, [known[1], plane]);
    }
    if (!before) return null;
    const over = (now.at_milliseconds - before.at_milliseconds) / 1000;
    const planes: Rates['planes'] = {};
    const drops = named(before.drops, now.drops, over, 'control plane');
    for (const [name, [first, last]] of this.planes) {
      planes[name] = planeRates(first ?? last, last);
      drops.push(...named(rows(first ?? last, 'drops'), rows(last, 'drops'), seconds(first ?? last, last), name));
    }
    const sum = (way: 'up' | 'down') => Object.values(planes).reduce((all, plane) => all + plane[way], 0);
    return {
      begun: rate(before.sessions, now.sessions, 'begun', over),
      opened: rate(before.sessions, now.sessions, 'opened', over),
      ended: rate(before.sessions, now.sessions, 'ended', over),
      up: sum('up'),
      down: sum('down'),
      planes,
      drops: drops.sort((a, b) => b.rate - a.rate || b.count - a.count),
    };
  }
}

/** Drop counters of a plane with their rates. One that was not told before was zero. */
function named(before: Row[], now: Row[], over: number, plane: string): DropRate[] {
  return now.map((counter) => {
    const name = text(counter, 'name');
    const then = before.find((one) => one['name'] === name) ?? {};
    return {
      plane,
      name,
      count: number(counter, 'count') ?? 0,
      rate: rate(then, counter, 'count', over),
      meaning: text(counter, 'meaning'),
    };
  });
}

function planeRates(before: Row, now: Row): PlaneRates {
  const over = seconds(before, now);
  const result: PlaneRates = { up: 0, down: 0, busy: {}, ports: {} };
  const then = (field: string, name: string, row: Row) =>
    rows(before, field).find((one) => one[name] === row[name]) ?? row;
  for (const port of rows(now, 'ports')) {
    const earlier = then('ports', 'name', port);
    const rx = 8 * rate(earlier, port, 'rx_octets', over);
    const tx = 8 * rate(earlier, port, 'tx_octets', over);
    result.ports[text(port, 'name')] = { rx, tx };
    // subscribers are behind access ports: what comes in there goes up
    if (port['role'] !== 'access') continue;
    result.up += rx;
    result.down += tx;
  }
  for (const worker of rows(now, 'workers')) {
    const share = rate(then('workers', 'number', worker), worker, 'busy_nanoseconds', over) / 1e9;
    result.busy[text(worker, 'number')] = Math.min(share, 1);
  }
  return result;
}

export function sample(time: number, state: State, rates: Rates | null): Sample {
  return {
    time,
    up: rates?.up ?? null,
    down: rates?.down ?? null,
    online: number(state.sessions, 'online') ?? null,
    opened: rates?.opened ?? null,
    ended: rates?.ended ?? null,
    drops: rates ? rates.drops.reduce((all, drop) => all + drop.rate, 0) : null,
  };
}
