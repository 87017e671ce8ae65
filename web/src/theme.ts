import { Store } from './store';

const THEMES = ['auto', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];

/** Light, dark, or as the system says. */
export const theme = new Store<Theme>(THEMES.find((one) => one === localStorage.getItem('theme')) ?? 'auto');

export function turnTheme(): void {
  theme.set(THEMES[(THEMES.indexOf(theme.get()) + 1) % THEMES.length] ?? 'auto');
}

function apply(): void {
  localStorage.setItem('theme', theme.get());
  document.documentElement.dataset['theme'] = theme.get();
}

theme.subscribe(apply);
apply();
