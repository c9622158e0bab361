// The page of a dashboard for tests in a real Chromium, against a scripted server: what all of them do
// with it. page, server and faults are those of the test that runs.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, beforeEach } from 'node:test';
import { metrics } from './boards.mjs';
import { launch, until, untilStatus, watch } from './chromium.mjs';
import { play } from './scenes.mjs';
import { Scripted } from './scripted.mjs';

export let browser;
export let server;
export let page;
export let faults;

// A refused socket or request is logged by the browser itself as an error.
const provoked = (text) => /WebSocket connection to|Failed to load resource/.test(text);

before(async () => {
  server = await new Scripted().start();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.close();
});
beforeEach(async () => {
  server.reset();
  server.answer = metrics;
  await opened();
});

// opened makes a new page in a context of its own.
export async function opened(options = {}, url = server.url) {
  await page?.context().close();
  page = await (await browser.newContext({ viewport: { width: 1200, height: 800 }, acceptDownloads: true, ...options })).newPage();
  faults = watch(page, new URL(url).host, provoked);
}

export const keep = (document, name = 'web') => server.dashboards.set(name, [JSON.stringify(document)]);
export const kept = (name = 'web') => server.dashboards.get(name).map((text) => JSON.parse(text));
export const open = async (path, status = 'live') => {
  await page.goto(server.url + path);
  if (status) await untilStatus(page, status);
};
export const panels = () => page.evaluate(() => window.__downpour.panels());
export const panel = async (id) => (await panels()).find((p) => p.id === id);
export const board = () => page.evaluate(() => window.__downpour.board());
export const text = (selector) => page.locator(selector).textContent();
export const button = (name) => page.getByRole('button', { name, exact: true });
export const sound = () => assert.deepEqual(faults, []);

const axe = readFileSync(new URL('./node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

// axeFindsNothing plays scenes, and looks at each in light and wide, and in dark and narrow.
export async function axeFindsNothing(scenes) {
  await opened({ bypassCSP: true }); // the policy lets no script in but the page's own
  for (const [name, scene] of Object.entries(scenes)) {
    for (const [colorScheme, width] of [['light', 1280], ['dark', 390]]) {
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme });
      if (width > 400) await play(page, server, scene, untilStatus);
      else await scene.narrow?.(page);
      await page.evaluate(axe);
      const found = await page.evaluate((t) => window.axe.run(document, { runOnly: { type: 'tag', values: t }, resultTypes: ['violations'] }), tags);
      assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(' ')).join('; ')}`), [], `${name}, ${colorScheme}`);
      await until(`${name} to fit into a window of ${width}`, () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    }
  }
}
