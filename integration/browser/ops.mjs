// The operator's page in a real Chromium, with a real gateway: it shows a query that runs, and ends
// it; it counts a refused put; names from outside are texts; it wants a token with the scope admin.
//
// Usage: node ops.mjs URL ADMIN READER WRITER: tokens of those scopes; ADMIN's name is alice.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { launch, until, untilStatus, watch } from './chromium.mjs';

const [base, admin, reader, writer] = process.argv.slice(2).map((a, i) => (i === 0 ? a.replace(/\/$/, '') : a));
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const hostile = '<img src=x onerror=window.__ran=1>';

let browser;
let page;
let faults;

// A refused socket or request is logged by the browser itself as an error.
const provoked = (text) => /WebSocket connection to|Failed to load resource/.test(text);

before(async () => { browser = await launch(); });
after(() => browser?.close());
beforeEach(async () => {
  await page?.context().close();
  page = await (await browser.newContext({ viewport: { width: 1280, height: 1400 }, bypassCSP: true })).newPage(); // axe is let in
  faults = watch(page, new URL(base).host, provoked);
});

const withToken = (token) => page.addInitScript((t) => sessionStorage.setItem('downpour.token', t), token);
const text = (selector) => page.locator(selector).textContent();
const ask = (path, token, options = {}) => fetch(base + path, { ...options, headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` } });
const put = (points) => ask('/api/put?details', writer, { method: 'POST', body: JSON.stringify(points) });

// running asks a query of many points and stops reading, so that it runs until it is ended. It
// returns how its answer ends.
async function running(metric) {
  const address = new URL(`${base}/api/query?start=1356998400&end=1357862400&m=sum:1s-avg-nan:${metric}`);
  let response;
  const ended = new Promise((resolve) => {
    get(address, { headers: { Authorization: `Bearer ${reader}` } }, (r) => {
      response = r;
      let bytes = 0;
      r.on('data', (c) => { bytes += c.length; });
      r.on('end', () => resolve({ whole: true, bytes }));
      r.on('error', () => resolve({ whole: false, bytes }));
      r.pause();
    }).on('error', () => resolve({ whole: false, bytes: 0 }));
  });
  await until('the head of the answer', () => response !== undefined);
  return { goOn: () => response.resume(), ended };
}

const axe = async () => {
  await page.evaluate(readFileSync(new URL('./node_modules/axe-core/axe.min.js', import.meta.url), 'utf8'));
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    const found = await page.evaluate((t) => window.axe.run(document, { runOnly: { type: 'tag', values: t }, resultTypes: ['violations'] }), tags);
    assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(' ')).join('; ')}`), [], colorScheme);
  }
};

test('without a token, and with one that may only read, the page asks for another', async () => {
  await page.goto(`${base}/ops`);
  await page.locator('#token-form').waitFor();
  assert.equal(await page.locator('.none:visible').count(), 0, 'what is not known yet is not said');
  await page.locator('#token').fill(reader);
  await page.locator('#token').press('Enter');
  await untilStatus(page, 'error');
  await until('the words', async () => /^The server says: /.test(await text('#status')));
  await page.locator('#token-form').waitFor();
  await page.locator('#token').fill(admin);
  await page.locator('#token').press('Enter');
  await untilStatus(page, 'live');
  assert.equal(await page.locator('#token-form').isVisible(), false);
  assert.deepEqual(faults, []);
});

test('a query that runs is shown, and ended by the keyboard; its answer is cut', async () => {
  assert.equal((await put([{ metric: 'ops.long', timestamp: 1356998400, value: 1, tags: { host: 'a' } }])).status, 200);
  await withToken(admin);
  await page.goto(`${base}/ops`);
  await untilStatus(page, 'live');
  assert.equal(await text('#running .none'), 'No query is running.');
  const query = await running('ops.long');
  const row = page.locator('#running tbody tr');
  await until('the query', async () => (await row.count()) === 1);
  assert.match(await row.textContent(), /^sum of ops\.long, avg of each 1s, nan in gaps; 20(12-12-31|13-01-01) \S+ – 2013-01-1\d \S*127\.0\.0\.1:\d+ \(grafana\)/);
  await axe();

  const button = row.getByRole('button');
  assert.match(await button.getAttribute('aria-label'), /^End query [a-z0-9]+-\d+$/);
  await button.focus();
  const before = (await page.evaluate(() => window.__downpour.report().time));
  await until('another report', async () => (await page.evaluate(() => window.__downpour.report().time)) > before);
  assert.equal(await button.evaluate((b) => b === document.activeElement), true, 'a report leaves the focus where it is');
  await page.keyboard.press('Enter');
  await until('the words', async () => /^Query [a-z0-9]+-\d+ is told to end\.$/.test(await text('#told')));
  await until('the button', async () => (await button.textContent()) === 'Ending…');
  query.goOn();
  const { whole, bytes } = await query.ended;
  assert.ok(!whole && bytes > 0, `a cut answer, got ${bytes} bytes, ${whole ? 'whole' : 'cut'}`);
  await until('the query to go', async () => (await row.count()) === 0);
  await until('it among the slowest', async () => (await text('#slowest')).includes('ops.long'));
  assert.deepEqual(faults, []);
});

