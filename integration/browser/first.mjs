// The first start, in a real Chromium: the page at / of a gateway on an empty store leads to a
// dashboard of its host, which fills and moves; once somebody has put something else, / is the
// chart's page again.
//
// Usage: node first.mjs URL STARTED, the moment at which the program was started, in ms.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { launch, until, untilStatus, watch } from './chromium.mjs';

const base = process.argv[2].replace(/\/$/, '');
const started = Number(process.argv[3]);
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

let browser;
let page;
let faults;

before(async () => {
  browser = await launch();
  // All panels are in view, so that all ask; axe is let in as well as the page's own scripts.
  page = await (await browser.newContext({ viewport: { width: 1280, height: 2000 }, bypassCSP: true })).newPage();
  faults = watch(page, new URL(base).host);
});
after(() => browser?.close());

const panels = () => page.evaluate(() => window.__downpour.panels());
const get = async (path) => (await fetch(base + path)).json();

// told are the panels whose metrics this host does not report: a container may hide its disks.
const told = async () => ((await get('/api/suggest?type=metrics&q=proc.disk')).length === 0 ? ['disks'] : []);

// filled says of a panel that it has lines, or a number.
const filled = async (p) => {
  const type = await page.locator(`[data-id=${p.id}]`).getAttribute('data-type');
  if (type === 'text') return true;
  if (type === 'number') return /^\d/.test(await page.locator(`[data-id=${p.id}] .number`).textContent());
  return p.kind === 'live' && p.series.length > 0 && p.points >= 2 * p.series.length;
};

test('/ is a dashboard of this host, and every panel fills', async () => {
  await page.goto(`${base}/`);
  await page.waitForURL(`${base}/d/host`);
  await until('all panels', async () => (await page.evaluate(() => window.__downpour?.panels().length)) >= 13);
  await until('lines in every panel', async () => {
    const hidden = await told();
    const all = (await panels()).filter((p) => !hidden.includes(p.id));
    return (await Promise.all(all.map(filled))).every(Boolean);
  });
  console.log(`filled ${Date.now() - started} ms after the start of the program`);
  for (const id of await told()) assert.match(await page.locator(`[data-id=${id}] .said`).textContent(), /^No metric is called “proc\.disk\.bytes” yet/);
  await untilStatus(page, 'live');
  const points = (await panels()).map((p) => p.points);
  const moving = (p, i) => p.id === 'note' || p.points > points[i];
  await until('every panel to move', async () => { const hidden = await told(); return (await panels()).every((p, i) => hidden.includes(p.id) || moving(p, i)); });
  assert.equal(await page.locator('#range').inputValue(), '1m-ago');
  assert.deepEqual(faults, []);
});

test('axe finds nothing on it, light and dark', async () => {
  await page.evaluate(readFileSync(new URL('./node_modules/axe-core/axe.min.js', import.meta.url), 'utf8'));
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    const found = await page.evaluate((t) => window.axe.run(document, { runOnly: { type: 'tag', values: t }, resultTypes: ['violations'] }), tags);
    assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(' ')).join('; ')}`), [], colorScheme);
  }
});

test('its link to the metrics, and / once something is put, list them; a chart’s address is a chart', async () => {
  const cards = () => page.evaluate(() => window.__downpour?.cards?.() ?? []);
  await page.getByRole('link', { name: 'Metrics', exact: true }).click();
  await page.waitForURL(/\/#start=15m-ago$/);
  await until('the metrics', async () => (await cards()).some((c) => c.points > 0));
  await page.goto(`${base}/#m=sum:proc.meminfo.memfree`);
  await untilStatus(page, 'live');
  assert.equal(new URL(page.url()).pathname, '/');

  const put = await fetch(`${base}/api/put`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ metric: 'room.temperature', timestamp: Math.floor(Date.now() / 1000), value: 21.5, tags: { room: 'kitchen' } }) });
  assert.equal(put.status, 204);
  await page.goto('about:blank');
  await page.goto(`${base}/`);
  await until('what was put in front', async () => { const [first] = await cards(); return first?.metric === 'room.temperature' && first.points === 1; });
  assert.equal(new URL(page.url()).hash, '');
  assert.equal(await page.locator('#start-boards a').getAttribute('href'), '/d/host');
  await page.locator('#cards a').first().click();
  await untilStatus(page, 'live');
  await until('its point', async () => (await page.evaluate(() => window.__downpour.last()?.value)) === 21.5);
  await page.getByRole('link', { name: 'Dashboards', exact: true }).click();
  await until('the dashboard in the list', async () => /^This host: .* · 13 panels · built in$/.test(await page.locator('#dashboards li').textContent()));
  assert.deepEqual(faults, []);
});

test('saved, it is the dashboard of the name', async () => {
  await page.locator('#dashboards a').click();
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.locator('#board-title').fill('Mine');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await until('version 1', async () => (await page.locator('#told').textContent()) === 'Saved as version 1.');
  assert.equal((await get('/api/dashboards/host')).title, 'Mine');
  assert.deepEqual(faults, []);
});
