import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { hidden, redact } from './hide';
import { AlarmCount, AlarmTeller, Lost, Unconfirmed } from './parts/Banners';
import { ErrorBox, Loading } from './parts/basics';
import { Configuration } from './pages/Configuration';
import { Events } from './pages/Events';
import { Figures } from './pages/Figures';
import { Lines } from './pages/Lines';
import { Network } from './pages/Network';
import { Overview } from './pages/Overview';
import { Search, Subscribers } from './pages/Search';
import { Session } from './pages/Session';
import { SignIn } from './pages/SignIn';
import { Tables } from './pages/Tables';
import { Who } from './pages/Holders';
import { usePoll } from './poll';
import { go, link, useRoute, type Route } from './router';
import { readTables } from './schema';
import { begin, me, signOut, type Me } from './session';
import { useStore } from './store';
import { theme, turnTheme } from './theme';

const PAGES: { [name: string]: (props: { route: Route }) => ComponentChildren } = {
  '': Overview, search: Search, subscribers: Subscribers, session: Session, who: Who, lines: Lines, network: Network, events: Events, figures: Figures,
  configuration: Configuration, tables: Tables,
};

const MENU: [name: string, label: string][] = [
  ['', 'Overview'],
  ['subscribers', 'Subscribers'],
  ['lines', 'Lines'],
  ['who', 'Who had it'],
  ['network', 'Network'],
  ['figures', 'Over time'],
  ['events', 'Events'],
  ['configuration', 'Configuration'],
  ['tables', 'All tables'],
];

export function App() {
  const who = useStore(me);
  const [error, setError] = useState<Error | null>(null);
  const start = () => {
    setError(null);
    begin().catch((problem: unknown) => setError(problem instanceof Error ? problem : new Error(String(problem))));
  };
  useEffect(start, []);
  if (error) return <main><ErrorBox error={error} retry={start} /></main>;
  if (who === undefined) return <main><Loading /></main>;
  return who === null ? <SignIn /> : <Manager key={who.name} who={who} />;
}

function Manager({ who }: { who: Me }) {
  const route = useRoute();
  // drawing everything again is what hides names, or shows them
  useStore(hidden);
  const described = usePoll('description', readTables);
  const main = useRef<HTMLElement>(null);
  const page = route.parts.join('/');
  const first = useRef(true);
  useEffect(() => {
    const name = MENU.find(([path]) => path === (route.parts[0] ?? ''))?.[1] ?? route.parts[0] ?? '';
    document.title = `${redact(name)} – Sluice`;
    // whoever reads by ear or by keys begins with the new page
    if (!first.current) main.current?.focus();
    first.current = false;
  }, [page]);
  const Page = PAGES[route.parts[0] ?? ''];
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>To the content</a>
      <Head who={who} route={route} />
      <Lost />
      <Unconfirmed />
      <AlarmTeller />
      <main ref={main} id="main" tabIndex={-1}>
        {described.error && <ErrorBox error={described.error} retry={described.refresh} />}
        {Page ? <Page key={page} route={route} /> : <h1>There is no such page.</h1>}
      </main>
    </>
  );
}

function Head({ who, route }: { who: Me; route: Route }) {
  const hides = useStore(hidden);
  const look = useStore(theme);
  return (
    <header>
      <div class="top">
        <a class="brand" href="#/">Sluice</a>
        <SearchField />
        <AlarmCount />
        <button type="button" aria-pressed={hides} onClick={() => hidden.set(!hides)}>Hide names</button>
        <button type="button" class="theme" onClick={turnTheme}>{`Colours: ${look}`}</button>
        <span class="who">{`${who.name} (${who.role})`}</span>
        <button type="button" onClick={() => void signOut().catch(() => {})}>Sign out</button>
      </div>
      <nav aria-label="Pages">
        {MENU.map(([path, label]) => (
          <a key={path} href={link([path].filter(Boolean))} {...((route.parts[0] ?? '') === path ? { 'aria-current': 'page' as const } : {})}>{label}</a>
        ))}
      </nav>
    </header>
  );
}

/** One field for every identity. The key `/` leads to it. */
function SearchField() {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const inField = event.target instanceof HTMLElement && event.target.matches('input, textarea, select');
      if (event.key !== '/' || inField || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      field.current?.focus();
      field.current?.select();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
  const search = (event: Event) => {
    event.preventDefault();
    const q = field.current?.value.trim() ?? '';
    if (q) go(link(['search'], { q }));
  };
  return (
    <form role="search" onSubmit={search}>
      <input
        ref={field}
        type="search"
        name="q"
        class="names"
        aria-label="Search for a user, address, MAC, line or session"
        placeholder="User, address, MAC, line, session ( / )"
        autocomplete="off"
        spellcheck={false}
      />
    </form>
  );
}

