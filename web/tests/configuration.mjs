// A change of the configuration from the first line to its end: for `run.mjs`.
import assert from 'node:assert/strict';

const POOL = 'web-test';
const COMMENT = 'a pool for a moment';

/** Acknowledges a raised alarm by keys alone. It is shown apart, with who says what of it. */
async function acknowledge(browser, name) {
  const { page } = browser;
  const comment = 'known to <b>the shift</b>';
  await browser.show('#/events/alarms');
  const button = page.locator('.notice.bad', { hasText: name }).getByRole('button', { name: `Acknowledge… ${name}` });
  await button.focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: `Acknowledge ${name}` });
  await dialog.getByRole('textbox', { name: 'Comment' }).waitFor();
  await browser.check('acknowledge');
  await page.keyboard.type(comment);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
  const known = page.locator('.notice.known', { hasText: name });
  await known.getByText(comment).waitFor();
  assert.match(await known.textContent(), /Acknowledged by .* at .* UTC: /);
  assert.equal(await known.getByRole('button').count(), 0);
  await browser.check('acknowledged');
  await browser.shot('acknowledged');
  const row = (await browser.ask('alarms')).body.rows.find((alarm) => alarm.name === name);
  assert.equal(row.acknowledged.comment, comment);
  await browser.show('#/');
  await page.locator('.notice.known', { hasText: comment }).waitFor();
  for (let tries = 0; tries < 60; tries += 1) {
    const events = (await browser.ask('events?last=50')).body.rows;
    const event = events.find(({ kind }) => kind === 'alarm-acknowledged');
    if (event?.alarm === name && event.text === comment && event.by === row.acknowledged.by) return;
    await page.waitForTimeout(500);
  }
  assert.fail('the acknowledgement is no event');
}

/** Has the options at the cursor shown, and takes one by keys alone. */
async function complete(browser, field) {
  const { page } = browser;
  const type = (text) => page.keyboard.type(text);
  const list = page.getByRole('listbox', { name: 'What may come next' });
  const option = (name) => list.getByRole('option', { name });
  const about = page.getByRole('region', { name: 'Documentation' });
  let asked = 0;
  const count = (request) => { if (request.url().endsWith('/completions')) asked += 1; };
  page.on('request', count);
  await field.fill('set ipv4-pools by-a-line-above\n');
  await type('set limits ha');
  await option(/^half-open /).waitFor();
  assert.equal(await field.getAttribute('role'), 'combobox');
  assert.equal(await field.getAttribute('aria-activedescendant'), null);
  await page.keyboard.press('ArrowDown');
  await list.locator('[aria-selected=true]').waitFor();
  assert.equal(await field.getAttribute('aria-activedescendant'), await option(/^half-open /).getAttribute('id'));
  await browser.check('completion');
  await browser.shot('configuration-completion');
  const before = asked;
  await type('l');
  await page.waitForTimeout(500);
  assert.equal(asked, before, 'what is known already is asked for');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await about.getByText('limits half-open').waitFor();
  await about.getByText(/^Expected: a number from .* by default$/).waitFor();
  assert.match(await field.inputValue(), /\nset limits half-open $/);
  assert.equal(await field.getAttribute('role'), null, 'nothing is to be chosen');

  await type('5\nset user-planes ');
  const [plane] = Object.keys((await browser.ask('configuration')).body.tree['user-planes']);
  await option(plane).waitFor();
  await page.keyboard.press('Escape');
  await list.waitFor({ state: 'detached' });
  await page.keyboard.press('Alt+ArrowDown');
  await option(plane).click();
  await option(/^ports /).waitFor();
  assert.ok((await field.inputValue()).endsWith(`\nset user-planes ${plane} `));

  await page.setViewportSize({ width: 360, height: 740 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.keyboard.press('ArrowDown');
  await browser.check('narrow completion');
  await browser.shot('narrow-configuration-completion');
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: 'light' });

  await page.keyboard.press('Escape'); // Enter would take the option
  await type('\ndelete ipv4-pools by');
  await option('by-a-line-above').waitFor();
  await type('\nset users somebody password hunter2 ');
  await about.getByText('users somebody password').waitFor();
  assert.ok(!(await page.locator('.assist').innerText()).includes('hunter2'), 'a secret is shown');
  page.off('request', count);
}

