// Tests of the modules that need no browser: `node --test tests/unit.test.mjs` in `web/`.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { createServer } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));
const vite = await createServer({
  root,
  appType: 'custom',
  logLevel: 'error',
  optimizeDeps: { noDiscovery: true },
  server: { middlewareMode: true, hmr: false, ws: false, watch: null },
});
// modules that listen to the browser are loaded as well
globalThis.addEventListener ??= () => {};
after(() => vite.close());
const load = (name) => vite.ssrLoadModule(`/src/${name}.ts`);

test('the heat of an hour grows with the logarithm of its count', async () => {
  const { heat } = await load('heat');
  const hours = (counts) => counts.map((ended, place) => ({ at: 7200 + 3600 * place, ended, failed: 0, refused: ended ? 1 : 0 }));
  const worst = { lines: 'up1/access0.100.*', ended: 1000, failed: 0, refused: 2, hours: hours([0, 1, 999]), counted_since: 10_801 };
  const other = { lines: 'up1/access0.7', ended: 0, failed: 0, refused: 0, hours: hours([0, 0, 0]) };
  const map = heat([worst, other]);
  assert.deepEqual(map.hours, [7200, 10_800, 14_400]);
  assert.deepEqual(map.rows[0], {
    lines: 'up1/access0.100.*',
    total: 1002,
    cells: [{ count: null, level: 0 }, { count: 2, level: 1 }, { count: 1000, level: 5 }],
  });
  assert.deepEqual(map.rows[1].cells, Array(3).fill({ count: 0, level: 0 }));
  assert.deepEqual(heat([]), { hours: [], rows: [] });
});

test('numbers are shown with units, prefixes and groups', async () => {
  const { octets, bits, count, span, moment, percent, show, heading, perSecond } = await load('format');
  assert.equal(octets(0), '0 B');
  assert.equal(octets(999), '999 B');
  assert.equal(octets(14_200_000), '14.2 MB');
  assert.equal(octets(999_600), '1.00 MB');
  assert.equal(bits(1_234_567), '1.23 Mbit/s');
  assert.equal(perSecond(0.5), '0.50/s');
  assert.equal(count(4094), '4094');
  assert.equal(count(16_777_216), '16,777,216');
  assert.equal(span(0), '0 s');
  assert.equal(span(61), '1 min 1 s');
  assert.equal(span(86_400 * 3 + 5), '3 d');
  assert.equal(span(0.0012), '1.20 ms');
  assert.equal(moment(1_795_849_272), '2026-11-28 07:01:12');
  assert.equal(percent(1, 1000), '0.10 %');
  assert.equal(percent(20, 16_777_216), '< 0.01 %');
  assert.equal(percent(1, 0), '–');
  assert.equal(show(null), '');
  assert.equal(show(['a', 'b']), 'a, b');
  assert.equal(show(24, 'bits'), '/24');
  assert.equal(show(true), 'yes');
  assert.equal(heading('traffic.up_octets'), 'Traffic up octets');
  assert.equal(heading('round_trip_microseconds'), 'Round trip');
  assert.equal(heading('ipv4'), 'IPv4');
});

test('a comparison has what is gone, what is new, and what is the same', async () => {
  const { diff, around } = await load('diff');
  const kinds = (a, b) => diff(a, b).map(({ kind, text }) => ({ same: ' ', gone: '-', new: '+' })[kind] + text).join('');
  assert.equal(kinds([], []), '');
  assert.equal(kinds(['a', 'b', 'c'], ['a', 'c']), ' a-b c');
  assert.equal(kinds(['a', 'c'], ['a', 'b', 'c', 'd']), ' a+b c+d');
  assert.equal(kinds(['x'], ['y']), '-x+y');
  const long = Array.from({ length: 20 }, (_, i) => String(i));
  const shown = around(diff(long, [...long.slice(0, 10), 'new', ...long.slice(10)]), 1);
  assert.deepEqual(shown.map((line) => line?.text ?? null), [null, '9', 'new', '10', null]);
  const big = (mark) => Array.from({ length: 6000 }, (_, i) => `${mark}${i}`);
  assert.equal(diff(big('a'), big('b')).length, 12_000);
});

