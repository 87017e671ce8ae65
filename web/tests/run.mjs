// Uses the web manager of a running gateway as an operator does, in Chromium, and fails on whatever goes wrong there.
//
//   SLUICE_URL=https://127.0.0.1:8443 SLUICE_LINK=SECRET OUT=DIR node web/tests/run.mjs
//
// SLUICE_URL    address of sluice-web, without a path
// SLUICE_LINK   secret of a one-time link, or the whole link, of somebody with the role `configure`; or
// SLUICE_USER and SLUICE_PASSWORD: with them the way back after an expired session is tried as well
// OUT           folder for `web.json` (problems, timings in milliseconds) and screenshots; default: none are written
// SILENT        homes send nothing by themselves: what needs that is left out
// CHROMIUM      the browser; default: /usr/bin/chromium
//
// The gateway has at least two homes online with IPv4 and IPv6, which connect again by themselves, as in `sluice lab --homes 20`. One of
// them is disconnected; the configuration is changed and brought back. The exit code is 1 if there was a problem; each is a line on
// standard error.
import assert from 'node:assert/strict';
import { Browser } from './browser.mjs';
import { changeConfiguration } from './configuration.mjs';

const { SLUICE_URL, SLUICE_LINK, SLUICE_USER, SLUICE_PASSWORD, OUT, SILENT, CHROMIUM = '/usr/bin/chromium' } = process.env;
if (!SLUICE_URL || !(SLUICE_LINK || (SLUICE_USER && SLUICE_PASSWORD))) {
  console.error('SLUICE_URL, and SLUICE_LINK or SLUICE_USER and SLUICE_PASSWORD, are needed: see the beginning of this file.');
  process.exit(2);
}
const origin = new URL(SLUICE_URL).origin;
const secret = SLUICE_LINK?.split('link=').pop();
const browser = new Browser(origin, OUT);
await browser.open(CHROMIUM);
const { page } = browser;
const NOT_SIGNED_IN = [[401, '/api/v1/me']];
const heading = (text) => page.locator('h1', { hasText: text }).waitFor();

