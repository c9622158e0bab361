// Twelve tasks of a new user, in a real Chromium with a real gateway, or at the command line, by clicks and keys
// alone. It counts them, and they are those of the table in gateway/web/README.md: who changes a page so that a task takes
// more or less changes the table.
//
// Usage: node tasks.mjs URL PORT GATEWAY PYTHON: of a gateway that allows deletions and the pages of another origin, that
// origin's port on loopback, the program, and a Python with the package. One click is one press of a button, a drag too;
// choosing from a list is two, and one key is one letter or one chord.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { launch, until, untilStatus, watch } from './chromium.mjs';

const [base, port, gateway, python] = process.argv.slice(2).map((a, i) => (i === 0 ? a.replace(/\/$/, '') : a));
const run = promisify(execFile);
const now = Math.floor(Date.now() / 1000);

let browser;
let page;
let faults;
let server;
let counted = { clicks: 0, keys: 0 };
const counts = new Map();

// hands are what a user does.
const hands = {
  async click(what) { await what.click(); counted.clicks++; },
  async choose(list, option) { await list.selectOption(option); counted.clicks += 2; },
  async type(text) { await page.keyboard.type(text); counted.keys += [...text].length; },
  async press(key) { await page.keyboard.press(key); counted.keys++; },
  async drag(from, to) {
    const box = await page.locator('#chart .u-over').boundingBox();
    await page.mouse.move(box.x + box.width * from, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * to, box.y + box.height / 2, { steps: 5 });
    await page.mouse.up();
    counted.clicks++;
  },
  // enter types lines at a command line or into a notebook, each with Enter.
  enter(...lines) { counted.keys += lines.reduce((n, l) => n + [...l].length + 1, 0); },
};

// task does one, and keeps what it took; each begins where the one before has ended.
const task = (name, steps) => test(name, async () => {
  counted = { clicks: 0, keys: 0 };
  await steps();
  counts.set(name, `${counted.clicks} | ${counted.keys}`);
  assert.deepEqual(faults, []);
});

const button = (name) => page.getByRole('button', { name, exact: true });
const text = (selector) => page.locator(selector).textContent();
const series = () => page.evaluate(() => window.__downpour.shown());

// hosts are points of a metric for 30 hosts, half a minute apart, until so many seconds ago.
const hosts = (metric, from, to, value) => Array.from({ length: 30 }, (_, h) => Array.from({ length: Math.ceil((to - from) / 30) }, (_, i) => (
  { metric, timestamp: from + 30 * i, value: value(h, from + 30 * i), tags: { host: `web${String(h).padStart(2, '0')}` } }))).flat();

before(async () => {
  const wave = (h, t) => Number((20 + h + 5 * Math.sin(t / 40 + h)).toFixed(3));
  const broke = now - 450; // what is to be found: since then one host has twice the requests
  const points = [
    ...hosts('web.cpu.user', now - 900, now, wave), ...hosts('web.cpu.user', now - 87_300, now - 86_400, wave),
    ...hosts('web.requests', now - 900, now, (h, t) => wave(h, t) * (h === 7 && t >= broke ? 9 : 1)),
    ...hosts('web.disk.free', now - 900, now, (h) => 41e9 + h),
    ...hosts('room.temperature', now - 900, now, (h) => 20 + h),
  ];
  for (let i = 0; i < points.length; i += 2000) {
    const put = await fetch(`${base}/api/put`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(points.slice(i, i + 2000)) });
    assert.equal(put.status, 204);
  }
  browser = await launch();
  page = await (await browser.newContext({ viewport: { width: 1280, height: 900 }, permissions: ['clipboard-read', 'clipboard-write'] })).newPage();
  faults = watch(page, new URL(base).host);
  await page.goto(`${base}/#start=15m-ago`);
  await until('the metrics', async () => (await page.evaluate(() => window.__downpour?.cards?.().length)) > 0);
});
after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});

task('find a metric', async () => {
  await hands.press('/');
  await hands.type('cpu');
  await until('the offer', async () => (await page.locator('#metric-list [role=option]').allTextContents())[0] === 'web.cpu.user');
  await hands.press('Enter');
  await untilStatus(page, 'live');
  assert.match(page.url(), /web\.cpu\.user$/);
});

task('chart it by host', async () => {
  await hands.click(button('host'));
  await until('a line for each', async () => (await series()).length === 30);
});

