import { expired, get, post, Problem } from './api';
import { Store, useStore } from './store';

/** Roles, each of which may do what those before it may. */
export const ROLES = ['view', 'support', 'operate', 'configure'] as const;
export type Role = (typeof ROLES)[number];

/** Who is signed in. */
export interface Me {
  name: string;
  role: Role;
  expires: number | string;
}

/** Who is signed in; `null`: nobody; `undefined`: not known yet. */
export const me = new Store<Me | null | undefined>(undefined);
/** Why the sign-in page is shown, where there is a reason. */
export const why = new Store<string>('');
/** Page to show after the next sign-in. */
let back = '';

expired.tell = () => {
  if (me.get()) {
    why.set('You have been signed out: the session has expired.');
    back = location.hash;
  }
  me.set(null);
};

/** Finds out who is signed in. A link in the address, `#/sign-in?link=SECRET`, signs in at once. */
export async function begin(): Promise<void> {
  const link = takeLink();
  if (link) {
    await signIn({ link }).catch((error: unknown) => {
      why.set(error instanceof Problem ? error.detail : String(error));
      me.set(null);
    });
    return;
  }
  const page = location.hash;
  try {
    me.set(await get<Me>('me'));
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    if (!page.startsWith('#/sign-in')) back = page;
    me.set(null);
  }
}

/** The secret of a link, which does not stay in the address bar nor in the history. */
function takeLink(): string | null {
  const [path, values] = location.hash.slice(1).split('?');
  if (path !== '/sign-in') return null;
  const link = new URLSearchParams(values ?? '').get('link');
  if (link) history.replaceState(null, '', '#/');
  return link;
}

// a link may be opened while the page is there already
addEventListener('hashchange', () => {
  if (/^#\/sign-in\?.*link=/.test(location.hash)) void begin();
});

export async function signIn(by: { user: string; password: string } | { link: string }): Promise<void> {
  const signed = await post<Me>('sign-in', by);
  why.set('');
  if (back || location.hash.startsWith('#/sign-in')) history.replaceState(null, '', back || '#/');
  back = '';
  dispatchEvent(new HashChangeEvent('hashchange'));
  me.set(signed);
}

export async function signOut(): Promise<void> {
  await post('sign-out');
  history.replaceState(null, '', '#/');
  me.set(null);
}

export const may = (role: Role, needed: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(needed);

/** Why whoever is signed in may not do what needs this role; `null`: it may, or no role is needed. */
export function useRefusal(needed: Role | undefined): string | null {
  const now = useStore(me);
  if (needed === undefined) return null;
  if (now && may(now.role, needed)) return null;
  return `This needs the role ${needed}; yours is ${now?.role ?? 'none'}.`;
}
