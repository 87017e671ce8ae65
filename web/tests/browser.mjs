// A browser that notes whatever goes wrong: for `run.mjs`.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export class Browser {
  constructor(origin, out) {
    this.origin = origin;
    this.out = out;
    this.problems = [];
    this.timings = {};
    /** Answers that are no fault for now: pairs of a status and a part of the address. Status 0: no answer. */
    this.expected = [];
    this.step = '';
    if (out) mkdirSync(out, { recursive: true });
  }

  async open(executablePath) {
    this.browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
    this.context = await this.browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 900 } });
    await this.context.addInitScript(() => {
      addEventListener('securitypolicyviolation', (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
    });
    this.page = await this.context.newPage();
    this.page.setDefaultTimeout(20_000);
    this.listen();
  }

  problem(text) {
    this.problems.push(`${this.step}: ${text}`);
    console.error(`PROBLEM ${this.step}: ${text}`);
  }

  isExpected(status, url) {
    return this.expected.some(([wanted, part]) => wanted === status && url.includes(part));
  }

  listen() {
    const { page } = this;
    page.on('pageerror', (error) => this.problem(`exception: ${error.stack ?? error.message}`));
    page.on('console', (message) => {
      if (message.type() !== 'error' && message.type() !== 'warning') return;
      // the browser tells answers that are errors as well: those are judged below
      if (message.text().startsWith('Failed to load resource')) return;
      this.problem(`console: ${message.text()}`);
    });
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(`${this.origin}/`) && !url.startsWith('data:')) this.problem(`request to another host: ${url}`);
    });
    page.on('response', (response) => {
      if (response.status() >= 400 && !this.isExpected(response.status(), response.url())) this.problem(`${response.status()} ${response.url()}`);
    });
    page.on('requestfailed', (request) => {
      const why = request.failure()?.errorText ?? '';
      // a page that is left gives up what it asked
      if (why !== 'net::ERR_ABORTED' && !this.isExpected(0, request.url())) this.problem(`${why} ${request.url()}`);
    });
  }

  async run(name, work, expected = []) {
    this.step = name;
    this.expected = expected;
    const begun = performance.now();
    try {
      await work();
    } catch (error) {
      this.problem(error.message);
      await this.shot(`failed-${name}`).catch(() => {});
    }
    console.log(`${name}: ${Math.round(performance.now() - begun)} ms`);
  }

  /** Shows a page of the app, and waits until it has what it asked for. */
  async show(hash) {
    await this.page.evaluate((to) => { location.hash = to; }, hash);
    await this.settle();
  }

  async settle() {
    await this.page.waitForTimeout(60);
    await this.page.waitForFunction(() => !document.querySelector('.loading'));
  }

  async shot(name) {
    if (this.out) await this.page.screenshot({ path: `${this.out}/${name.replace(/[^\w-]+/g, '-')}.png`, fullPage: true });
  }

  /** Faults for who cannot see, and a page that is wider than the screen. */
  async check(name, { axe = true } = {}) {
    const over = await this.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (over > 0) this.problem(`${name}: the page is ${over} px wider than the screen`);
    if (!axe) return;
    await this.page.evaluate(`if (!window.axe) { ${axeSource} } undefined`);
    const { violations } = await this.page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    for (const { id, impact, help, nodes } of violations) {
      const text = `axe ${impact} ${id}: ${help}: ${nodes.slice(0, 2).map((node) => node.html.slice(0, 160)).join(' | ')}`;
      if (impact === 'serious' || impact === 'critical') this.problem(`${name}: ${text}`);
      else console.log(`note ${name}: ${text}`);
    }
  }

  /** Asks the API as the page does. */
  async ask(path) {
    return this.page.evaluate(async (to) => {
      const response = await fetch(`/api/v1/${to}`);
      return { status: response.status, body: await response.json().catch(() => null) };
    }, path);
  }

  async close() {
    await this.browser.close();
    const result = { problems: this.problems, timings: this.timings };
    if (this.out) writeFileSync(`${this.out}/web.json`, JSON.stringify(result, null, 2));
    return result;
  }
}
