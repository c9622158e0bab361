// The page through a balancer of connections: the gateway that it is connected to goes away, and
// the page goes on with another one.
//
// Usage: node failover.mjs URL CONTROL, where CONTROL stops and kills gateways.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, until, untilStatus, watch } from './chromium.mjs';

const [base, control] = process.argv.slice(2);
let browser;

before(async () => { browser = await launch(); });
after(() => browser?.close());

const put = async (value) => {
  const point = { metric: 'page.failover', timestamp: Math.floor(Date.now() / 1000), value, tags: { host: `h${value}` } };
  const answer = await fetch(`${base}/api/put`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(point) });
  assert.equal(answer.status, 204, `put of ${value}`);
};
const happen = async (step) => {
  const answer = await fetch(`${control}/${step}`);
  assert.equal(answer.status, 200, await answer.text());
};

test('the page goes on when its gateway is stopped, and when the next one is killed', async () => {
  const page = await (await browser.newContext({ viewport: { width: 1200, height: 800 } })).newPage();
  const faults = watch(page, new URL(base).host, (text) => /WebSocket connection to|Failed to load resource/.test(text));
  const sockets = [];
  page.on('websocket', (socket) => sockets.push(socket));
  const shows = (value) => until(`the value ${value}`, () => page.evaluate((v) => window.__downpour.columns().some((c) => c.includes(v)), value));

  await put(1);
  await page.goto(`${base}/#start=15m-ago&m=sum:page.failover{host=*}`);
  await untilStatus(page, 'live');
  await shows(1);

  for (const [step, value] of [['stop-first', 2], ['kill-second', 3]]) {
    const had = sockets.length;
    await happen(step);
    await until('another socket', () => sockets.length > had);
    await put(value);
    await shows(value);
    await untilStatus(page, 'live');
  }
  await shows(1);
  assert.deepEqual(faults, []);
});
