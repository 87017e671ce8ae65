import { Fragment, options, type VNode } from 'preact';
import { heard } from './api';
import { isRow, rows, text, type Json, type Row } from './row';
import { Store } from './store';

/** Whether names, MAC addresses and IP addresses of subscribers are hidden, for screenshots. */
export const hidden = new Store<boolean>(sessionStorage.getItem('hide-names') === 'yes');

hidden.subscribe(() => {
  sessionStorage.setItem('hide-names', hidden.get() ? 'yes' : 'no');
  document.documentElement.toggleAttribute('data-hide-names', hidden.get());
});
document.documentElement.toggleAttribute('data-hide-names', hidden.get());

/** Fields of answers that tell who a subscriber is, or where. */
const TELLING = new Set(['user', 'users', 'circuit_id', 'remote_id', 'line', 'subscriber']);
/** Names that are remembered at most. */
const MOST_NAMES = 200_000;
const MOST_PHRASES = 3000;

const names = new Set<string>();
/** Those of them that have blanks, so that words cannot be looked up. */
const phrases = new Set<string>();

/** Remembers a name, so that it can be hidden. */
export function learn(name: string): void {
  if (name === '' || names.size >= MOST_NAMES) return;
  names.add(name);
  if (!/[\s,;:"'()[\]{}=`]/.test(name)) return;
  phrases.add(name);
  // each of them is looked for in every text: those of the pages before go
  const [oldest] = phrases;
  if (phrases.size > MOST_PHRASES && oldest !== undefined) phrases.delete(oldest);
}

/** Remembers the names in an answer of the API. */
function learnFrom(value: Json | undefined, telling: boolean): void {
  if (typeof value === 'string') {
    if (telling) learn(value);
  } else if (Array.isArray(value)) {
    for (const one of value) learnFrom(one, telling);
  } else if (isRow(value)) {
    // a subscriber of the table `subscribers` has its user name as `name`
    const subscriber = 'ipv6_prefixes' in value && 'sessions' in value;
    for (const [name, below] of Object.entries(value)) {
      learnFrom(below, TELLING.has(name) || (subscriber && name === 'name'));
    }
  }
}

heard.tell = (answer) => {
  learnFrom(answer as Json, false);
  // local users are keys of the configuration
  const tree = isRow(answer as Json) ? (answer as Row)['tree'] : undefined;
  const users = isRow(tree) ? tree['users'] : undefined;
  if (isRow(users)) Object.keys(users).forEach(learn);
  // and options where one of them is typed
  if (isRow(answer as Json) && text(answer as Row, 'place') === 'users') rows(answer as Row, 'options').forEach((option) => learn(text(option, 'word')));
};

const MAC = /\b[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}\b/gi;
const IPV4 = /\b\d{1,3}(?:\.\d{1,3}){3}\b/g;
// at least two colons, and a digit or letter: neither times (07:15:00) nor `::` alone
const IPV6 = /(?<![\w:.])(?=[0-9a-f:]*::|(?:[0-9a-f]{1,4}:){7})[0-9a-f:]*[0-9a-f][0-9a-f:]*(?![\w])/gi;
const WORD = /[^\s,;:"'()[\]{}=`]+/g;

/** Replaces what tells who a subscriber is. */
export function redact(text: string): string {
  if (names.has(text)) return '••••';
  for (const phrase of phrases) if (text.includes(phrase)) text = text.replaceAll(phrase, '••••');
  return text
    .replace(MAC, '••:••:••:••:••:••')
    .replace(IPV4, '•.•.•.•')
    .replace(IPV6, '•:•::•')
    .replace(WORD, (word) => (names.has(word) ? '••••' : word));
}

type Props = { [name: string]: unknown };

/** Attributes that are shown or read out. */
const SHOWN = ['title', 'aria-label', 'placeholder', 'alt'];

function redactChild(child: unknown): unknown {
  if (typeof child === 'string') return redact(child);
  return Array.isArray(child) ? child.map(redactChild) : child;
}

function redactProps(props: Props): void {
  if (props['children'] !== undefined) props['children'] = redactChild(props['children']);
  for (const name of SHOWN) {
    const value = props[name];
    if (typeof value === 'string') props[name] = redact(value);
  }
}

// Every text of every page goes through here, so that no component can forget to hide a name. Fields to type in are blurred by the style
// sheet instead: what they hold is used.
const before = options.vnode;
options.vnode = (vnode: VNode) => {
  const drawn = typeof vnode.type === 'string' || vnode.type === Fragment;
  if (hidden.get() && drawn && vnode.type !== 'textarea') redactProps(vnode.props as Props);
  before?.(vnode);
};