test('a configuration becomes the lines that are typed', async () => {
  const { setLines, quoted, editLines } = await load('setlines');
  assert.deepEqual(setLines({ limits: { 'half-open': 1024 }, users: { 'a b': { password: '*' } }, dns: ['1.1.1.1', '::1'], acls: { x: {} } }), [
    'set limits half-open 1024', 'set users "a b" password *', 'set dns 1.1.1.1', 'set dns ::1', 'set acls x',
  ]);
  assert.equal(quoted('a"b\\'), '"a\\"b\\\\"');
  assert.equal(quoted(''), '""');
  assert.deepEqual(editLines('# why\n\n  set a b \ndelete c'), ['set a b', 'delete c']);
});

test('a line is asked about with the lines above it, and once a word', async () => {
  const { typedAt, narrowed, insertion, canBeHelped } = await load('completions');
  const text = 'set acls x\n\nset limits se 5\n';
  const cursor = text.indexOf(' 5');
  assert.deepEqual(typedAt(text, cursor), { line: 'set limits se', edits: ['set acls x'] });
  assert.deepEqual(typedAt('\nset', 0), { line: '', edits: [] });
  const long = typedAt(`${'set a b\n'.repeat(1000)}s`, 8001);
  assert.equal(long.line, 's');
  assert.ok(long.edits.length < 1000 && long.edits.every((line) => line === 'set a b'));
  assert.ok(canBeHelped(typedAt(text, cursor)));
  assert.ok(!canBeHelped({ line: ' # set' }) && !canBeHelped({ line: 'x'.repeat(1001) }));

  const options = [{ word: 'segments', help: '' }, { word: 'sessions', help: 'S' }, { word: '"se a"', help: '' }];
  const answer = { begins: 11, place: 'limits', about: '', expected: null, options, more: 0 };
  const asked = typedAt(text, cursor);
  const words = (line, edits = asked.edits, of = answer) => narrowed(of, asked, { line, edits })?.options.map(({ word }) => word);
  assert.deepEqual(words('set limits se'), options.map(({ word }) => word));
  assert.deepEqual(words('set limits ses'), ['sessions']);
  assert.deepEqual(words('set limits sex'), []);
  for (const line of ['set limits s', 'set limits se ', 'set limits se"', 'set acls se']) assert.equal(words(line), undefined, line);
  assert.equal(words('set limits ses', []), undefined, 'other lines above');
  assert.equal(words('set limits ses', asked.edits, { ...answer, more: 1 }), undefined, 'not all options are known');

  assert.deepEqual(insertion(text, cursor, 11, options[1]), { from: text.indexOf('se 5'), to: cursor + 1, text: 'sessions ' });
  assert.deepEqual(insertion('set users "é ü', 14, 10, { word: '"é ü"' }), { from: 10, to: 14, text: '"é ü" ' });
  assert.deepEqual(insertion('# 😀\nset 😀 a', 13, 6, { word: 'abc' }), { from: 12, to: 13, text: 'abc ' });
});

test('a query leaves out what is empty, and MAC addresses are read in any form', async () => {
  const { query, identities, isAddress } = await load('query');
  assert.equal(query({}), '');
  assert.equal(query({ a: '', b: false, c: undefined, d: 0, e: 'x y&z', f: true }), '?d=0&e=x+y%26z&f=true');
  for (const mac of ['02:00:5E:00:00:01', '02-00-5e-00-00-01', '0200.5e00.0001']) {
    assert.deepEqual(identities(` ${mac} `), ['02:00:5e:00:00:01']);
  }
  assert.deepEqual(identities('02005e000001'), ['02005e000001', '02:00:5e:00:00:01']);
  assert.deepEqual(identities('home0001'), ['home0001']);
  for (const address of ['100.64.0.2', '100.64.0.0/24', '2001:db8::1', '2001:db8:100::/64', '::']) assert.ok(isAddress(address), address);
  for (const other of ['home0001', '02:00:5e:00:00:01', '1.2.3', '1.2.3.4/x', 'up1/access0.100.1']) assert.ok(!isAddress(other), other);
});

