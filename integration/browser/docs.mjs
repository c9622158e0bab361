// The documentation in a real Chromium, from a real gateway: every page is served under its policy and
// asks no other host, fits a phone, and is accessible; the search works by the keyboard and shows what
// it has found.
//
// Usage: node docs.mjs URL

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { launch, until, watch } from './chromium.mjs';

const base = process.argv[2].replace(/\/$/, '');
const host = new URL(base).host;
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

let browser;

before(async () => { browser = await launch(); });
after(() => browser?.close());

// opened is a page of its own, with what is wrong in it.
async function opened(options) {
  const page = await (await browser.newContext(options)).newPage();
  return { page, faults: watch(page, host), close: () => page.context().close() };
}

// addresses are all pages of the first one.
async function addresses() {
  const index = await (await fetch(`${base}/docs/`)).text();
  const all = [...index.matchAll(/href="(\/docs\/[^"#]*)"/g)].map((m) => m[1]);
  return [...new Set(all)];
}

test('every page is shown under its policy, and fits a phone', async () => {
  const { page, faults, close } = await opened({ viewport: { width: 360, height: 740 } });
  const all = await addresses();
  assert.ok(all.length > 40, `${all.length} pages`);
  for (const address of all) {
    await page.goto(base + address);
    const seen = await page.evaluate(() => ({
      heading: document.querySelectorAll('h1').length,
      wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      coloured: getComputedStyle(document.querySelector('a.home')).textDecorationLine,
      pictures: [...document.images].filter((i) => i.complete && i.naturalWidth === 0).map((i) => i.src),
    }));
    assert.deepEqual(seen, { heading: 1, wide: 0, coloured: 'none', pictures: [] }, address);
  }
  assert.deepEqual(faults, []);
  await close();
});

// Pages of each kind: the first, tables, code, pictures, and the reference, which axe looks at for long.
const looks = [
  { width: 1280, colours: ['light', 'dark'], pages: ['/docs/', '/docs/settings', '/docs/queries', '/docs/chart'] },
  { width: 1280, colours: ['light'], pages: ['/docs/api'] },
  { width: 360, colours: ['light'], pages: ['/docs/', '/docs/settings', '/docs/queries'] },
];

test('axe finds nothing, in both colours, wide and narrow', async () => {
  for (const { width, colours, pages } of looks) {
    const { page, faults, close } = await opened({ viewport: { width, height: 800 }, bypassCSP: true }); // axe is let in
    for (const address of pages) {
      await page.goto(base + address);
      await page.evaluate(readFileSync(new URL('./node_modules/axe-core/axe.min.js', import.meta.url), 'utf8'));
      for (const colorScheme of colours) {
        await page.emulateMedia({ colorScheme });
        const found = await page.evaluate((t) => window.axe.run(document, { runOnly: { type: 'tag', values: t }, resultTypes: ['violations'] }), tags);
        assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(' ')).join('; ')}`), [], `${address} ${colorScheme} ${width}`);
      }
    }
    assert.deepEqual(faults, []);
    await close();
  }
});

const focused = (page) => page.evaluate(() => document.activeElement?.textContent ?? '');

test('the search is used by the keyboard, tells what it finds, and leads there', async () => {
  const { page, faults, close } = await opened({ viewport: { width: 1280, height: 900 } });
  await page.goto(`${base}/docs/`);
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'search');
  await page.keyboard.type('slow queries');
  await until('results', async () => (await page.locator('#found li').count()) > 3);
  await until('what is said', async () => /^\d+ sections found for “slow queries”/.test(await page.locator('#said').textContent()));
  assert.equal(await page.locator('#columns').isVisible(), false);

  await page.keyboard.press('ArrowDown');
  const first = await page.locator('#found a').first().textContent();
  assert.equal(await focused(page), first);
  await page.keyboard.press('ArrowDown');
  assert.notEqual(await focused(page), first);
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'search');
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('#columns').isVisible(), true);
  assert.equal(await page.locator('#found').isVisible(), false);

  await page.keyboard.type('DOWNPOUR_SLOW_QUERY');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/docs\/(settings|log)/);

  await page.locator('#search').fill('no-such-word-at-all');
  await until('that nothing is found', async () => (await page.locator('#count').textContent()) === 'Nothing is found for “no-such-word-at-all”.');
  assert.equal(await page.locator('#found li').count(), 0);
  assert.deepEqual(faults, []);
  await close();
});

test('a result on the page that is shown leads to its place', async () => {
  const { page, faults, close } = await opened({ viewport: { width: 1280, height: 900 } });
  await page.goto(`${base}/docs/compatibility`);
  await page.locator('#search').fill('slow clients');
  const result = page.locator('#found a[href="/docs/compatibility#slow-clients"]');
  await result.waitFor();
  await result.press('Enter');
  await until('the place', async () => page.locator('#slow-clients').evaluate((h) => h.getBoundingClientRect().top >= 0 && h.getBoundingClientRect().top < innerHeight));
  assert.equal(await page.locator('#found').isVisible(), false);
  assert.deepEqual(faults, []);
  await close();
});

test('what is searched for is text, and a search without an index says so', async () => {
  const { page, close } = await opened({ viewport: { width: 1280, height: 900 } });
  await page.goto(`${base}/docs/`);
  await page.locator('#search').fill('<img src=x onerror=window.__ran=1>');
  await until('the words', async () => /found for “<img/.test(await page.locator('#count').textContent()));
  assert.equal(await page.evaluate(() => window.__ran), undefined);

  await page.route('**/docs/search.json', (route) => route.fulfill({ status: 503, body: '' }));
  await page.goto(`${base}/docs/settings`);
  await page.locator('#search').fill('memory');
  await until('the words', async () => (await page.locator('#count').textContent()) === 'The search cannot be used: the server says 503.');
  await page.unroute('**/docs/search.json');
  await page.locator('#search').fill('memory budget');
  await until('results', async () => (await page.locator('#found li').count()) > 0);
  await close();
});

test('the other pages lead here', async () => {
  const { page, close } = await opened({ viewport: { width: 1280, height: 900 } });
  for (const [address, to] of [['/#start=15m-ago', '/docs/'], ['/d/', '/docs/dashboards'], ['/ops', '/docs/ops']]) {
    await page.goto(base + address);
    await page.locator('a', { hasText: 'Documentation' }).click();
    await page.waitForURL(base + to);
  }
  await close();
});
