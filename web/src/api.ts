import { query, type Values } from './query';
import type { Row } from './row';
import { Store } from './store';

const BASE = '/api/v1/';
/** Times that a GET is repeated after `429 Too Many Requests`, and the longest `Retry-After` that is waited for. */
const REPEATS = 3;
const PATIENCE_SECONDS = 10;

/** A fault of a configuration: where, and what was expected. */
export interface Fault {
  path: string;
  line: number;
  message: string;
}

/** An error of the API (RFC 9457), or a server that does not answer (`status` 0). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly detail: string,
    readonly faults: Fault[] = [],
    /** Seconds after which it may be tried again. */
    readonly retryAfter?: number,
  ) {
    super(detail);
  }

  /** Nothing is wrong with the question: the same one may be answered later. */
  get passes(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 503 || this.status === 504;
  }
}

/** A page of a table. */
export interface Page {
  rows: Row[];
  next: number | null;
  /** Rows of all pages, where the API counts them: on the first page. */
  total?: number;
  /** There may be more of them. */
  or_more?: boolean;
  missing: string[];
}

/** Why the gateway does not answer now; `null` while it does. */
export const lost = new Store<string | null>(null);
/** Called when the server no longer knows who is signed in. */
export const expired: { tell: () => void } = { tell: () => {} };
/** Called with each answer. */
export const heard: { tell: (answer: unknown) => void } = { tell: () => {} };

/** Seconds that the server's clock is ahead of this one's. */
let ahead = 0;

/** The time now by the server's clock, in seconds since 1970. */
export const serverNow = (): number => Date.now() / 1000 + ahead;

export const url = (path: string, values: Values = {}): string => BASE + path + query(values);

export function get<T>(path: string, values: Values = {}, signal?: AbortSignal): Promise<T> {
  return call<T>(url(path, values), signal ? { signal } : {}, REPEATS);
}

/** Orders something. It is never repeated by itself: it may have been done. */
export function post<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const json = body === undefined
    ? {}
    : { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } };
  return call<T>(url(path), { method: 'POST', ...json, ...(signal && { signal }) }, 0);
}

async function call<T>(address: string, init: RequestInit, repeats: number): Promise<T> {
  const response = await fetch(address, { credentials: 'same-origin', ...init }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    const problem = new Problem(0, 'The web server of the gateway does not answer.');
    lost.set(problem.detail);
    throw problem;
  });
  const date = Date.parse(response.headers.get('Date') ?? '');
  // the header has whole seconds: smaller differences say nothing
  if (!Number.isNaN(date) && Math.abs(date / 1000 - serverNow()) > 2) ahead = (date - Date.now()) / 1000;
  if (response.ok) {
    const answer: unknown = response.status === 204 ? undefined : await response.json();
    lost.set(null);
    heard.tell(answer);
    return answer as T;
  }
  const problem = await read(response);
  const wait = problem.retryAfter ?? 1;
  if (problem.status === 429 && repeats > 0 && wait <= PATIENCE_SECONDS) {
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    return call<T>(address, init, repeats - 1);
  }
  if (problem.status === 401 && !address.endsWith('/sign-in')) expired.tell();
  // an error that says something about the question is an answer
  lost.set(problem.status === 503 || problem.status === 504 ? problem.detail : null);
  throw problem;
}

async function read(response: Response): Promise<Problem> {
  const after = Number(response.headers.get('Retry-After') ?? NaN);
  const retry = Number.isFinite(after) ? after : undefined;
  try {
    const told = (await response.json()) as { detail?: string; title?: string; faults?: Fault[] };
    const detail = told.detail ?? told.title ?? `The server answers ${response.status}.`;
    return new Problem(response.status, detail, told.faults ?? [], retry);
  } catch {
    return new Problem(response.status, `The server answers ${response.status} ${response.statusText}.`, [], retry);
  }
}

/** The sentence of any error. */
export const detail = (error: unknown): string => (error instanceof Error ? error.message : String(error));
