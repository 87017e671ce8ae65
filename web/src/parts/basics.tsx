import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Problem } from '../api';
import { useRefusal, type Role } from '../session';

/** An error in the place of what it keeps from being shown. */
export function ErrorBox({ error, retry }: { error: Error; retry?: () => void }) {
  const faults = error instanceof Problem ? error.faults : [];
  const passes = error instanceof Problem && error.passes;
  return (
    <div class="notice bad" role="alert">
      <p>{error.message}</p>
      {faults.length > 0 && (
        <ul>
          {faults.map((fault) => <li key={fault.path + fault.message}><code>{fault.path}</code> {fault.message}</li>)}
        </ul>
      )}
      {passes && <p>It is tried again by itself.</p>}
      {retry && <button type="button" onClick={retry}>Try again</button>}
    </div>
  );
}

export function Notice({ kind = 'note', children }: { kind?: 'note' | 'good' | 'warn' | 'bad'; children: ComponentChildren }) {
  return <div class={`notice ${kind}`} role="status">{children}</div>;
}

export const Loading = () => <p class="loading" role="status">Loading…</p>;

const GOOD = new Set(['online', 'associated', 'up', 'resolved', 'in-force', 'alive', 'yes', 'cleared']);
const BAD = new Set(['lost', 'down', 'out', 'dead', 'missing', 'critical', 'major', 'failed', 'too-large', 'unresolved', 'refused']);
const WARN = new Set(['minor', 'warning', 'connecting', 'closing', 'draining', 'drained', 'compiling', 'stale', 'waits']);

/** A state in a word and a colour. */
export function Badge({ word }: { word: string }) {
  const kind = GOOD.has(word) ? 'good' : BAD.has(word) ? 'bad' : WARN.has(word) ? 'warn' : 'note';
  return <span class={`badge ${kind}`}>{word}</span>;
}

interface ButtonProps {
  /** Role that the action needs. */
  needs?: Role;
  onClick?: () => void;
  kind?: 'main' | 'danger' | 'plain';
  disabled?: boolean;
  type?: 'button' | 'submit';
  children: ComponentChildren;
}

/** A button. It says why it cannot be used. */
export function Button({ needs, onClick, kind = 'plain', disabled = false, type = 'button', children }: ButtonProps) {
  const refusal = useRefusal(needs);
  const id = useId();
  return (
    <>
      <button
        type={type}
        class={kind}
        disabled={disabled || refusal !== null}
        onClick={onClick}
        {...(refusal ? { title: refusal, 'aria-describedby': id } : {})}
      >
        {children}
      </button>
      {refusal && <small id={id} class="refusal">{refusal}</small>}
    </>
  );
}

/** A dialogue above the page. The browser keeps the focus in it, and gives it back afterwards. */
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const own = dialog.current;
    own?.showModal();
    return () => own?.close();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={close}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

/** Pairs of a name and a value; those without a value are left out. */
export function Facts({ facts }: { facts: [name: string, value: ComponentChildren][] }) {
  const there = facts.filter(([, value]) => value !== '' && value !== undefined && value !== null && value !== false);
  return (
    <dl class="facts">
      {there.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A number that is read from afar. */
export function Stat({ name, value, note, bad = false }: { name: string; value: string; note?: string; bad?: boolean }) {
  return (
    <div class={bad ? 'stat bad' : 'stat'}>
      <span class="name">{name}</span>
      <span class="value">{value}</span>
      {note && <span class="note">{note}</span>}
    </div>
  );
}

/** Links to the parts of a page. */
export function Tabs({ label, tabs, now }: { label: string; tabs: [name: string, address: string][]; now: string }) {
  const own = useRef<HTMLElement>(null);
  // on a narrow page they are in a line that scrolls
  useEffect(() => own.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }), [now]);
  return (
    <nav class="tabs" aria-label={label} ref={own}>
      {tabs.map(([name, address]) => (
        <a key={name} href={address} {...(name === now ? { 'aria-current': 'page' as const } : {})}>{name}</a>
      ))}
    </nav>
  );
}