test('a refused put is counted with its reason, and what comes from outside is text', async () => {
  await withToken(admin);
  await page.goto(`${base}/ops`);
  await untilStatus(page, 'live');
  assert.equal((await put([{ metric: 'ops.long', timestamp: 1356998400, value: hostile, tags: { host: 'a' } }])).status, 400);
  assert.equal((await ask(`/api/query?start=1h-ago&m=${encodeURIComponent(`sum:${hostile}`)}`, reader)).status, 400);
  await until('the reason', async () => /\/api\/putvalue1/.test(await text('#refusals tbody')));
  await until('the name', async () => (await text('#slowest')).includes(hostile));
  await until('the second in the strip', async () => (await page.evaluate(() => window.__downpour.report().puts.refused.some((n) => n > 0))));
  assert.equal(await page.evaluate(() => window.__ran), undefined);
  assert.match(await text('#uids tbody'), /^metrics/);
  assert.match(await text('#places tbody'), /^in-process/);
  assert.match(await text('#about'), /^\S+ on pebble:/);
  await axe();
  await page.setViewportSize({ width: 390, height: 800 });
  await until('a phone to have nothing to scroll sideways but tables', () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await axe();
  assert.deepEqual(faults, []);
});

test('a live query is ended by the keyboard, and its subscriber is told by whom', async () => {
  const now = Math.floor(Date.now() / 1000);
  assert.equal((await put([{ metric: 'ops.live', timestamp: now, value: 1, tags: { host: 'a' } }])).status, 200);
  const chart = await (await browser.newContext()).newPage();
  await chart.addInitScript((t) => sessionStorage.setItem('downpour.token', t), reader);
  await chart.goto(`${base}/#start=15m-ago&m=sum:ops.live`);
  await untilStatus(chart, 'live');
  assert.equal(await chart.locator('#operations').isVisible(), false, 'a reader sees no link to the page of operators');

  await withToken(admin);
  await page.goto(`${base}/ops`);
  await untilStatus(page, 'live');
  const row = page.locator('#live tbody tr', { hasText: 'ops.live' });
  await until('the live query', async () => (await row.count()) === 1);
  const button = row.getByRole('button');
  assert.match(await button.getAttribute('aria-label'), /^End live query \S+$/);
  await button.focus();
  await page.keyboard.press('Enter');
  await until('the words', async () => /^Live query \S+ was ended\.$/.test(await text('#told')));
  await until('the query to go', async () => (await row.count()) === 0);
  await until('the subscriber to be told', async () => (await chart.locator('#status').textContent()).includes('The live query was ended by alice'));
  await chart.context().close();
  assert.deepEqual(faults, []);
});

test('series are counted on demand, and pages lead an operator here and back', async () => {
  await withToken(admin);
  await page.goto(`${base}/#start=15m-ago`);
  await page.locator('#operations').click();
  await page.waitForURL(`${base}/ops`);
  await untilStatus(page, 'live');
  await page.getByRole('button', { name: 'Count the series' }).click();
  await until('the counts', async () => /series of .* metrics with/.test(await text('#series-said')));
  assert.match(await text('#top-metrics'), /ops\.long/);
  assert.match(await text('#top-tagks'), /host/);
  await axe();
  await page.getByRole('link', { name: 'Dashboards' }).click();
  await page.waitForURL(`${base}/d/`);
  await page.locator('#operations').waitFor();
  assert.deepEqual(faults, []);
});
