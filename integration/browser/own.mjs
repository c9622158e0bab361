// Opens a page of somebody's own, an example of the docs, in a real Chromium and
// watches its two lines come and move.
//
// Usage: node own.mjs URL chart|panel|list. Ends with status 1 if the lines do not
// appear or do not change, or if the page complains.

import { launch } from './chromium.mjs';

const [url, kind] = process.argv.slice(2);
const patience = 120_000; // ms, for every wait

// What is drawn, as text, once both lines are there; run in the page.
const drawings = {
  // The legend names two lines, and the colour of one is on the canvas, in enough
  // places for a line: where both have the same values, the second hides the first.
  chart: () => {
    const [canvas, legend] = [document.querySelector('#chart canvas'), [...document.querySelectorAll('#chart .u-series')].slice(1)];
    if (!canvas || legend.length !== 2 || !legend.every((s) => /type=(user|system)/.test(s.textContent))) return '';
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const wanted = legend.map((s) => getComputedStyle(s.querySelector('.u-marker')).borderTopColor.match(/\d+/g).slice(0, 3).join());
    const counts = new Map(wanted.map((c) => [c, 0]));
    for (let i = 0; i < data.length; i += 4) {
      const c = `${data[i]},${data[i + 1]},${data[i + 2]}`;
      if (data[i + 3] === 255 && counts.has(c)) counts.set(c, counts.get(c) + 1);
    }
    return counts.size === 2 && Math.max(...counts.values()) > 100 && canvas.toDataURL();
  },
  // The panel in its shadow tree has both lines in its legend, and a drawing.
  panel: () => {
    const { shadowRoot } = document.querySelector('[data-dashboard]');
    const [canvas, names] = [shadowRoot?.querySelector('canvas'), [...shadowRoot?.querySelectorAll('.legend button') ?? []]];
    return names.length === 2 && names.every((b) => /type=(user|system)/.test(b.textContent)) && canvas.toDataURL();
  },
  list: () => {
    const items = [...document.querySelectorAll('#list li')].map((li) => li.textContent);
    return items.length === 2 && items.every((text) => /^type=(user|system): \d+(\.\d+)? at \d+$/.test(text)) && document.title === 'Live' && items.join();
  },
};

const browser = await launch();
try {
  const page = await browser.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(`page error: ${error}`));
  page.on('console', (message) => message.type() === 'error' && faults.push(`console: ${message.text()}`));
  await page.goto(url);
  const drawn = (before) => page.waitForFunction(([body, old]) => {
    const now = new Function(`return (${body})()`)();
    return now && now !== old && now;
  }, [drawings[kind].toString(), before], { timeout: patience }).then((handle) => handle.jsonValue());
  await drawn(await drawn('')).catch((error) => { throw new Error(`${error}: ${faults.join('; ')}`); });
  if (faults.length) throw new Error(faults.join('; '));
  console.log(`${kind} moved`);
} catch (e) {
  console.error(String(e));
  process.exitCode = 1;
} finally {
  await browser.close();
}
