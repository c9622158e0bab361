// Panels of dashboards in pages of another origin, in a real Chromium, with a real gateway that
// wants tokens.
//
// Usage: node elsewhere.mjs URL PORT TOKEN: of the gateway, of the other origin, which the gateway
// allows, and a token that may read and write.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { launch, until } from './chromium.mjs';

const [base, port, token] = [process.argv[2].replace(/\/$/, ''), Number(process.argv[3]), process.argv[4]];
const now = () => Math.floor(Date.now() / 1000);

let browser;
let page;
let server;
let html = '';
let faults;

const ask = (method, path, body, headers = {}) => fetch(base + path, { method, body: body && JSON.stringify(body), headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}`, ...headers } });
const put = (value) => ask('POST', '/api/put', ['a', 'b'].map((host) => ({ metric: 'own.metric', timestamp: now(), value, tags: { host } })));
const save = async (name, document) => assert.equal((await ask('PUT', `/api/dashboards/${name}`, document, { 'If-None-Match': '*' })).status, 200);

const panel = (id, type, rest) => ({ id, type, title: '', place: { x: 0, y: 0, w: 6, h: 8 }, ...rest });
const web = {
  form: 1, title: 'Web', range: { from: '5m-ago', to: '' }, panels: [
    panel('cpu', 'lines', { title: '<img src=x onerror="window.__ran = 1">', queries: ['sum:own.metric{host=*}'] }),
    panel('now', 'number', { title: 'Now', queries: ['sum:own.metric'] }),
    panel('note', 'text', { text: '<script>window.__ran = 1</script>' }),
    panel('later', 'globe', { title: 'Later' }),
    panel('none', 'lines', { title: 'None', queries: ['sum:no.such.metric'] }),
  ],
};

before(async () => {
  server = createServer((request, response) => {
    const styles = '<style>p, h2 { display: none } .panel { display: none } * { visibility: visible; color: red }</style>';
    response.writeHead(200, { 'Content-Type': 'text/html' }).end(`<!doctype html><link rel=icon href=data:,>${styles}${html}<script type=module src="${base}/ui/embed.js"></script>`);
  });
  await new Promise((done) => { server.listen(port, '127.0.0.1', done); });
  browser = await launch();
  await put(1);
  await save('web', web);
  await save('hosts', { ...web, variables: [{ name: 'host', metric: 'own.metric', tagk: 'host' }], panels: [panel('cpu', 'lines', { title: 'CPU of $host', queries: ['sum:own.metric{host=$host}'] })] });
});
after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});
beforeEach(async () => {
  await page?.context().close();
  page = await (await browser.newContext({ viewport: { width: 900, height: 1400 } })).newPage();
  faults = [];
  page.on('pageerror', (error) => faults.push(String(error)));
});

// place is an element for a panel.
const place = (dashboard, id, more = `data-token="${token}"`) => `<div data-dashboard="${dashboard}" data-panel="${id}" ${more}></div>`;
const open = async (body) => { html = body; await page.goto(`http://127.0.0.1:${port}/`); };
const inside = (n, selector) => page.locator('[data-dashboard]').nth(n).locator(selector);
const words = (n = 0) => inside(n, '.words').textContent();
const said = (n = 0) => inside(n, '.said').textContent();

test('panels are drawn as on their dashboard, on one socket, and move; titles are text', async () => {
  const sockets = [];
  page.on('websocket', (s) => sockets.push(s.url()));
  await open(['cpu', 'now', 'note', 'later'].map((id) => place('web', id)).join(''));
  await until('two lines', async () => (await inside(0, '.legend button').count()) === 2);
  await until('a number', async () => (await inside(1, '.number').textContent()) === '2');
  assert.equal(await inside(0, 'h2').textContent(), '<img src=x onerror="window.__ran = 1">');
  assert.equal(await inside(2, '.text').textContent(), '<script>window.__ran = 1</script>');
  assert.match(await inside(3, '.text').textContent(), /^Unknown panel: this release does not draw “globe”\./);
  assert.ok(await inside(0, 'h2').isVisible(), 'the page’s styles stay out');
  const canvas = inside(0, 'canvas');
  const drawn = () => canvas.evaluate((c) => c.toDataURL());
  const before = await drawn();
  await new Promise((done) => { setTimeout(done, 1100); }); // a point of the same second would only change the last
  await put(5);
  await until('the next number', async () => (await inside(1, '.number').textContent()) === '10');
  await until('the chart to move', async () => (await drawn()) !== before);
  assert.equal(sockets.length, 1);
  assert.equal(await page.evaluate(() => window.__ran), undefined);
  assert.deepEqual(faults, []);
});

test('its points are read by keys', async () => {
  await open(place('web', 'cpu'));
  await until('two lines', async () => (await inside(0, '.legend button').count()) === 2);
  await inside(0, '.chart').focus();
  await page.keyboard.press('End');
  await until('the newest point', async () => /^host=a: \d+ at \d{4}-/.test(await inside(0, '[aria-live=polite]').textContent()));
  await page.keyboard.press('ArrowDown');
  await until('the other line', async () => /^host=b: /.test(await inside(0, '[aria-live=polite]').textContent()));
  assert.deepEqual(faults, []);
});

test('what is wrong is said in words', async () => {
  await open([place('web', 'cpu2'), place('web', 'cpu', ''), place('web', 'cpu', 'data-token="a-token-that-is-none"'), place('W E B', 'cpu'), place('web', 'none')].join(''));
  await until('no such panel', async () => (await words(0)) === 'Dashboard “web” has no panel “cpu2”. It has cpu, now, note, later, none.');
  await until('no token', async () => (await words(1)) === 'The dashboard cannot be read: the gateway wants a token, and the panel has none: give it one that may read, as data-token.');
  await until('a wrong token', async () => (await words(2)) === 'The dashboard cannot be read: the gateway does not know the panel’s token.');
  await until('no name', async () => /^The dashboard cannot be read: name: got "w e b", want 1 to 64 of/i.test(await words(3)));
  await until('no metric', async () => (await said(4)) === 'No metric is called “no.such.metric” yet. Asking again every second.');
  assert.deepEqual(faults, []);
});

test('variables have the first value that there is, or that of the page', async () => {
  await open(place('hosts', 'cpu') + place('hosts', 'cpu', `data-token="${token}" data-var-host="b"`) + place('hosts', 'cpu', `data-token="${token}" data-var-hots="b"`));
  for (const [n, title] of [[0, 'CPU of a'], [1, 'CPU of b'], [2, 'CPU of a']]) {
    await until(title, async () => (await inside(n, '.legend button').count()) === 1 && (await inside(n, 'h2').textContent()) === title);
  }
  assert.deepEqual([await words(0), await words(1), await words(2)], ['', '', 'The dashboard has no variable “hots”.']);
  assert.deepEqual(faults, []);
});

test('values that a token may not read are missing in words, and come once it may', async () => {
  const refused = { status: 403, headers: { 'Access-Control-Allow-Origin': '*', 'Access-Control-Allow-Headers': '*' }, contentType: 'application/json', body: '{"error":{"code":403,"message":"Forbidden"}}' };
  await page.route('**/api/search/values*', (route) => route.fulfill(refused));
  await open(place('hosts', 'cpu'));
  await until('the refusal', async () => (await words(0)) === 'host: The values of host cannot be read: the panel’s token may not read.');
  await page.unroute('**/api/search/values*');
  await until('its line', async () => (await inside(0, '.legend button').count()) === 1);
  assert.equal(await words(0), '');
  assert.deepEqual(faults, []);
});

test('a dashboard that is saved later appears; one of a later form is drawn as far as it is known', async () => {
  await open(place('soon', 'cpu'));
  await until('none yet', async () => (await words()) === 'There is no dashboard “soon” yet. Asking again.');
  await save('soon', web);
  await until('its lines', async () => (await inside(0, '.legend button').count()) === 2);
  assert.equal(await words(), '');

  await page.route('**/api/dashboards/web', (route) => route.fulfill({ status: 200, headers: { 'Access-Control-Allow-Origin': '*' }, contentType: 'application/json', body: JSON.stringify({ ...web, form: 9, wholly: 'new' }) }));
  await open(place('web', 'cpu') + place('web', 'later'));
  await until('its lines', async () => (await inside(0, '.legend button').count()) === 2);
  await until('what is not known', async () => /^Unknown panel/.test(await inside(1, '.text').textContent()));
  assert.deepEqual(faults, []);
});

test('a panel that a script makes is closed by it', async () => {
  await open('<div id=mine></div>');
  await page.evaluate(async ([url, t]) => {
    const { panel: draw } = await import(`${url}/ui/embed.js`);
    window.__drawn = draw('#mine', 'web', 'cpu', { token: t, height: 200 });
  }, [base, token]);
  const mine = page.locator('#mine');
  await until('two lines', async () => (await mine.locator('.legend button').count()) === 2);
  assert.equal((await mine.locator('.panel').boundingBox()).height, 200);
  await page.evaluate(() => window.__drawn.close());
  assert.equal(await mine.locator('.panel').count(), 0);
  assert.deepEqual(faults, []);
});
