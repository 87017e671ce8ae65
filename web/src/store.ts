import { useLayoutEffect, useState } from 'preact/hooks';

/** A value outside of components that tells its readers when it changes. */
export class Store<T> {
  private readers = new Set<() => void>();

  constructor(private value: T) {}

  get(): T {
    return this.value;
  }

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const reader of [...this.readers]) reader();
  }

  subscribe(reader: () => void): () => void {
    this.readers.add(reader);
    return () => this.readers.delete(reader);
  }
}

/** Reads a store in a component, and draws the component again when the store changes. */
export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(store.get());
  useLayoutEffect(() => {
    const read = () => setValue(() => store.get());
    read(); // it may have changed between the first drawing and now
    return store.subscribe(read);
  }, [store]);
  return value;
}
