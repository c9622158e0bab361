// Pages that want to misuse a gateway without tokens through their visitor, in a real Chromium over plain HTTP to
// names that are not loopback's, so that the browser says little of the page; and the gateway's own page, which works.
//
// Usage: node hostile.mjs URL NAME: of the gateway, which knows the name gateway.example, and of this machine

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { connect, createServer as listen } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { launch, until, untilStatus, watch } from './chromium.mjs';

const [base, machine] = [process.argv[2].replace(/\/$/, ''), process.argv[3]];
const { port } = new URL(base);
const gateway = `http://gateway.example:${port}`;
const now = Math.floor(Date.now() / 1000);

let browser;
let page;
let other;
let rebound;
let html = '';

// ask is what a program does: it sends nothing of what browsers do.
const ask = async (method, path, body) => {
  const response = await fetch(base + path, { method, body: body && JSON.stringify(body), headers: { 'Content-Type': 'application/json' } });
  return { status: response.status, text: await response.text() };
};
// state is all that the pages below try to change.
const state = async () => (await Promise.all([
  '/api/suggest?type=metrics', '/api/suggest?type=tagk', `/api/query?start=${now - 3600}&m=none:hostile.kept`, '/api/uid/uidmeta?uid=000001&type=metric',
  `/api/annotation?start_time=${now - 50}`, '/api/tree', '/api/dashboards',
].map(async (path) => `${path} ${(await ask('GET', path)).text}`))).join('\n');

