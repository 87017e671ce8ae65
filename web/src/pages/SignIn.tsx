import { useEffect, useRef, useState } from 'preact/hooks';
import { detail } from '../api';
import { Button, Notice } from '../parts/basics';
import { signIn, why } from '../session';
import { useStore } from '../store';

export function SignIn() {
  const reason = useStore(why);
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setError('');
    try {
      await signIn({ user: String(form.get('user')).trim(), password: String(form.get('password')) });
    } catch (problem) {
      setError(detail(problem));
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <h1>Sluice</h1>
      <form onSubmit={(event) => void submit(event)}>
        {reason && <Notice kind="warn">{reason}</Notice>}
        <label>User <input ref={first} name="user" autocomplete="username" autocapitalize="none" spellcheck={false} required /></label>
        <label>Password <input name="password" type="password" autocomplete="current-password" required /></label>
        {error && <div class="notice bad" role="alert">{error}</div>}
        <Button type="submit" kind="main" disabled={busy}>Sign in</Button>
      </form>
      <p><small>Without a password: open the link that <code>sluice-web link</code> prints.</small></p>
    </main>
  );
}
