import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { post } from '../api';
import { canBeHelped, insertion, narrowed, typedAt, type Completions, type Option, type Typed } from '../completions';
import { plural } from '../format';

/** Milliseconds without a key after which is asked what may come next. */
const PAUSE = 100;

interface Answered {
  asked: Typed;
  completions: Completions;
}

/** What helps at a cursor; `null` without a cursor, while nothing is known, and where nothing can be said. */
function useCompletions(text: string, cursor: number | undefined): Completions | null {
  const [last, setLast] = useState<Answered | null>(null);
  const now = typedAt(text, cursor ?? 0);
  const known = last && narrowed(last.completions, last.asked, now);
  const asks = cursor !== undefined && !known && canBeHelped(now);
  useEffect(() => {
    if (!asks) return;
    const abort = new AbortController();
    const ask = async () => {
      try {
        setLast({ asked: now, completions: await post<Completions>('configuration/completions', now, abort.signal) });
      } catch {
        // a lost connection is told elsewhere: the next key asks again
      }
    };
    const timer = setTimeout(() => void ask(), PAUSE);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [asks, now.line, now.edits.join('\n')]);
  if (cursor === undefined) return null;
  // the documentation stays until there is another one: it would flicker with each word
  return known ?? (asks && last ? { ...last.completions, expected: null, options: [] } : null);
}

interface LineEditorProps {
  value: string;
  readOnly: boolean;
  placeholder: string;
  onChange: (value: string) => void;
  /** Its label. */
  children: ComponentChildren;
}

/** A field for lines of a change, with what may come next, and the documentation of where the cursor is. */
export function LineEditor({ value, readOnly, placeholder, onChange, children }: LineEditorProps) {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const [cursor, setCursor] = useState<number>();
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const found = useCompletions(value, readOnly ? undefined : cursor);
  const options = (open && found?.options) || [];
  const expanded = options.length > 0;

  const move = (opens: boolean) => {
    setCursor(area.current?.selectionEnd);
    setOpen(opens);
    setChosen(-1);
  };
  /** The cursor may have moved without a change: then nobody types, and the list is in the way of the arrow keys. */
  const look = () => {
    if (area.current?.selectionEnd !== cursor) move(false);
  };
  const choose = (option: Option) => {
    const field = area.current;
    if (!field || !found) return;
    const { from, to, text } = insertion(field.value, field.selectionEnd, found.begins, option);
    field.setSelectionRange(from, to);
    // as if it were typed: it is told as an input, and can be undone. Nothing else that can be undone is known to browsers
    document.execCommand('insertText', false, text);
  };
  const press = (event: KeyboardEvent) => {
    const taken = !event.isComposing && !event.ctrlKey && !event.metaKey && !event.shiftKey
      && keyDown(event, { options, chosen, setChosen, setOpen, choose });
    if (taken) event.preventDefault();
  };
  // ARIA in HTML, and so the type of its attributes, has no list for a field of several lines. It is a combobox while there is a list.
  const combobox: object = !expanded ? {} : {
    role: 'combobox',
    'aria-expanded': true,
    'aria-controls': `${id}-list`,
    ...(options[chosen] && { 'aria-activedescendant': `${id}-${chosen}` }),
  };
  return (
    <>
      <label>
        {children}
        <textarea
          ref={area}
          class="names"
          rows={8}
          spellcheck={false}
          autocomplete="off"
          autocapitalize="none"
          value={value}
          readOnly={readOnly}
          placeholder={placeholder}
          aria-autocomplete="list"
          aria-haspopup="listbox"
          aria-describedby={`${id}-keys`}
          {...combobox}
          onInput={(event) => {
            onChange(event.currentTarget.value);
            move(true);
          }}
          onKeyDown={press}
          onKeyUp={look}
          onClick={look}
          onFocus={look}
          onBlur={() => setOpen(false)}
        />
      </label>
      {!readOnly && (
        <div class="assist">
          <small id={`${id}-keys`}>↓ goes to what may come next, Enter or Tab takes it, Esc closes the list, Alt+↓ opens it.</small>
          {expanded && <Options id={id} options={options} more={found?.more ?? 0} chosen={chosen} choose={choose} />}
          {found && <About found={found} />}
          <p class="unseen" role="status">{open && found ? announcement(found) : ''}</p>
        </div>
      )}
    </>
  );
}

interface List {
  options: Option[];
  chosen: number;
  setChosen: (chosen: number) => void;
  setOpen: (open: boolean) => void;
  choose: (option: Option) => void;
}

/** Does what a key says to the list; false: the key is the field's. */
function keyDown({ key, altKey }: KeyboardEvent, { options, chosen, setChosen, setOpen, choose }: List): boolean {
  if (altKey) {
    if (key !== 'ArrowDown') return false;
    setOpen(true);
    return true;
  }
  const option = options[chosen];
  if (options.length === 0) return false;
  if (key === 'Escape') setOpen(false);
  else if (key === 'ArrowDown') setChosen((chosen + 1) % options.length);
  else if (key === 'ArrowUp' && option) setChosen(chosen - 1);
  else if ((key === 'Enter' || key === 'Tab') && option) choose(option);
  else return false;
  return true;
}

interface OptionsProps {
  id: string;
  options: Option[];
  more: number;
  chosen: number;
  choose: (option: Option) => void;
}

function Options({ id, options, more, chosen, choose }: OptionsProps) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: 'nearest' }), [chosen]);
  return (
    <>
      <ul ref={list} id={`${id}-list`} role="listbox" aria-label="What may come next">
        {options.map((option, number) => (
          <li
            key={option.word}
            id={`${id}-${number}`}
            role="option"
            aria-selected={number === chosen}
            // the field keeps the focus
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => choose(option)}
          >
            <code>{option.word}</code> {option.help && <Marked text={option.help} />}
          </li>
        ))}
      </ul>
      {more > 0 && <small>{`${plural(more, 'option')} more: type on.`}</small>}
    </>
  );
}

/** The documentation of a place. */
function About({ found }: { found: Completions }) {
  return (
    <div class="about" role="region" aria-label="Documentation" tabIndex={0}>
      <p>{found.place && <><code>{found.place}</code>{': '}</>}<Marked text={found.about} /></p>
      {found.expected !== null && <p>Expected: <Marked text={found.expected} /></p>}
    </div>
  );
}

/** What a screen reader says of the list. */
function announcement({ options, more, expected }: Completions): string {
  if (options.length > 0) return `${plural(options.length + more, 'option')}`;
  return expected === null ? '' : `Expected: ${expected}`;
}

/** A text with `code` in backticks. */
function Marked({ text }: { text: string }) {
  return <>{text.split('`').map((part, number) => (number % 2 === 1 ? <code key={number}>{part}</code> : part))}</>;
}
