// Measures the web manager of a gateway with very many homes, in Chromium: for `make scale PART=web`.
//
//   SLUICE_URL=https://127.0.0.1:8443 SLUICE_LINK=LINK SLUICE_USER=home7 OUT=DIR node web/tests/full.mjs
//
// SLUICE_USER is the name of a user who is online. `OUT/web.json` has the times, in milliseconds, and what went wrong, which ends with 1.
import { Browser } from './browser.mjs';

const { SLUICE_URL, SLUICE_LINK, SLUICE_USER, OUT, CHROMIUM = '/usr/bin/chromium' } = process.env;
const TIMES = 3;
const browser = new Browser(SLUICE_URL, OUT);
await browser.open(CHROMIUM);
const { page, timings } = browser;

await browser.run('sign-in', async () => {
  await page.goto(SLUICE_LINK);
  await page.locator('header').waitFor();
}, [[401, '/api/v1/me']]);

/** How long it takes from an empty page to what is shown at an address. */
async function measure(name, hash, shown) {
  await browser.run(name, async () => {
    timings[name] = [];
    for (let turn = 0; turn < TIMES; turn += 1) {
      await page.goto('about:blank');
      const begun = performance.now();
      await page.goto(`${SLUICE_URL}/${hash}`);
      await shown().waitFor();
      timings[name].push(performance.now() - begun);
      // an address may ask 20 times a second
      await page.waitForTimeout(1000);
    }
    await browser.shot(name);
  });
}

await measure('overview', '', () => page.locator('.stat').first());
await measure('sessions', '#/subscribers', () => page.locator('tbody tr').first());
await measure('search', `#/search?q=${encodeURIComponent(SLUICE_USER)}`, () => page.locator('h1', { hasText: SLUICE_USER }));

const { problems } = await browser.close();
process.exit(problems.length > 0 ? 1 : 0);