test('rates come from two readings, and a counter that began anew has none', async () => {
  const { Meter } = await load('rates');
  const state = (at, octets, drops) => ({
    at_milliseconds: at,
    sessions: { begun: at / 100, opened: 0, ended: 0, online: 1 },
    drops: drops ? [{ name: 'x', count: drops, meaning: 'm' }] : [],
    pools: [],
    alarms: [],
    user_planes: [{
      node_id: 'up1', reached: true, at_milliseconds: at, drops: [],
      ports: [{ name: 'a', role: 'access', rx_octets: octets, tx_octets: 2 * octets }, { name: 'c', role: 'core', rx_octets: 9 * octets, tx_octets: 0 }],
      workers: [{ number: 0, busy_nanoseconds: at * 500_000 }],
    }],
  });
  const meter = new Meter();
  assert.equal(meter.read(state(1000, 1000, 0)), null);
  const rates = meter.read(state(2000, 2000, 5));
  assert.equal(rates.up, 8000);
  assert.equal(rates.down, 16_000);
  assert.equal(rates.begun, 10);
  assert.equal(rates.planes.up1.busy[0], 0.5);
  assert.equal(rates.planes.up1.ports.c.rx, 72_000);
  assert.deepEqual(rates.drops, [{ plane: 'control plane', name: 'x', count: 5, rate: 5, meaning: 'm' }]);
  assert.equal(meter.read(state(3000, 100, 7)).up, 0);
});

test('pages have addresses with any characters', async () => {
  const { parse, link } = await load('router');
  const { parts, values } = parse(link(['session', 'a/b c%'], { q: 'x&y=?' }));
  assert.deepEqual(parts, ['session', 'a/b c%']);
  assert.equal(values.get('q'), 'x&y=?');
  assert.deepEqual(parse('#/%').parts, ['%']);
  assert.deepEqual(parse('').parts, []);
});

test("the tables are those of the API's description", async () => {
  const { describe } = await load('schema');
  const row = { properties: {
    id: { type: ['string', 'null'], description: 'Id' },
    traffic: { type: ['object', 'null'], properties: { up_octets: { type: ['integer', 'null'], description: 'Up', 'x-sluice-unit': 'octets' } } },
    drain: { type: ['boolean', 'object', 'null'], description: 'Drains', properties: { rate: { type: ['integer', 'null'], description: 'Rate' } } },
    shares: { type: 'array', description: 'Shares', items: { properties: { used: { type: ['integer', 'null'], description: 'Used' } } } },
  } };
  const schema = { properties: { rows: { items: row } } };
  const get = {
    summary: 'About', 'x-sluice-role': 'support', responses: { 200: { content: { 'application/json': { schema } } } },
    parameters: [{ name: 'limit', in: 'query' }, { name: 'worst', in: 'query', description: 'W', schema: { type: 'boolean' } },
      { name: 'state', in: 'query', description: 'S', schema: { type: 'string', enum: ['a', 'b'] } }, { name: 'If-None-Match', in: 'header' }],
  };
  const found = describe({ paths: { '/api/v1/a/b': { get }, '/api/v1/x': { post: {} } } });
  assert.deepEqual([...found.keys()], ['a/b']);
  const table = found.get('a/b');
  assert.equal(table.role, 'support');
  assert.deepEqual(table.arguments, [
    { name: 'worst', about: 'W', required: false, kind: 'flag' },
    { name: 'state', about: 'S', required: false, kind: 'text', words: ['a', 'b'] },
  ]);
  assert.deepEqual(table.columns.map(({ field, kind, unit }) => [field, kind, unit]), [
    ['id', 'text', undefined], ['traffic.up_octets', 'number', 'octets'], ['drain', 'flag', undefined], ['drain.rate', 'number', undefined], ['shares', 'rows', undefined],
  ]);
});

