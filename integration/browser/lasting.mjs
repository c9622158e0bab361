// The page in a real Chromium against a scripted server, over long and in every state: its heap does not grow, and axe finds
// nothing that keeps people out.
//
// Usage: node lasting.mjs; it ends with status 1 if a test fails.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { launch, record, until, untilStatus, watch } from './chromium.mjs';
import { play, scenes } from './scenes.mjs';
import { Scripted, now, result } from './scripted.mjs';

let browser;
let server;

before(async () => {
  server = await new Scripted().start();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.close();
});

test('10,000 updates leave the heap as it was', async () => {
  const page = await (await browser.newContext({ viewport: { width: 1200, height: 800 } })).newPage();
  const faults = watch(page, new URL(server.url).host);
  await record(page);
  const text = (selector) => page.locator(selector).textContent();
  const frame = () => page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(() => resolve())); }));
  const width = 900;
  const first = Math.floor(now() / 10) * 10 - 33_000; // all points to come lie in the window
  server.answer = () => ['a', 'b'].map((host) => result('m', { host }, { from: first - width, to: first, step: 1 }));
  await page.goto(`${server.url}/#start=12h-ago&m=avg:m{host=*}&open=table`);
  await untilStatus(page, 'live');
  const client = await page.context().newCDPSession(page);
  const heap = async () => {
    await frame();
    for (let i = 0; i < 3; i++) await client.send('HeapProfiler.collectGarbage');
    return (await client.send('Runtime.getHeapUsage')).usedSize;
  };
  const [sub] = server.subs;
  let t = first;
  const send = async (n) => {
    for (let i = 0; i < n; i++) {
      t++;
      server.delta(sub, { upserts: [0, 1].map((group) => ({ group, dps: [[t, Math.sin(t / 50) + group]] })), deletes: [0, 1].map((group) => ({ group, ts: [t - width - 1] })) });
      if (i % 1000 === 999) {
        await until(`point ${t}`, () => page.evaluate((last) => window.__downpour.last()?.time === last, t));
        await frame();
      }
    }
  };
  await send(1000); // what is made once is made
  const nodes = () => page.evaluate(() => document.querySelectorAll('*').length);
  const elements = await nodes();
  // What leaks grows with each 10,000 updates. Compiled code and caches grow once, now or later.
  const sizes = [await heap()];
  const grew = () => sizes.at(-1) >= sizes.at(-2) * 1.1 + 200_000;
  do {
    await send(10_000);
    sizes.push(await heap());
  } while (grew() && sizes.length < 4);
  assert.match(await text('#page'), /^Page 1 of 37/); // and they are all drawn
  console.log(`heap in bytes, 10,000 updates apart: ${sizes.join(', ')}`);
  assert.ok(!grew(), `the heap grows each time: ${sizes.join(', ')} bytes`);
  assert.equal(await nodes(), elements);
  assert.equal((await page.evaluate(() => window.__downpour.columns()))[0].length, width + 1);
  assert.deepEqual(faults, []);
  await page.context().close();
  server.reset();
});

const axe = readFileSync(new URL('./node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

test('axe finds nothing in any state, light and dark, wide and narrow', async () => {
  const context = await browser.newContext({ bypassCSP: true }); // the policy lets no script in but the page's own
  const p = await context.newPage();
  const looks = [['light', 1200], ['dark', 320]];
  for (const [name, scene] of Object.entries(scenes)) {
    for (const [colorScheme, width] of looks) {
      await p.setViewportSize({ width, height: 800 });
      await p.emulateMedia({ colorScheme });
      if (width > 400) await play(p, server, scene, untilStatus);
      else await scene.narrow?.(p);
      await p.evaluate(axe);
      const found = await p.evaluate(async (runOnly) => (await window.axe.run(document, { runOnly, resultTypes: ['violations'] })).violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`),
        ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']);
      assert.deepEqual(found, [], `${name}, ${colorScheme}`);
      // The chart takes a frame to become as narrow as its window.
      await until(`${name} to fit into a window of ${width}`, () => p.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    }
  }
  await context.close();
});