async function signInByPassword() {
  await page.getByLabel('User').fill(SLUICE_USER);
  await page.getByLabel('Password').fill(SLUICE_PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('header').waitFor();
}

await browser.run('sign-in', async () => {
  await page.goto(`${origin}/`);
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
  await browser.check('sign-in');
  await browser.shot('sign-in');
  await page.getByLabel('User').fill('nobody');
  await page.getByLabel('Password').fill('wrong');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  await page.goto(`${origin}/#/sign-in?link=wrong`);
  await page.locator('.notice.warn').waitFor();
  assert.ok(!page.url().includes('wrong'), 'the link stays in the address bar');
  if (secret) {
    await page.goto(`${origin}/#/sign-in?link=${encodeURIComponent(secret)}`);
    await page.locator('header').waitFor();
    assert.ok(!page.url().includes(secret), 'the secret stays in the address bar');
  } else {
    await signInByPassword();
  }
}, [...NOT_SIGNED_IN, [401, '/api/v1/sign-in']]);

await browser.run('first-view', async () => {
  browser.timings.firstView = [];
  for (let turn = 0; turn < 3; turn += 1) {
    await page.goto('about:blank');
    const begun = performance.now();
    await page.goto(`${origin}/`);
    await page.locator('.stat').first().waitFor();
    browser.timings.firstView.push(performance.now() - begun);
  }
  // others may use the machine as well: the best of three says what the page needs
  const best = Math.min(...browser.timings.firstView);
  assert.ok(best < 1000, `the first view takes ${Math.round(best)} ms`);
});

if (!(await browser.ask('me')).body?.name) {
  await browser.close();
  process.exit(1);
}

const homes = (await browser.ask('sessions?limit=100')).body?.rows?.filter((row) => row.ipv4 && row.ipv6_prefix && row.state === 'online') ?? [];
const home = homes[0];
const other = homes[homes.length - 1];
if (!home) browser.problem('no home is online');

const PAGES = {
  overview: '#/',
  sessions: '#/subscribers',
  subscribers: '#/subscribers/all',
  session: `#/session/${home?.id}`,
  'search-nothing': '#/search?q=nobody-has-this-name',
  'search-many': `#/search?q=${encodeURIComponent('100.64.0.0/10')}`,
  who: `#/who?address=${home?.ipv4}`,
  lines: '#/lines',
  'all-lines': '#/lines?worst=no',
  hours: '#/lines/hours',
  figures: '#/figures',
  'figures-month': '#/figures?figure=up&since=-30d',
  events: '#/events',
  'events-of-one': `#/events?subscriber=${home?.user}&since=-2h`,
  'events-of-kinds': `#/events?subscriber=${encodeURIComponent('up1/*')}&also=${home?.user}&kinds=online,ended`,
  alarms: '#/events/alarms',
  'alarm-history': '#/events/history',
  configuration: '#/configuration',
  versions: '#/configuration/versions',
  tables: '#/tables',
  nowhere: '#/nowhere',
};
for (const part of ['user-planes', 'ports', 'workers', 'pools', 'aaa-servers', 'associations', 'routes', 'neighbours', 'qos', 'policies', 'acl',
  'protection', 'drops', 'audit']) PAGES[`network-${part}`] = `#/network/${part}`;
const described = (await browser.ask('openapi.json')).body;
for (const [path, { get }] of Object.entries(described.paths)) {
  const rows = get?.responses?.['200']?.content?.['application/json']?.schema?.properties?.rows;
  const name = path.replace('/api/v1/', '');
  if (rows) PAGES[`table-${name}`] = `#/tables/${name}`;
}

/** A text that names nothing is not found, which is an answer. */
const NOT_FOUND = [[404, '/api/v1/subscriber?']];
async function visit(look) {
  for (const [name, hash] of Object.entries(PAGES)) {
    await browser.run(`${look} ${name}`, async () => {
      await browser.show(hash);
      // all tables look the same: axe takes seconds for a long one
      await browser.check(name, { axe: look === 'wide' || !name.startsWith('table-') });
      const alert = await page.locator('main .notice.bad[role=alert]').first().textContent({ timeout: 10 }).catch(() => null);
      assert.equal(alert, null);
      await browser.shot(`${look}-${name}`);
    }, NOT_FOUND);
  }
}
await visit('wide');
await browser.run('narrow', async () => {
  await page.setViewportSize({ width: 360, height: 740 });
  await page.emulateMedia({ colorScheme: 'dark' });
});
await visit('narrow');
await browser.run('wide again', async () => {
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: 'light' });
});

/** Types into the search field, by keys alone. */
async function search(text) {
  await browser.show('#/');
  await page.locator('body').press('/');
  await page.keyboard.type(text);
  const begun = performance.now();
  await page.keyboard.press('Enter');
  await heading(home.user);
  browser.timings[`search ${text}`] = performance.now() - begun;
  assert.equal(new URL(page.url()).hash, `#/session/${home.id}`);
}
const prefix = home.ipv6_prefix.split('/')[0];
// several user planes may have the same MAC address: then a list of sessions is what is found
for (const text of [home.user, home.ipv4, `${prefix}1`, home.id]) await browser.run(`search ${text}`, () => search(text));
await browser.run('search by MAC address', async () => {
  const typed = home.mac.replaceAll(':', '-').toUpperCase();
  await page.locator('body').press('/');
  await page.keyboard.type(typed);
  await page.keyboard.press('Enter');
  const { total } = (await browser.ask(`sessions?mac=${home.mac}`)).body;
  if (total === 1) await heading(home.user);
  else await page.getByRole('link', { name: home.user, exact: true }).first().waitFor();
});
await browser.run('keys alone', async () => {
  await browser.show('#/subscribers');
  await page.locator('main').focus();
  for (let i = 0; i < 40; i += 1) {
    await page.keyboard.press('Tab');
    if (await page.evaluate((user) => document.activeElement?.textContent === user, home.user)) break;
  }
  await page.keyboard.press('Enter');
  await heading(home.user);
});