export async function changeConfiguration(browser) {
  const { page } = browser;
  // with a list to choose from it is a combobox, and a text field otherwise
  const lines = () => page.getByLabel(/^Lines, as in/);
  const press = (name) => page.getByRole('button', { name, exact: true }).click();
  let before = 0;

  await browser.run('configuration faults', async () => {
    await browser.show('#/configuration');
    before = (await browser.ask('configuration')).body.version;
    await lines().fill('set limits half-open banana');
    await press('Check');
    const fault = page.locator('.notice.bad li');
    await fault.waitFor();
    assert.match(await fault.textContent(), /limits half-open .*banana/);
    assert.equal(await page.getByRole('button', { name: 'Commit', exact: true }).count(), 0);
    await lines().fill('nonsense');
    await press('Check');
    await page.locator('.notice.bad', { hasText: 'expected' }).waitFor();
    await browser.check('faults');
    await browser.shot('configuration-faults');
  }, [[400, '/configuration/check']]);

  await browser.run('configuration completion', () => complete(browser, lines()));

  await browser.run('configuration ends sessions', async () => {
    const { tree } = (await browser.ask('configuration')).body;
    const online = (await browser.ask('sessions')).body.rows.map((row) => row.user);
    const user = online.find((name) => tree.users?.[name]);
    if (!user) return; // subscribers come from RADIUS
    await lines().fill(`delete users ${user}`);
    await press('Check');
    const box = page.getByLabel('end 1 session');
    await box.waitFor();
    const commit = page.getByRole('button', { name: 'Commit', exact: true });
    assert.ok(await commit.isDisabled(), 'a commit ends sessions without being told');
    await box.check();
    assert.ok(await commit.isEnabled());
    await browser.check('ends sessions');
    await browser.shot('configuration-ends-sessions');
  });

  await browser.run('configuration commit', async () => {
    await lines().fill(`# for the test\nset ipv4-pools ${POOL} prefix 100.99.0.0/24\n`);
    await press('Check');
    await page.locator('.diff .new', { hasText: POOL }).waitFor();
    await browser.check('checked');
    await browser.shot('configuration-checked');
    await page.getByLabel('Why (comment)').fill(COMMENT);
    await page.getByLabel('To be confirmed within').selectOption('300');
    await press('Commit');
    await page.getByText(/Version \d+ is in force/).waitFor();
    const banner = page.getByRole('region', { name: 'A version waits' });
    await banner.getByText(/comes back in 4 min/).waitFor();
    await browser.check('unconfirmed');
    await browser.shot('configuration-unconfirmed');
  });

  await browser.run('acknowledge an alarm', () => acknowledge(browser, 'commit-unconfirmed'));

  await browser.run('configuration confirm', async () => {
    // the confirmation is an event: it appears by itself, and not while the page is paused
    await browser.show('#/events');
    const events = page.getByRole('cell', { name: 'confirmed', exact: true });
    const known = await events.count();
    await page.getByRole('button', { name: 'Pause' }).click();
    const banner = page.getByRole('region', { name: 'A version waits' });
    await banner.getByRole('button', { name: 'Confirm' }).click();
    await banner.waitFor({ state: 'detached' });
    await page.locator('.notice.known').waitFor({ state: 'detached' });
    await page.waitForTimeout(1000);
    assert.equal(await events.count(), known, 'an event appears on a page that is paused');
    await page.getByRole('button', { name: 'Go on' }).click();
    await events.nth(known).waitFor();
    await browser.shot('events-live');
    const pools = (await browser.ask('pools')).body.rows;
    assert.ok(pools.some((row) => row.name === POOL), 'the pool is there');
  });

  await browser.run('configuration versions', async () => {
    await browser.show('#/configuration/versions');
    await page.getByRole('cell', { name: COMMENT }).first().waitFor();
    const newest = (await browser.ask('configuration')).body.version;
    assert.ok(newest > before);
    await page.getByLabel(`Compare version ${before}`, { exact: true }).check();
    await page.getByLabel(`Compare version ${newest}`, { exact: true }).check();
    await press(`Compare ${before} with ${newest}`);
    await page.locator('.diff .new', { hasText: POOL }).waitFor();
    await browser.check('compare');
    await browser.shot('configuration-compare');
  });

  await browser.run('configuration bring back', async () => {
    await browser.show('#/configuration/versions');
    await page.getByRole('row').filter({ has: page.getByLabel(`Compare version ${before}`, { exact: true }) })
      .getByRole('link', { name: 'Bring back…' }).click();
    await page.getByRole('heading', { name: `Bring version ${before} back` }).waitFor();
    await press('Check');
    await page.locator('.diff .gone', { hasText: POOL }).waitFor();
    await browser.shot('configuration-bring-back');
    await press('Commit');
    await page.getByText(/Version \d+ is in force/).waitFor();
    const pools = (await browser.ask('pools')).body.rows;
    assert.ok(!pools.some((row) => row.name === POOL), 'the pool has gone');
  });
}
