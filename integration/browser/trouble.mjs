// What happens to dashboards that nobody wished for, in a real Chromium and with a real gateway: its
// connection dies under 60 live panels and comes back, a token ends in the meantime, two save at once,
// and files are no dashboard.
//
// Usage: node trouble.mjs URL FILE TOKEN NEXT: FILE holds the gateway's tokens. TOKEN, one of them,
// may read and write, and NEXT takes its place.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, connect } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { launch, until, untilStatus, watch } from './chromium.mjs';

const [base, file, first, next] = process.argv.slice(2).map((a, i) => (i === 0 ? a.replace(/\/$/, '') : a));
const { port: gateway } = new URL(base);

let token = first;
let browser;
let page;
let faults;

// A refused socket or request is logged by the browser itself as an error.
const provoked = (text) => /WebSocket connection to|Failed to load resource/.test(text);

before(async () => { browser = await launch(); });
after(() => browser?.close());

// opened is a page whose tab has the token.
async function opened(url = base) {
  const p = await (await browser.newContext({ viewport: { width: 1600, height: 2700 } })).newPage();
  faults = watch(p, new URL(url).host, provoked);
  await p.addInitScript((t) => sessionStorage.getItem('downpour.token') || sessionStorage.setItem('downpour.token', t), token);
  return p;
}
beforeEach(async () => {
  await page?.context().close();
  page = await opened();
});

const ask = (method, path, body, headers = {}) => fetch(base + path, { method, body: body && JSON.stringify(body), headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}`, ...headers } });
const now = () => Math.floor(Date.now() / 1000);
const put = async (metric, points) => {
  const answer = await ask('POST', '/api/put?details', points.map(([timestamp, value, n]) => ({ metric, timestamp, value, tags: { n: String(n) } })));
  assert.equal(answer.status, 200, await answer.text());
};
const save = async (name, document) => {
  const answer = await ask('PUT', `/api/dashboards/${name}`, document, { 'If-None-Match': '*' });
  assert.equal(answer.status, 200, await answer.text());
};
const panels = (of = page) => of.evaluate(() => window.__downpour.panels());
const text = (selector, of = page) => of.locator(selector).textContent();

// wall is a dashboard of 60 panels, a line each.
const wall = (metric) => ({ form: 1, title: 'Wall', range: { from: '15m-ago', to: '' }, panels: Array.from({ length: 60 }, (_, i) => (
  { id: `p${i}`, type: 'lines', title: `Panel ${i}`, place: { x: (i % 6) * 2, y: Math.floor(i / 6) * 5, w: 2, h: 5 }, queries: [`sum:${metric}{n=${i}}`] })) });
const everywhere = (t, value) => Array.from({ length: 60 }, (_, n) => [t, value, n]);

// A line to the gateway that can be cut: what passes through it ends, and nothing new does.
async function line() {
  const pairs = new Set();
  const server = createServer((near) => {
    if (cut) return near.destroy();
    const far = connect(gateway, '127.0.0.1');
    pairs.add(near).add(far);
    near.pipe(far).pipe(near);
    for (const s of [near, far]) s.on('error', () => {}).on('close', () => { near.destroy(); far.destroy(); pairs.delete(near); pairs.delete(far); });
  });
  let cut = false;
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  const end = () => pairs.forEach((s) => s.destroy());
  return { url: `http://127.0.0.1:${server.address().port}`, cut() { cut = true; end(); }, mend() { cut = false; }, close() { end(); server.close(); } };
}

test('a connection that dies under 60 live panels: what came meanwhile is there when it is back', async () => {
  const start = now();
  await put('wall.cut', everywhere(start - 60, 1));
  await save('cut', wall('wall.cut'));
  const through = await line();
  try {
    await page.context().close();
    page = await opened(through.url);
    const sockets = [];
    page.on('websocket', (s) => sockets.push(s.url()));
    await page.goto(`${through.url}/d/cut`);
    const all = (points) => until(`${points} points in each of 60 panels`, async () => { const p = await panels(); return p.length === 60 && p.every((x) => x.points === points && x.kind === 'live'); });
    await all(1);
    assert.equal(sockets.length, 1, 'all panels share a socket');

    through.cut();
    await untilStatus(page, 'disconnected');
    assert.match(await text('#status'), /^Disconnected.*Trying again in \d+ s\./);
    await put('wall.cut', everywhere(start - 30, 2));
    assert.ok((await panels()).every((p) => p.points === 1), 'what was known stays');
    through.mend();
    await page.evaluate(() => dispatchEvent(new Event('online'))); // or the next attempt may be half a minute away
    await all(2);
    await untilStatus(page, 'live');
    await put('wall.cut', everywhere(start, 3));
    await all(3);
    assert.deepEqual(faults, []);
  } finally {
    through.close();
  }
});