await browser.run('live', async () => {
  await browser.show(`#/session/${home.id}`);
  const rates = page.locator('figure.chart figcaption').first();
  await page.waitForFunction(() => /bit\/s/.test(document.querySelector('figure.chart figcaption')?.textContent ?? ''));
  const first = await rates.textContent();
  if (!SILENT) await page.waitForFunction((before) => document.querySelector('figure.chart figcaption')?.textContent !== before, first);
  await page.getByRole('button', { name: 'Explain', exact: true }).click();
  await page.getByText(`${home.user} is online since`).waitFor();
  await page.getByRole('button', { name: 'Watch rules' }).click();
  await page.locator('.notice.good').waitFor();
  await page.getByRole('button', { name: 'Clear back-off' }).click();
  await page.locator('.notice', { hasText: home.mac }).waitFor();
}, [[404, '/actions/clear-back-off']]);

await browser.run('messages', async () => {
  await browser.show(`#/session/${home.id}`);
  await page.getByRole('button', { name: 'Follow messages' }).click();
  await page.getByText(`Following ${home.mac}`).waitFor();
  // the lab's homes send packets, of which some are shown
  if (!SILENT) await page.getByRole('img', { name: 'home to user plane' }).first().waitFor();
  await browser.check('messages');
  await page.getByRole('button', { name: 'Stop' }).click();
  const link = await page.getByRole('link', { name: /for Wireshark/ }).getAttribute('href');
  const head = await page.evaluate(async (url) => {
    const answer = await fetch(url);
    return [answer.headers.get('content-disposition'), ...new Uint8Array(await answer.arrayBuffer()).slice(0, 4)];
  }, link.replace('seconds=60', 'seconds=1'));
  // a section header block (pcapng)
  assert.deepEqual(head, [`attachment; filename="${home.id}.pcapng"`, 0x0a, 0x0d, 0x0d, 0x0a]);
});

