import { Store } from './store';

/** Counts the changes that this page made, so that whoever shows the configuration reads it again. */
export const changed = new Store(0);

export const tellChange = (): void => changed.set(changed.get() + 1);
