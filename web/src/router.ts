import { useEffect, useState } from 'preact/hooks';
import { query, type Values } from './query';

/** A page: its path in parts, and what is asked for. */
export interface Route {
  parts: string[];
  values: URLSearchParams;
}

export function parse(hash: string): Route {
  const [path = '', values = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const parts = path.split('/').filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part; // typed by hand
    }
  });
  return { parts, values: new URLSearchParams(values) };
}

/** The address of a page. Every part may have any character. */
export function link(parts: string[], values: Values = {}): string {
  return `#/${parts.map(encodeURIComponent).join('/')}${query(values)}`;
}

export function go(address: string): void {
  location.hash = address;
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const read = () => setRoute(parse(location.hash));
    read();
    addEventListener('hashchange', read);
    return () => removeEventListener('hashchange', read);
  }, []);
  return route;
}

/** Another value in the query of this page, without a step in the history. */
export function setValues(route: Route, values: Values): void {
  const all: Values = { ...Object.fromEntries(route.values), ...values };
  history.replaceState(null, '', link(route.parts, all));
  dispatchEvent(new HashChangeEvent('hashchange'));
}