test('what the API leaves to whoever shows it is made here', async () => {
  const { place, delay, lastTrouble, aggregateName } = await load('derive');
  assert.equal(place({ user_plane: 'up1', port: 'access0', s_tag: 100, c_tag: 7 }), 'up1/access0.100.7');
  assert.equal(place({ subscriber: { user_plane: 'up1', port: 'access0', s_tag: null, c_tag: null } }, 'subscriber.'), 'up1/access0');
  assert.equal(delay({ waits: [98, 1, 0, 1, 0, 0, 0, 0] }), '< 2 ms');
  assert.equal(delay({ waits: [0, 0, 0, 0, 0, 0, 0, 1] }), '> 100 ms');
  assert.equal(delay({ waits: [] }), '');
  assert.equal(lastTrouble({ last_ended: { at: 10, text: 'lost' }, last_refused: { at: 5, text: 'no' } }), 'ended 1970-01-01 00:00:10: lost');
  assert.equal(lastTrouble({}), '');
  assert.equal(aggregateName({ user_plane: 'up1', port: 'a', segment: '', s_tag: 0 }), 'up1/a.untagged');
});

test('a figure over time has gaps where nothing is known, and its axis says no more than it has to', async () => {
  const { gaps, mark } = await load('past');
  const row = (at, mean) => ({ at, seconds: 10, mean, most: 2 * mean });
  const { times, lines } = gaps([row(100, 1), row(110, 2), row(150, 3)], ['mean', 'most']);
  assert.deepEqual(times, [100, 110, 120, 150]);
  assert.deepEqual(lines, [[1, 2, null, 3], [2, 4, null, 6]]);
  assert.deepEqual(gaps([], ['mean']), { times: [], lines: [[]] });
  const time = Date.UTC(2026, 10, 28, 7, 1, 12) / 1000;
  assert.equal(mark(time, [time - 60, time]), '07:01:12');
  assert.equal(mark(time, [time - 86400, time]), '07:01');
  assert.equal(mark(time, [time - 7 * 86400, time]), '11-28');
});

test('the pages are small, and have nothing inline', { skip: !existsSync(`${root}dist`) }, () => {
  const files = readdirSync(`${root}dist`, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  const sizes = files.map((file) => gzipSync(readFileSync(`${file.parentPath ?? file.path}/${file.name}`)).length);
  const size = sizes.reduce((all, one) => all + one, 0);
  assert.ok(size > 10_000 && size < 100_000, `${size} octets compressed`);
  const page = readFileSync(`${root}dist/index.html`, 'utf8');
  assert.doesNotMatch(page, /<style|style=|<script(?![^>]*src="\/assets\/)|https?:/);
});

test('names and addresses are hidden wherever they stand, and nothing else is', async () => {
  globalThis.sessionStorage ??= { getItem: () => null, setItem: () => {} };
  globalThis.document ??= { documentElement: { toggleAttribute: () => {} } };
  const { redact } = await load('hide');
  const { heard } = await load('api');
  heard.tell({ rows: [{ user: 'anna@example.net', circuit_id: 'olt1 eth 1/2:100', line: 'up1/access0.100.7', name: 'homes' }] });
  heard.tell({ tree: { users: { bob: { password: '*' } }, limits: {} } });
  heard.tell({ place: 'users', options: [{ word: 'carol', help: '' }] });
  heard.tell({ place: '', options: [{ word: 'set', help: '' }] });
  for (const [text, hides] of [
    ['anna@example.net', '••••'],
    ['the session of anna@example.net ends; bob: no', 'the session of •••• ends; ••••: no'],
    ['carol', '••••'],
    ['on olt1 eth 1/2:100, up1/access0.100.7', 'on ••••, ••••'],
    ['02:00:5E:00:00:01 and 02-00-5e-00-00-01', '••:••:••:••:••:•• and ••:••:••:••:••:••'],
    ['100.64.0.2/32 2001:db8:100::/64 ::1', '•.•.•.•/32 •:•::•/64 •:•::•'],
    ['dns: "2001:db8:ffff::2"', 'dns: "•:•::•"'],
    ['1:2:3:4:5:6:7:8', '•:•::•'],
  ]) assert.equal(redact(text), hides);
  for (const text of ['2026-11-28 07:01:12', 'homes', 'set', 'bobby', 'sluice-cp 0.1.0', '1a220f53ac100000', 'up1/access0.100.8', '12:30', 'a: b']) {
    assert.equal(redact(text), text);
  }
});