before(async () => {
  other = createServer((request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html' }).end(`<!doctype html><link rel=icon href=data:,>${html}`);
  });
  await new Promise((done) => { other.listen(0, '127.0.0.1', done); });
  // A name that leads to a page first, and then to the gateway.
  rebound = listen((client) => client.once('data', (head) => {
    client.on('error', () => {});
    if (String(head).startsWith('GET /start ')) {
      const body = '<!doctype html><link rel=icon href=data:,>';
      client.end(`HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      return;
    }
    const server = connect(Number(port), '127.0.0.1', () => { server.write(head); client.pipe(server).pipe(client); });
    server.on('error', () => client.destroy());
  }));
  await new Promise((done) => { rebound.listen(0, '127.0.0.1', done); });
  // 192.0.2.7 stands for the address of another machine.
  browser = await launch(`--host-resolver-rules=${['gateway.example', 'evil.example', machine, '192.0.2.7'].map((name) => `MAP ${name} 127.0.0.1`).join()}`);
  const put = await ask('POST', '/api/put', [{ metric: 'hostile.kept', timestamp: now - 100, value: 1, tags: { host: 'a' } }]);
  assert.equal(put.status, 204, put.text);
  assert.equal((await ask('POST', '/api/annotation', { startTime: now - 50, description: 'kept' })).status, 200);
});
after(async () => {
  await browser?.close();
  other?.closeAllConnections();
  other?.close();
  rebound?.close();
});
beforeEach(async () => {
  await page?.context().close();
  page = await (await browser.newContext()).newPage();
});

// visit opens a page of another site, waits until all that it loads has come or failed, and returns what it has asked the
// gateway for.
const visit = async (body) => {
  html = body;
  const asked = [];
  const note = (request) => { if (new URL(request.url()).port === port) asked.push(request.url()); };
  page.on('request', note);
  await page.goto(`http://evil.example:${other.address().port}/`, { waitUntil: 'load' });
  page.off('request', note);
  return asked;
};

const policies = ['', 'referrerpolicy=no-referrer', 'referrerpolicy=unsafe-url'];

test('a script of another site reads nothing by jsonp', async () => {
  const reads = ['/api/suggest?type=metrics', `/api/query?start=${now - 3600}&m=sum:hostile.kept`, '/api/config', '/api/aggregators', `/api/annotation?start_time=${now - 50}`, '/none?json'];
  const scripts = reads.flatMap((path) => policies.map((policy) => `<script ${policy} src="${gateway}${path}${path.includes('?') ? '&' : '?'}jsonp=steal"></script>`));
  const asked = await visit(`<script>window.stolen = []; function steal(v) { window.stolen.push(JSON.stringify(v)); }</script>${scripts.join('')}`);
  assert.equal(asked.length, scripts.length);
  // A refusal is wrapped in the callback, too. It holds no data.
  const stolen = await page.evaluate(() => window.stolen);
  assert.deepEqual(stolen.filter((text) => !text.includes('CORS domain not allowed')), []);
});

test('an image of another site changes nothing', async () => {
  const changes = [
    '/api/uid/assign?metric=hostile.made&tagk=made', '/api/uid/rename?metric=hostile.kept&name=hostile.renamed', '/api/dropcaches', '/dropcaches',
    `/api/query?start=${now - 3600}&m=sum:hostile.kept&method_override=delete`, '/api/uid/uidmeta?uid=000001&type=metric&description=x&method_override=post',
    `/api/annotation?start_time=${now - 50}&description=x&method_override=post`, `/api/annotation?start_time=${now - 50}&method_override=delete`,
    '/api/tree?name=x&method_override=post', '/api/dashboards/x?method_override=delete',
  ];
  const was = await state();
  const images = changes.flatMap((path) => policies.map((policy, i) => `<img ${policy} src="${gateway}${path}${path.includes('?') ? '&' : '?'}n=${i}">`));
  const asked = await visit(images.join(''));
  assert.equal(asked.length, images.length);
  assert.equal(await state(), was);
  // A link and a form are as bad.
  for (const path of changes) assert.equal((await page.goto(gateway + path, { referer: 'http://evil.example/' })).status(), 403, path);
  for (const path of ['/api/put', '/api/uid/assign']) {
    await visit(`<form method=post enctype=text/plain action="${gateway}${path}"><input name='{"metric":["hostile.form"],"timestamp":1,"value":1,"tags":{"a":"' value='b"}}'></form>`);
    const [response] = await Promise.all([page.waitForResponse(gateway + path), page.evaluate(() => document.querySelector('form').submit())]);
    assert.equal(response.status(), 403, path);
    await page.waitForURL(gateway + path);
  }
  assert.equal(await state(), was);
});

test('a page whose name is made to lead to the gateway reads, puts and opens nothing', async () => {
  const evil = `http://evil.example:${rebound.address().port}`;
  const was = await state();
  assert.equal((await page.goto(`${evil}/`)).status(), 421);
  await page.goto(`${evil}/start`);
  const got = await page.evaluate(async (points) => {
    const answer = async (path, options) => { const r = await fetch(path, options); return `${r.status} ${await r.text()}`; };
    const quiet = { referrerPolicy: 'no-referrer', headers: { 'User-Agent': 'curl/8', 'Accept-Language': '*' } };
    const socket = () => new Promise((done) => {
      const s = new WebSocket(`ws://${window.location.host}/api/ws`, ['downpour.v1']);
      s.onopen = () => done('open');
      s.onerror = () => done('refused');
    });
    return {
      answers: await Promise.all([
        answer('/api/suggest?type=metrics'), answer('/api/suggest?type=metrics', quiet), answer('/metrics', quiet),
        answer('/api/put', { method: 'POST', body: points }), answer('/api/put', { ...quiet, method: 'POST', body: points }), answer('/api/dashboards/x', { method: 'PUT', body: '{"form":1,"panels":[]}' }),
      ]),
      socket: await socket(),
    };
  }, JSON.stringify([{ metric: 'hostile.kept', timestamp: now - 10, value: 666, tags: { host: 'a' } }]));
  for (const answer of got.answers) assert.match(answer, /^421 .*DOWNPOUR_ALLOW_HOSTS/);
  assert.equal(got.socket, 'refused');
  assert.equal(await state(), was);
});

test('the gateway’s own page works by an address, by the machine’s name and by a listed one', async () => {
  for (const [i, host] of ['192.0.2.7', machine, 'gateway.example'].entries()) {
    const own = `http://${host}:${port}`;
    const faults = watch(page, new URL(own).host);
    await page.goto(`${own}/#start=15m-ago&m=sum:hostile.kept{host=*}`);
    await untilStatus(page, 'live');
    const made = await page.evaluate(async (name) => {
      const change = async (method, path, body) => (await fetch(path, { method, body: body && JSON.stringify(body), headers: { 'If-None-Match': '*' } })).status;
      return [await change('PUT', `/api/dashboards/${name}`, { form: 1, title: 'x', panels: [] }), await change('POST', '/api/uid/assign', { metric: [`hostile.${name}`] })];
    }, `own-${i}`);
    assert.deepEqual(made, [200, 200], host);
    await page.goto(`${own}/d/own-${i}`);
    await until('the dashboard', async () => (await page.title()).includes('x'));
    assert.deepEqual(faults, [], host);
  }
});
