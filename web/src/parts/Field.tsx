import type { Argument } from '../schema';

/** Where an argument of a table is typed or chosen. */
export function Field({ argument, value }: { argument: Argument; value: string }) {
  const { name, kind, required, about, words } = argument;
  const id = `argument-${name}`;
  if (kind === 'flag') {
    return <label class="inline" title={about}><input type="checkbox" name={name} value="true" defaultChecked={value === 'true'} /> {name}</label>;
  }
  if (words) {
    return (
      <label>
        {name}
        <select name={name} defaultValue={value} required={required} aria-describedby={id}>
          {['', ...words].map((word) => <option key={word} value={word} selected={word === value}>{word}</option>)}
        </select>
        <small id={id}>{about}</small>
      </label>
    );
  }
  return (
    <label>
      {name}
      <input
        name={name}
        class={kind === 'number' ? '' : 'names'}
        placeholder=" "
        inputMode={kind === 'number' ? 'numeric' : 'text'}
        defaultValue={value}
        required={required}
        autocomplete="off"
        aria-describedby={id}
      />
      <small id={id}>{about}</small>
    </label>
  );
}