test('of two who save at once one saves, and the other is told and loses nothing', async () => {
  await save('both', wall('wall.cut'));
  const other = await opened();
  const both = [page, other];
  for (const [i, p] of both.entries()) {
    await p.goto(`${base}/d/both`);
    await until('the panels', async () => (await panels(p)).length === 60);
    await p.getByRole('button', { name: 'Edit', exact: true }).click();
    await p.locator('#board-title').fill(`Of ${i}`);
  }
  await Promise.all(both.map((p) => p.getByRole('button', { name: 'Save', exact: true }).click()));
  const outcome = async (p) => ((await text('#told', p)) === 'Saved as version 2.' ? 'saved' : (await p.locator('#conflict').isVisible()) ? 'told' : '');
  await until('both to know', async () => (await Promise.all(both.map(outcome))).every(Boolean));
  const outcomes = await Promise.all(both.map(outcome));
  assert.deepEqual([...outcomes].sort(), ['saved', 'told']);
  const saved = await (await ask('GET', '/api/dashboards/both')).json();
  assert.equal(saved.title, `Of ${outcomes.indexOf('saved')}`);
  const loser = outcomes.indexOf('told');
  assert.equal(await both[loser].evaluate(() => window.__downpour.board().title), `Of ${loser}`, 'what was changed is still there');
  await other.context().close();
});

test('files that are no dashboard are told by name, and nothing of them runs', async () => {
  await page.goto(`${base}/d/`);
  await untilStatus(page, 'complete');
  const files = {
    'ten-megabytes.json': [`{"form":1,"title":"${'x'.repeat(10 << 20)}","panels":[]}`, 'The document has more than 1 MiB.'],
    'many.json': [JSON.stringify({ form: 1, panels: Array.from({ length: 10_000 }, (_, i) => ({ id: `p${i}` })) }), 'The document has 10000 panels: 500 are the most.'],
    'no.json': ['<script>window.__ran = 1</script>', 'The document is not JSON.'],
    '<img src=x onerror=alert(1)>.json': ['[]', 'The document is no dashboard: it has no form.'],
  };
  for (const [name, [content, said]] of Object.entries(files)) {
    await page.locator('#import').setInputFiles({ name, mimeType: 'application/json', buffer: Buffer.from(content) });
    await until(`the words for ${name}`, async () => (await text('#told')) === `${name}: ${said}`);
  }
  for (const [name, [content]] of Object.entries(files)) {
    const answer = await fetch(`${base}/api/dashboards/file`, { method: 'PUT', body: content, headers: { Authorization: `Bearer ${token}`, 'If-None-Match': '*' } });
    assert.ok([400, 413].includes(answer.status), `${name}: ${answer.status}`);
  }
  assert.equal((await ask('GET', '/api/dashboards/file')).status, 404);
  assert.equal(await page.evaluate(() => window.__ran), undefined);
  assert.deepEqual(faults, []);
});

test('a token that ends while 60 panels live: the page says so, takes another, and loses nothing', async () => {
  const start = now();
  await put('wall.token', everywhere(start - 60, 1));
  await save('token', wall('wall.token'));
  await page.goto(`${base}/d/token`);
  const all = (points) => until(`${points} points in each of 60 panels`, async () => { const p = await panels(); return p.length === 60 && p.every((x) => x.points === points); });
  await all(1);
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.locator('#board-title').fill('Mine');

  writeFileSync(file, `read ${next}\nwrite ${next}\n`);
  token = next;
  await untilStatus(page, 'disconnected');
  await until('the words', async () => /^Disconnected.*token/.test(await text('#status')));
  await page.locator('#token-form').waitFor();
  assert.ok((await panels()).every((p) => p.points === 1), 'what was known stays');
  await put('wall.token', everywhere(start - 30, 2));
  await page.locator('#token').fill(next);
  await page.locator('#token').press('Enter');
  await all(2);
  await untilStatus(page, 'live');
  assert.equal(await page.evaluate(() => window.__downpour.board().title), 'Mine');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await until('version 2', async () => (await text('#told')) === 'Saved as version 2.');
  assert.equal((await (await ask('GET', '/api/dashboards/token')).json()).title, 'Mine');
  assert.deepEqual(faults, []);
});