await browser.run('disconnect', async () => {
  await browser.show(`#/session/${other.id}`);
  await page.getByRole('button', { name: 'Disconnect…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(other.user, { exact: true }).first().waitFor();
  await browser.check('dialogue');
  await browser.shot('disconnect');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  assert.equal((await browser.ask(`session?session=${other.id}`)).status, 200);
  await page.getByRole('button', { name: 'Disconnect…' }).click();
  await dialog.getByRole('button', { name: 'Disconnect' }).click();
  await page.getByText('has ended').waitFor();
  assert.equal((await browser.ask(`session?session=${other.id}`)).status, 404);
  const again = page.getByRole('link', { name: `Look for ${other.user} again` });
  await again.waitFor();
  for (let tries = 0; tries < 60; tries += 1) {
    if ((await browser.ask(`subscriber?subscriber=${other.user}`)).status === 200) break;
    await page.waitForTimeout(1000);
  }
  await again.click();
  await heading(other.user);
  assert.ok(!page.url().includes(other.id));
}, [[404, '/api/v1/session?'], [404, '/api/v1/subscriber?']]);

await browser.run('filter and disconnect several', async () => {
  await browser.show('#/subscribers');
  await page.getByText('Filter all sessions').click();
  await page.locator('form.row [name=state]').selectOption('online');
  await page.locator('form.row [name=mac]').fill(other.mac.slice(0, 8));
  await page.locator('form.row [name=user]').fill(other.user);
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByRole('button', { name: 'Disconnect them…' }).waitFor();
  const wanted = `sessions?state=online&user=${other.user}&mac=${other.mac.slice(0, 8)}`;
  const found = (await browser.ask(wanted)).body;
  assert.equal(found.total, 1);
  assert.deepEqual(found.rows.map((row) => row.user), [other.user]);
  await browser.check('filter');
  await browser.shot('filter');
  await page.getByRole('button', { name: 'Disconnect them…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Disconnect 1 session?').waitFor();
  await browser.check('disconnect several');
  await browser.shot('disconnect-several');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  assert.equal((await browser.ask(`session?session=${found.rows[0].id}`)).status, 200);
  await page.getByRole('button', { name: 'Disconnect them…' }).click();
  await dialog.getByRole('button', { name: 'Disconnect', exact: true }).click();
  await page.getByText('all are done').waitFor();
  const [last] = (await browser.ask('session-clears')).body.rows;
  assert.deepEqual([last.sessions, last.ended, last.remaining_seconds], [1, 1, null]);
  for (let tries = 0; tries < 60; tries += 1) {
    if ((await browser.ask(wanted)).body.total === 1) break;
    await page.waitForTimeout(1000);
  }
  assert.notEqual((await browser.ask(wanted)).body.rows[0].id, found.rows[0].id);
}, [[404, '/api/v1/session?']]);

await browser.run('test aaa', async () => {
  await browser.show('#/network/aaa-servers');
  await page.locator('form.row [name=user]').fill(home.user);
  await page.locator('form.row [name=password]').fill('not the password');
  await page.getByRole('button', { name: 'Ask', exact: true }).click();
  await page.getByText('Not accepted').waitFor();
  await browser.check('test aaa');
});

await browser.run('drain', async () => {
  await browser.show('#/network/user-planes');
  const state = async () => (await browser.ask('configuration')).body.tree['user-planes'];
  const before = await state();
  await page.getByRole('button', { name: 'Drain…' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('It takes no new sessions').waitFor();
  await browser.check('drain');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  assert.deepEqual(await state(), before);
  await page.getByRole('button', { name: 'Drain…' }).first().click();
  await dialog.getByRole('button', { name: 'Drain', exact: true }).click();
  await page.getByText('is in force').waitFor();
  const drained = Object.values(await state()).filter((plane) => plane['admin-state'] === 'shutting-down');
  assert.equal(drained.length, 1);
  await page.getByRole('button', { name: 'Take sessions again' }).click();
  await page.waitForFunction(async (text) => {
    const answer = await fetch('/api/v1/configuration');
    return !JSON.stringify((await answer.json()).tree['user-planes']).includes(text);
  }, 'shutting-down');
});

await browser.run('events by combination', async () => {
  await browser.show('#/events');
  await page.locator('form.row [name=subscriber]').fill('home*');
  await page.locator('form.row [name=also]').fill(home.mac);
  await page.locator('form.row [name=kinds]').selectOption('online');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.waitForURL(/kinds=online/);
  const found = (await browser.ask(`events?subscriber=home*&also=${home.mac}&kinds=online&last=100`)).body;
  assert.ok(found.total >= 1 && found.total === found.rows.length, JSON.stringify(found));
  assert.ok(found.rows.every((row) => row.kind === 'online' && row.subscriber.mac === home.mac));
  await page.getByText(found.total === 1 ? '1 event' : `${found.total} events`, { exact: true }).waitFor();
});

await browser.run('trouble by hour', async () => {
  await browser.show('#/lines/hours?kind=ended');
  const table = page.locator('table.heat');
  await table.waitFor();
  const found = (await browser.ask('trouble?kind=ended')).body;
  const [worst] = found.rows;
  assert.ok(worst.ended >= 1 && worst.failed + worst.refused === 0, JSON.stringify(worst));
  // by keys alone: to what is behind the worst row
  const row = table.locator('tbody tr').first();
  assert.equal(await row.locator('th').textContent(), worst.lines);
  assert.equal(await row.locator('td').count(), 25);
  assert.ok(await row.locator('td[data-heat="5"], td[data-heat="4"]').count() >= 1);
  await row.locator('a').focus();
  await page.keyboard.press('Enter');
  await page.locator('tbody tr').first().waitFor();
  const asked = new URL(page.url()).hash;
  assert.ok(asked.startsWith('#/events') && asked.includes('kinds=ended'), asked);
  await browser.check('trouble by hour');
});

await browser.run('audit', async () => {
  await browser.show('#/network/audit');
  await page.getByRole('button', { name: 'Run the audit' }).click();
  await page.getByText('Every resource has its owner').waitFor();
  await browser.check('audit');
});

await browser.run('backup', async () => {
  await browser.show('#/events/backup');
  await page.getByRole('button', { name: 'Back up the history' }).click();
  await page.getByText('has the history up to now').waitFor();
  await browser.check('backup');
});

await changeConfiguration(browser);

await browser.run('hide names', async () => {
  await page.getByRole('button', { name: 'Hide names' }).click();
  for (const hash of ['#/', '#/subscribers', `#/session/${home.id}`, '#/events', '#/lines?worst=no', '#/configuration', `#/who?address=${home.ipv4}`, '#/tables/sessions']) {
    await browser.show(hash);
    await page.waitForTimeout(300);
    const shown = await page.evaluate(() => `${document.title} ${document.body.innerText} ${[...document.querySelectorAll('[title],[aria-label]')]
      .map((element) => `${element.getAttribute('title')} ${element.getAttribute('aria-label')}`).join(' ')}`);
    for (const one of [home, other]) {
      for (const field of ['user', 'mac', 'ipv4', 'ipv6_prefix']) {
        assert.ok(!new RegExp(`(?<![\\w.:])${one[field].replaceAll('.', '\\.')}(?![\\w])`).test(shown), `${hash} shows ${one[field]}`);
      }
    }
  }
  await browser.shot('hidden');
  await page.getByRole('button', { name: 'Hide names' }).click();
  await browser.show('#/subscribers');
  await page.getByText(home.ipv4, { exact: true }).waitFor();
});

await browser.run('unseen', async () => {
  await browser.show('#/network/ports');
  const see = (hidden) => page.evaluate((now) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => now });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
  await see(true);
  await page.waitForTimeout(1000);
  let asked = 0;
  const count = () => { asked += 1; };
  page.on('request', count);
  await page.waitForTimeout(11_000);
  assert.equal(asked, 0, 'a page that nobody sees asks');
  await see(false);
  await page.waitForTimeout(1000);
  assert.ok(asked > 0, 'a page that is seen again does not ask');
  page.off('request', count);
});

await browser.run('lost connection', async () => {
  await browser.show('#/network/ports');
  await browser.context.setOffline(true);
  await page.getByText('The connection is lost').waitFor();
  await browser.context.setOffline(false);
  await page.getByText('The connection is lost').waitFor({ state: 'detached', timeout: 40_000 });
}, [[0, '/api/']]);

await browser.run('role view', async () => {
  await page.route('**/api/v1/me', (route) => route.fulfill({ json: { name: 'viewer', role: 'view', expires: 0 } }));
  await page.goto('about:blank');
  await page.goto(`${origin}/`);
  await page.locator('.stat').first().waitFor();
  await browser.show('#/subscribers');
  await page.getByText('This needs the role support').first().waitFor();
  await browser.show('#/configuration');
  await page.getByText('This needs the role').first().waitFor();
  await browser.show('#/network/audit');
  assert.ok(await page.getByRole('button', { name: 'Run the audit' }).isDisabled());
  await browser.check('role view');
  await page.unroute('**/api/v1/me');
  await page.goto('about:blank');
  await page.goto(`${origin}/`);
  await page.getByText('(configure)').waitFor();
});

await browser.run('expired', async () => {
  await browser.show('#/network/ports');
  await browser.context.clearCookies();
  await page.getByText('the session has expired').waitFor();
  await browser.check('expired');
  if (!SLUICE_USER || !SLUICE_PASSWORD) return;
  await signInByPassword();
  assert.equal(new URL(page.url()).hash, '#/network/ports');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
}, [[401, '/api/']]);

const { problems, timings } = await browser.close();
console.log(JSON.stringify(timings, null, 2));
console.log(problems.length === 0 ? 'no problem' : `${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
