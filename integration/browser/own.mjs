// Opens a page of somebody's own, with the chart of the docs, in a real Chromium
// and watches its lines come and move.
//
// Usage: node own.mjs URL LINES. Ends with status 1 if LINES lines do not appear
// or do not change, or if the page complains.

import { chromium } from 'playwright-core';

const [url, lines] = process.argv.slice(2);
const patience = 20_000; // ms, for every wait

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
  ],
});
try {
  const page = await browser.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(`page error: ${error}`));
  page.on('console', (message) => message.type() === 'error' && faults.push(`console: ${message.text()}`));
  await page.goto(url);
  // The drawing, once it has all lines and each has several points.
  const drawn = (before) => page.waitForFunction(([n, old]) => {
    const all = [...document.querySelectorAll('#chart polyline')].map((line) => line.getAttribute('points'));
    const good = all.length === n && all.every((points) => points.split(' ').length > 10 && !points.includes('NaN'));
    return good && all.join() !== old && all.join();
  }, [Number(lines), before], { timeout: patience }).then((handle) => handle.jsonValue());
  await drawn(await drawn(''));
  const title = await page.title();
  if (faults.length || title !== `${lines} lines`) throw new Error(`title ${title}, ${faults}`);
  console.log('own chart moved');
} catch (e) {
  console.error(String(e));
  process.exitCode = 1;
} finally {
  await browser.close();
}
