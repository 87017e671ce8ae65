import { isRow, type Json } from './row';

/** Units as the API's description names them (`x-sluice-unit`). */
export type Unit =
  | 'bits'
  | 'octets'
  | 'bits per second'
  | 'nanoseconds'
  | 'microseconds'
  | 'seconds'
  | 'seconds since 1970';

const PREFIXES = ['', 'k', 'M', 'G', 'T', 'P'];

/** A number with three digits and an SI prefix: `12.3 M`. */
function scaled(value: number): string {
  let scale = 0;
  while (Math.abs(value) >= 999.5 && scale < PREFIXES.length - 1) {
    value /= 1000;
    scale += 1;
  }
  const size = Math.abs(value);
  const digits = size >= 99.95 || Number.isInteger(value) ? 0 : size >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${PREFIXES[scale]}`;
}

export const octets = (value: number): string => `${scaled(value)}B`;

export const bits = (value: number): string => `${scaled(value)}bit/s`;

/** A count with all of its digits; groups of three from five digits on, so that VLAN ids and years stay as they are. */
export function count(value: number): string {
  if (!Number.isInteger(value)) return scaled(value).trim();
  const digits = String(Math.abs(value));
  const grouped = digits.length < 5 ? digits : digits.replace(/\B(?=(\d{3})+$)/g, ',');
  return value < 0 ? `-${grouped}` : grouped;
}

export const perSecond = (value: number): string => `${scaled(value).trim()}/s`;

/** A time span in its two largest units. */
export function span(seconds: number): string {
  if (seconds < 0) return `-${span(-seconds)}`;
  if (seconds < 1 && seconds > 0) {
    return seconds < 1e-6 ? `${Math.round(seconds * 1e9)} ns`
      : seconds < 1e-3 ? `${(seconds * 1e6).toPrecision(3)} µs`
      : `${(seconds * 1e3).toPrecision(3)} ms`;
  }
  const whole = Math.floor(seconds);
  const parts: [number, string][] = [
    [Math.floor(whole / 86400), 'd'],
    [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ];
  const first = parts.findIndex(([size]) => size > 0);
  if (first < 0) return '0 s';
  const shown = parts.slice(first, first + 2).filter(([size]) => size > 0);
  return shown.map(([size, unit]) => `${size} ${unit}`).join(' ');
}

/** A moment in UTC, as the command line prints it. */
export function moment(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 19).replace('T', ' ');
}

/** A moment as the API takes it. */
export const iso = (seconds: number): string => `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;

/** A share in percent. A share that is not zero is not shown as zero. */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return '–';
  const share = (100 * part) / whole;
  if (share > 0 && share < 0.01) return '< 0.01 %';
  return `${share.toFixed(share > 0 && share < 10 ? 2 : 0)} %`;
}

function amount(value: number, unit: string | undefined): string {
  switch (unit) {
    case 'octets': return octets(value);
    case 'bits per second': return bits(value);
    case 'nanoseconds': return span(value / 1e9);
    case 'microseconds': return span(value / 1e6);
    case 'seconds': return span(value);
    case 'seconds since 1970': return moment(value);
    case 'bits': return `/${value}`;
    default: return count(value);
  }
}

/** A value of any field as a person reads it; empty if there is none. */
export function show(value: Json | undefined, unit?: string): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return amount(value, unit);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map((one) => show(one, unit)).filter(Boolean).join(', ');
  const members = Object.values(value).filter((one) => one !== null && one !== '' && !isRow(one));
  return members.map((one) => show(one)).join(' ');
}

const WORDS: { [word: string]: string } = {
  id: 'ID', ipv4: 'IPv4', ipv6: 'IPv6', mac: 'MAC', pppoe: 'PPPoE', aaa: 'AAA', acl: 'ACL', rx: 'RX', tx: 'TX',
};

/** The heading of a field: `traffic.up_octets` is `Traffic up octets`. A unit goes: values are shown with theirs. */
export function heading(field: string): string {
  const bare = field.replace(/_(nanoseconds|microseconds|milliseconds|bits_per_second)$/, '').replace(/(.)_seconds$/, '$1');
  const words = bare.split(/[._-]/).map((word) => WORDS[word] ?? word).join(' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