task('top ten', async () => {
  await hands.choose(page.getByRole('combobox', { name: 'How many lines' }), 'top 10');
  await until('ten lines', async () => (await series()).length === 10);
});

task('save', async () => {
  await hands.click(button('Add to dashboard'));
  await page.getByRole('dialog', { name: 'Add to a dashboard' }).waitFor();
  await hands.type('Web');
  await hands.press('Enter');
  await until('it said', async () => (await text('#told')) === 'Added to Web.');
});

task('share', async () => {
  await hands.click(button('Copy link'));
  await until('it said', async () => (await text('#told')) === 'The link is copied.');
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), page.url());
});

task('annotate', async () => {
  await hands.click(button('Annotate'));
  await hands.type('deployed');
  await hands.press('Control+Enter');
  await until('it is listed', async () => /deployed$/.test(await text('#notes-list ul')));
});

task('compare', async () => {
  await hands.choose(page.getByLabel('Compare'), 'a day ago');
  await until('lines of a day ago', async () => (await series()).some((s) => s.endsWith('(1d ago)')));
});

task('find what changed', async () => {
  await hands.drag(0.52, 0.98);
  await until('the zoom', () => /zoom=/.test(page.url()));
  await hands.click(button('What changed here?'));
  const first = page.locator('#changes li').first();
  await until('the series', async () => /^web\.requestshost=web07/.test(await first.textContent()));
  await hands.click(first.locator('a'));
  await until('its chart', () => /web\.requests\{\}\{host=web07\}/.test(decodeURIComponent(page.url())));
  await until('its line', async () => (await page.evaluate(() => window.__downpour.points())) > 20 && (await series()).length === 1);
});

task('embed', async () => {
  await page.goto(`${base}/d/web`);
  await untilStatus(page, 'live');
  await hands.click(button('Edit'));
  await hands.click(page.getByRole('button', { name: /^Copy for another page/ }));
  await until('it said', async () => /^Copied for another page/.test(await text('#told')));
  const element = await page.evaluate(() => navigator.clipboard.readText());
  counted.keys++; // which pastes it
  server = createServer((request, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end(`<!doctype html><link rel=icon href=data:,>${element}`));
  await new Promise((done) => { server.listen(Number(port), '127.0.0.1', done); });
  const other = await browser.newPage();
  await other.goto(`http://127.0.0.1:${port}/`);
  await until('the panel', async () => (await other.locator('[data-dashboard] canvas').count()) > 0);
  await other.close();
});

task('export to pandas', async () => {
  const lines = ['import downpour', 'downpour.query("avg:web.cpu.user{host=*}")'];
  hands.enter(...lines);
  const { stdout } = await run(python, ['-c', `import downpour; downpour.connect(${JSON.stringify(base)}); df = ${lines[1]}; print(type(df).__module__, len(df))`]);
  const [, rows] = /^pandas\S* (\d+)/.exec(stdout);
  assert.ok(Number(rows) >= 800, stdout);
});

task('see what is slow', async () => {
  await page.goto(`${base}/#start=15m-ago`);
  await hands.click(page.getByRole('link', { name: 'Operations' }));
  await untilStatus(page, 'live');
  await until('a query in words', async () => /of web\./.test(await text('#slowest tbody')));
});

task('delete a metric', async () => {
  const lines = [`curl -g -X DELETE '${base}/api/query?start=1&m=none:room.temperature'`, 'gateway uid delete metrics room.temperature'];
  hands.enter(...lines.map((l) => l.replace(base, 'http://127.0.0.1:4242')));
  await run('/bin/sh', ['-c', `${lines[0]} >/dev/null`]);
  const [, ...args] = lines[1].split(' ');
  await run(gateway, [args[0], args[1], '-gateway', base, ...args.slice(2)]);
  const names = await (await fetch(`${base}/api/suggest?type=metrics&q=room`)).json();
  assert.deepEqual(names, []);
});

test('the table of the docs has these counts', () => {
  const readme = readFileSync(new URL('../../gateway/web/README.md', import.meta.url), 'utf8');
  const table = Object.fromEntries([...readme.matchAll(/^\| (\S[^|]*?) \| (\d+ \| \d+) \|/gm)].map(([, name, count]) => [name, count]));
  console.log([...counts].map(([name, count]) => `${name} | ${count}`).join('\n'));
  assert.equal(counts.size, 12);
  for (const [name, count] of counts) assert.equal(table[name], count, name);
});
