// Panels of every type in a real Chromium: what they draw, what they say of it, and what one does with
// them: sort, fill the window, print, on a phone.
//
// Usage: node panels.mjs; it ends with status 1 if a test fails.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { axeFindsNothing, board, button, keep, kept, open, opened, page, panel, panels, server, sound, text } from './boardpage.mjs';
import { web } from './boards.mjs';
import { until, untilStatus } from './chromium.mjs';
import { metrics, panelBoards, types } from './panelboards.mjs';
import { hostsOf } from './scenes.mjs';

const show = async (path = '/d/web') => {
  server.answer = metrics;
  keep(types);
  await open(path);
};

const seen = async (id) => {
  await page.locator(`[data-id=${id}]`).scrollIntoViewIfNeeded();
  await until(`lines of ${id}`, async () => (await panel(id)).series.length > 0 && (await panel(id)).kind !== 'connecting');
};

// picture is what a panel draws, with 'none' for a point that is not there.
const picture = (id) => page.evaluate((i) => {
  const { labels, data, style } = window.__downpour.drawing(i).picture;
  const plain = (rows) => rows?.map((r) => r.map((v) => (v === undefined ? 'none' : v)));
  return { labels, data: plain(data), style: style?.name, drawn: plain(style?.drawn) };
}, id);

// colourAt is the colour of the canvas at a time and a value, and what the css colour of name is.
const colourAt = (id, time, value, name) => page.evaluate(([i, t, v, n]) => {
  const { plot } = window.__downpour.drawing(i).chart;
  const [x, y] = [plot.valToPos(t, 'x', true), plot.valToPos(v, 'y', true)].map(Math.round);
  const probe = document.getElementById('probe');
  probe.style.color = `var(${n})`;
  return { is: `rgb(${[...plot.ctx.getImageData(x, y, 1, 1).data].slice(0, 3).join(', ')})`, alpha: plot.ctx.getImageData(x, y, 1, 1).data[3], named: getComputedStyle(probe).color };
}, [id, time, value, name]);

const numeric = (v) => typeof v === 'number';

// summed says that what each line stands on is the sum of those below it.
function summed({ data, drawn }) {
  data[0].forEach((t, k) => {
    let sum = 0;
    data.slice(1).forEach((row, i) => {
      if (!numeric(row[k])) return;
      sum += row[k];
      assert.ok(Math.abs(drawn[i + 1][k] - sum) < 1e-6, `line ${i} at ${t}: ${drawn[i + 1][k]}, want ${sum}`);
    });
  });
}

test('stacked areas stand on each other, and a line without a value adds nothing', async () => {
  await show();
  await seen('stacked');
  const before = await picture('stacked');
  assert.deepEqual([before.labels.length, before.style], [4, 'areas']);
  const at = before.data[0].findIndex((t, k) => before.data[2][k] === null && numeric(before.data[4][k]));
  assert.ok(at > 0, 'web02 has a gap');
  summed(before);
  // Where the area is high, and between two points: grid lines are at whole minutes, as some points are.
  const inner = before.data[1].slice(5, -5);
  const high = 5 + inner.indexOf(Math.max(...inner.filter(numeric)));
  const { alpha } = await colourAt('stacked', before.data[0][high] + 5, before.data[1][high] / 2, '--c0');
  assert.ok(alpha > 50 && alpha < 255, `the ground shines through, got an alpha of ${alpha}`);

  await page.locator('[data-id=stacked] .legend button').first().click();
  await until('the others to come down', async () => (await picture('stacked')).drawn[4][at] < before.drawn[4][at]);
  const { drawn, data } = await picture('stacked');
  assert.ok(Math.abs(before.drawn[4][at] - drawn[4][at] - data[1][at]) < 1e-6, 'by what the hidden line has');
  await page.locator('[data-id=stacked] .chart').focus();
  await page.keyboard.press('ArrowLeft');
  assert.match(await text('#readout'), /^host=web02: [\d.]+% at /);
  const said = Number(/: ([\d.]+)%/.exec(await text('#readout'))[1]);
  assert.ok(said < 50, `it reads the line’s own value: ${said}`);
  assert.equal(server.received.find((m) => m.query?.queries[0].metric === 'cpu.user').query.queries[0].downsample, '1m-avg');
  sound();
});

test('bars stand at their points', async () => {
  await show();
  await seen('bars');
  const drawn = await picture('bars');
  assert.equal(drawn.style, 'bars');
  summed(drawn);
  const k = drawn.data[0].findIndex((t, i) => i > 1 && numeric(drawn.data[1][i]));
  const inside = await colourAt('bars', drawn.data[0][k], drawn.data[1][k] / 2, '--c0');
  assert.ok(inside.alpha > 150, `a bar is filled: ${inside.alpha}`);
  const beside = await colourAt('bars', drawn.data[0][k] + 29, drawn.data[1][k] / 2, '--c0');
  assert.ok(beside.alpha < 60, `and has room beside it: ${beside.alpha}`);
  assert.equal(await text('[data-id=bars] .limits'), 'From 600 ops/s on amber. From 900 ops/s on red.');
  sound();
});

test('a live chart is drawn when it has moved by a pixel, not each second', async () => {
  await page.clock.install();
  server.answer = metrics;
  keep({ ...types, range: { from: '1h-ago', to: '' } });
  await open('/d/web');
  await seen('stacked');
  const width = await page.evaluate(() => {
    const { plot } = window.__downpour.drawing('stacked').chart;
    window.__draws = 0;
    (plot.hooks.draw ??= []).push(() => window.__draws++);
    return plot.bbox.width;
  });
  const end = () => page.evaluate(() => window.__downpour.drawing('stacked').chart.plot.scales.x.max);
  const before = await end();
  await page.clock.runFor(40_000);
  const [draws, moved] = [await page.evaluate(() => window.__draws), (await end()) - before];
  const most = Math.ceil(moved * (width / 3600)) + 1; // annotations that are read again are drawn, too
  assert.ok(moved > 30 && draws > 0 && draws <= most, `${draws} draws while the range moved by ${moved} s, want 1 to ${most}`);
  sound();
});

test('a heat map has every point of many lines in a cell, in both colours', async () => {
  await show();
  await seen('many');
  assert.equal((await panel('many')).series.length, 120);
  // The range moves on: a point that leaves it between the drawing and the look is in one of them alone.
  await until('none to be lost, none to be counted twice', () => page.evaluate((id) => {
    const { owner, picture } = window.__downpour.drawing(id);
    const [from, to] = owner.range();
    const held = owner.lines.flatMap((l) => l.group.times).filter((t) => t >= from && t <= to).length;
    const counts = picture.data.slice(1).flat().filter((n) => n > 0);
    return held > 0 && counts.reduce((a, b) => a + b, 0) === held;
  }, 'many'));
  const { labels, data } = await picture('many');
  const counts = data.slice(1).flat().filter(numeric);
  assert.match(labels[0], /^[\d.]+ [KMG]iB to [\d.]+ [KMG]iB$/);
  assert.equal(await page.locator('[data-id=many] .levels li').count(), 6);
  const most = Math.max(...counts);
  const row = data.findIndex((r, i) => i > 0 && r.includes(most));
  const [low, high] = await page.evaluate(([i, r]) => { const { rows } = window.__downpour.drawing(i).picture.style.heat; return [rows[r - 1].low, rows[r - 1].high]; }, ['many', row]);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await until(`the greatest count in ${colorScheme}`, async () => {
      const { is, named } = await colourAt('many', data[0][data[row].indexOf(most)], (low + high) / 2, '--h5');
      return is === named;
    });
  }
  await page.locator('[data-id=many] .chart').focus();
  await page.keyboard.press('ArrowLeft');
  // The day stands twice in a stretch that midnight is in.
  assert.match(await text('#readout'), /^[\d.]+ [KMG]iB to [\d.]+ [KMG]iB: \d+ at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d – (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d$/);
  sound();
});

test('a heat map of histograms asks for their buckets', async () => {
  await show();
  await seen('latency');
  const asked = server.received.find((m) => m.query?.queries[0].metric === 'latency').query.queries[0];
  assert.deepEqual([asked.showHistogramBuckets, asked.percentiles, asked.aggregator, asked.downsample], [true, undefined, 'sum', '1m-sum']);
  const { labels } = await picture('latency');
  assert.deepEqual(labels, ['0 ms to 1 ms', '1 ms to 2 ms', '2 ms to 5 ms', '5 ms to 10 ms', '10 ms to 20 ms', '20 ms to 50 ms', '50 ms to 100 ms', '100 ms to 200 ms', '200 ms or more']);
  const box = await page.locator('[data-id=latency] .u-over').boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + box.height * 0.5);
  await page.locator('[data-id=latency] .tooltip').waitFor();
  assert.match(await text('[data-id=latency] .tooltip'), /^\d{4}.* – .*5 ms to 10 ms/);
  sound();
});

test('units are in legends, tables and numbers, one for each axis', async () => {
  await show();
  await seen('axes');
  await until('values', async () => /bit\/s/.test(await text('[data-id=axes] .legend')));
  assert.equal(await text('[data-id=axes] .limits'), 'From 700 Mbit/s on amber. From 900 Mbit/s on red. From 20% on blue, on the right axis.');
  assert.match(await text('[data-id=axes] .legend'), /nic=eth0[\d.]+ Mbit\/s.*cpu\.user.*right axis[\d.]+%/);
  await page.locator('[data-id=axes] .chart').hover();
  await until('the tooltip', async () => /Mbit\/s/.test(await text('[data-id=axes] .tooltip')));
  assert.match(await text('[data-id=axes] .tooltip'), /\d%/);
  await seen('table');
  assert.match(await text('[data-id=table] tbody tr:first-child'), /^nic=eth0[\d.]+ [MG]bit\/s/);
  await seen('hot');
  assert.match(await text('[data-id=hot] .number'), /^[\d.]+ GiB$/);
  sound();
});

test('a number has the colour of its threshold, and the words', async () => {
  await show();
  await seen('hot');
  assert.equal(await page.locator('[data-id=hot] .number').getAttribute('data-colour'), 'red');
  assert.equal(await text('[data-id=hot] .level'), 'red: 2 GiB or more');
  await seen('fine');
  assert.equal(await text('[data-id=fine] .level'), 'green: 0% or more');
  sound();
});

test('of many lines the greatest are drawn, and the others counted', async () => {
  await show();
  await seen('top');
  assert.equal((await panel('top')).series.length, 3);
  assert.equal(await text('[data-id=top] .remark'), '117 lines not shown: these 3 have the greatest maximum.');
  const { data } = await picture('top');
  const all = metrics({ start: '15m-ago', queries: [{ metric: 'memory', filters: [{}] }] }).map((r) => Math.max(...r.dps.map(([, v]) => v))).sort((a, b) => b - a);
  assert.deepEqual(data.slice(1).map((r) => Math.max(...r.filter(numeric))).sort((a, b) => b - a), all.slice(0, 3));
  sound();
});

test('a legend that is a table is sorted by keys, and hides lines', async () => {
  await show();
  await seen('top');
  const rows = () => page.locator('[data-id=top] tbody tr').evaluateAll((list) => list.map((r) => r.querySelector('[data-by=greatest]').textContent));
  const head = page.locator('[data-id=top] thead').getByRole('button', { name: 'Greatest' });
  const size = (t) => Number.parseFloat(t) * { MiB: 2 ** 20, GiB: 2 ** 30 }[t.split(' ')[1]];
  await head.focus();
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('[data-id=top] th[aria-sort]').getAttribute('aria-sort'), 'descending');
  const down = await rows();
  assert.deepEqual(down, [...down].sort((a, b) => size(b) - size(a)));
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('[data-id=top] th[aria-sort]').getAttribute('aria-sort'), 'ascending');
  assert.deepEqual(await rows(), [...down].reverse());
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Greatest', 'the focus stays');
  const name = page.locator('[data-id=top] tbody button').first();
  await name.click();
  assert.equal(await name.getAttribute('aria-pressed'), 'false');
  sound();
});

// A table of many lines takes longer than their chart.
test('the rows of a large legend come after the charts, which keep their size; a sheet has them at once', async () => {
  server.answer = metrics;
  keep({ form: 1, title: 'Large', panels: ['a', 'b'].map((id, i) => ({ id, type: 'lines', title: id, place: { x: 6 * i, y: 0, w: 6, h: 8 }, queries: ['avg:memory{host=*}'] })) });
  await page.addInitScript(() => {
    window.__idle = [];
    window.requestIdleCallback = (f) => window.__idle.push(f);
    addEventListener('afterprint', () => { window.__sheet = document.querySelectorAll('[data-id=b] tbody tr').length; });
  });
  await open('/d/web');
  const of = (id) => page.evaluate((i) => {
    const { plot } = window.__downpour.drawing(i).chart;
    return { lines: plot?.series.length, rows: document.querySelectorAll(`[data-id=${i}] tbody tr`).length, height: plot?.height };
  }, id);
  await until('both charts', async () => (await of('a')).lines === 121 && (await of('b')).lines === 121);
  const { height, rows } = await of('a');
  assert.equal(rows, 0);
  await page.evaluate(() => window.__idle[0]());
  await until('rows', async () => (await of('a')).rows === 120);
  await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
  assert.equal((await of('a')).height, height);
  assert.equal(await page.locator('[data-id=a] .line-tools').isVisible(), true);
  assert.equal((await of('b')).rows, 0);
  await page.pdf(); // as the browser prints
  await until('the sheet', () => page.evaluate(() => window.__sheet !== undefined));
  assert.equal(await page.evaluate(() => window.__sheet), 120);
  sound();
});

test('one panel fills the window, in the address and by keys', async () => {
  await show();
  await seen('bars');
  await page.locator('[data-id=bars] .chart').focus();
  await page.keyboard.press('f');
  await until('it in the address', () => page.url().includes('panel=bars'));
  await until('the others to ask nothing', async () => (await panels()).every((p) => p.id === 'bars' ? p.asked > 0 : p.asked === 0));
  const box = await page.locator('[data-id=bars]').boundingBox();
  assert.ok(box.width > 1100 && box.height > 600 && box.y + box.height <= 800, JSON.stringify(box));
  assert.equal(await page.locator('.panel:visible').count(), 1);
  const link = page.url();

  await page.keyboard.press('j');
  await until('the next', () => page.url().includes('panel=many'));
  await page.goBack();
  await until('the one before', () => page.url().includes('panel=bars'));

  const over = await page.locator('[data-id=bars] .u-over').boundingBox();
  await page.mouse.move(over.x + over.width * 0.3, over.y + 60);
  await page.mouse.down();
  await page.mouse.move(over.x + over.width * 0.6, over.y + 90, { steps: 4 });
  await page.mouse.up();
  await until('a zoom', () => page.url().includes('zoom='));
  await page.locator('[data-id=bars] .chart').focus();
  await page.keyboard.press('Escape');
  await until('no zoom', () => !page.url().includes('zoom='));
  assert.ok(page.url().includes('panel=bars'), 'the first Escape is for the zoom');
  await page.keyboard.press('Escape');
  await until('all panels', () => !page.url().includes('panel='));
  await until('the others again', async () => (await panel('stacked')).asked > 0);
  assert.equal(await page.evaluate(() => document.activeElement.closest('.panel').dataset.id), 'bars', 'the focus is where it was');

  await page.goto('about:blank');
  await page.goto(link);
  await untilStatus(page, 'live');
  assert.equal(await page.locator('.panel:visible').count(), 1);
  await button('Full screen: Requests a minute').click();
  await until('all panels', () => !page.url().includes('panel='));
  await page.goto('about:blank');
  await open('/d/web#panel=nobody');
  assert.ok((await page.locator('.panel:visible').count()) > 1, 'a panel that is not there fills nothing');
  sound();
});

test('keys are listed, work alone, and can be turned off', async () => {
  await show();
  const focused = () => page.evaluate(() => document.activeElement.closest('.panel')?.dataset.id);
  await page.keyboard.press('j');
  assert.equal(await focused(), 'stacked');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  assert.equal(await focused(), 'bars');
  await page.keyboard.press('p');
  await untilStatus(page, 'paused');
  await page.keyboard.press('p');
  await untilStatus(page, 'live');
  await page.keyboard.press('e');
  await page.locator('#board-title').fill('');
  await page.locator('#board-title').pressSequentially('fpjke?');
  assert.equal((await board()).title, 'fpjke?', 'who writes, writes');
  assert.ok(!page.url().includes('panel='));
  await page.locator('#edit').focus();
  await page.keyboard.press('?');
  await page.locator('#help').waitFor();
  const listed = await page.locator('#help dt').allTextContents();
  assert.deepEqual(listed, ['f', 'Escape', 'j', 'k', 'e', 'Ctrl z', 'p', 'z', '← →', '↑ ↓', 'Shift ← →', 'Space', 'Escape', '?']);
  await page.getByLabel('Single keys work').uncheck();
  await page.keyboard.press('Escape');
  await page.locator('#help').waitFor({ state: 'hidden' });
  assert.equal(await page.evaluate(() => document.activeElement.id), 'edit');
  await page.keyboard.press('p');
  await page.keyboard.press('f');
  await button('Keys').click();
  assert.ok(!/pause|panel=/.test(page.url()), 'turned off');
  await page.getByLabel('Single keys work').check();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.keyboard.press('p');
  await untilStatus(page, 'paused');
  sound();
});

test('all panels are drawn for a sheet, also those out of view', async () => {
  server.answer = hostsOf;
  keep({ form: 1, title: 'Many', panels: Array.from({ length: 20 }, (_, i) => (
    { id: `p${i}`, type: ['lines', 'table', 'stacked', 'number'][i % 4], title: `Panel ${i}`, place: { x: 0, y: 8 * i, w: 12, h: 8 }, queries: [`avg:load{n=${i}}{host=*}`] })) });
  await page.addInitScript(() => {
    window.print = () => {
      window.__printed = { panels: window.__downpour.panels(), width: document.querySelector('.panel').offsetWidth, theme: document.documentElement.dataset.theme, sheet: document.getElementById('sheet').textContent };
      dispatchEvent(new Event('afterprint'));
    };
  });
  await page.emulateMedia({ colorScheme: 'dark' });
  await open('/d/web');
  assert.ok((await panels()).filter((p) => p.asked > 0).length < 6);
  await page.keyboard.press('Control+p');
  await until('the sheet', () => page.evaluate(() => window.__printed !== undefined));
  const printed = await page.evaluate(() => window.__printed);
  assert.deepEqual(printed.panels.filter((p) => p.series.length !== 4).map((p) => p.id), []);
  assert.equal(printed.theme, 'light');
  assert.ok(printed.width <= 700, `${printed.width} px`);
  assert.match(printed.sheet, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d to \d{4}/);
  await until('those out of view to ask no more', async () => (await panels()).filter((p) => p.asked > 0).length < 6);
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), '');
  await page.emulateMedia({ media: 'print' });
  assert.deepEqual([await page.locator('#tools').isVisible(), await page.locator('#time').isVisible(), await page.locator('.full:visible').count()], [false, false, 0]);
  sound();
});

test('the browser’s own menu prints all panels, too', async () => {
  server.answer = hostsOf;
  keep({ form: 1, title: 'Many', panels: Array.from({ length: 12 }, (_, i) => (
    { id: `p${i}`, type: ['lines', 'table', 'stacked', 'number'][i % 4], title: `Panel ${i}`, place: { x: 0, y: 8 * i, w: 12, h: 8 }, queries: [`avg:load{n=${i}}{host=*}`] })) });
  await page.addInitScript(() => addEventListener('afterprint', () => { window.__printed = {
    panels: window.__downpour.panels().map((p) => p.series.length), drawn: window.__downpour.panels().map(({ id }) => window.__downpour.drawing(id).chart?.plot.series.length), theme: document.documentElement.dataset.theme,
    pale: document.querySelectorAll('[data-stale]').length, width: window.__downpour.drawing('p0').chart.plot.width,
  }; }));
  await open('/d/web');
  await until('those in view', async () => (await panel('p0')).series.length === 4);
  assert.ok((await panels()).filter((p) => p.series.length > 0).length < 5);
  await page.pdf(); // as the browser prints
  await until('the sheets', () => page.evaluate(() => window.__printed !== undefined));
  const printed = await page.evaluate(() => window.__printed);
  assert.deepEqual(printed.panels, Array(12).fill(4));
  assert.deepEqual(printed.drawn.filter((n) => n !== null && n !== undefined), Array(6).fill(5));
  assert.deepEqual([printed.theme, printed.pale], ['light', 0]);
  assert.ok(printed.width <= 700, `a chart is ${printed.width} px wide`);
  await until('those out of view to ask no more', async () => (await panels()).filter((p) => p.asked > 0).length < 5);
  sound();
});

// first says how far the chart's top and bottom are from the window's.
const first = (selector) => page.locator(selector).first().boundingBox().then(({ y, height }) => ({ top: y, bottom: y + height }));

test('on a phone the chart comes first, and what one chooses with folds', async () => {
  await opened({ viewport: { width: 390, height: 800 } });
  server.answer = hostsOf;
  await page.goto(`${server.url}/#start=15m-ago&m=avg:auto:cpu.user{host=*}`);
  await untilStatus(page, 'live');
  const chart = await first('#chart');
  assert.ok(chart.top < 200 && chart.bottom > chart.top + 240 && chart.bottom <= 800, JSON.stringify(chart));
  assert.equal(await page.locator('#query').isVisible(), false);
  assert.equal(await text('#fold'), 'Query: cpu.user');
  assert.equal(await page.locator('#view ~ #fold ~ #query').count(), 1, 'keys and readers come to the chart first, too');
  await page.locator('#fold').click();
  assert.ok(await page.locator('#metric').isVisible());
  assert.equal(await page.locator('#fold').getAttribute('aria-expanded'), 'true');
  await page.setViewportSize({ width: 1200, height: 800 });
  await until('the form in front', async () => (await page.locator('#query ~ #view').count()) === 1);
  await page.setViewportSize({ width: 390, height: 800 });
  server.metrics = [];
  await page.goto('about:blank');
  await page.goto(server.url);
  await untilStatus(page, 'nometrics');
  assert.ok(await page.locator('#query').isVisible(), 'where nothing is chosen, one is to choose');

  server.metrics = ['cpu.user'];
  keep({ ...web, panels: web.panels.filter((p) => p.id === 'cpu') });
  await open('/d/web');
  const panelBox = await first('[data-id=cpu]');
  assert.ok(panelBox.top < 200 && panelBox.bottom <= 800, JSON.stringify(panelBox));
  assert.equal(await page.locator('#edit').isVisible(), false);
  await page.locator('#fold').click();
  await page.locator('#edit').click();
  assert.ok(await page.locator('#save').isVisible());
  sound();
});

test('a panel is given its settings in the editor', async () => {
  server.answer = metrics;
  keep({ form: 1, title: 'Web', range: { from: '15m-ago', to: '' }, panels: [
    { id: 'p1', type: 'lines', title: 'CPU', place: { x: 0, y: 0, w: 6, h: 8 }, queries: ['avg:cpu.user{host=*}'], log: true, ofALaterRelease: 1 }] });
  await open('/d/web');
  await button('Edit').click();
  await button('Edit CPU').click();
  await page.locator('#panel-unit').selectOption('%');
  await page.locator('#panel-right-unit').selectOption('bytes');
  await page.locator('#panel-legend').selectOption('table');
  await page.locator('#panel-top').selectOption({ label: 'the lines with the greatest mean' });
  await page.locator('#panel-top-n').fill('0');
  await page.locator('#panel-thresholds').fill('80 amber, 95 pink');
  await button('Done').click();
  assert.match(await text('#settings-fault'), /“95 pink” is none/);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'panel-thresholds');
  await page.locator('#panel-thresholds').fill('80 amber, 95 red');
  await button('Done').click();
  assert.equal(await text('#settings-fault'), 'How many is a number from 1 to 200.');
  await page.locator('#panel-top-n').fill('2');
  await button('Done').click();
  await until('two lines', async () => (await panel('p1')).series.length === 2);
  const saved = { id: 'p1', type: 'lines', title: 'CPU', place: { x: 0, y: 0, w: 6, h: 8 }, queries: ['avg:cpu.user{host=*}'], log: true, ofALaterRelease: 1,
    unit: '%', rightUnit: 'bytes', legend: 'table', top: { n: 2, by: 'avg' }, thresholds: [{ value: 80, colour: 'amber' }, { value: 95, colour: 'red' }] };
  assert.deepEqual((await board()).panels[0], saved);
  await button('Edit CPU').click();
  await page.locator('#panel-type').selectOption('heatmap');
  assert.equal(await page.locator('#panel-thresholds').isVisible(), false);
  await button('Done').click();
  const { legend, top, thresholds, rightUnit, ...rest } = saved;
  assert.deepEqual((await board()).panels[0], { ...rest, type: 'heatmap' }, 'what its type does not have is gone, what no type has stays');
  await button('Save').click();
  await until('version 2', async () => kept().length === 2);
  sound();
});

test('the dialog shows its panel while it is edited; limits, decimals and a description of it', async () => {
  server.answer = metrics;
  keep({ form: 1, title: 'Web', range: { from: '15m-ago', to: '' }, panels: [
    { id: 'p1', type: 'lines', title: 'CPU', place: { x: 0, y: 0, w: 6, h: 8 }, queries: ['avg:cpu.user{host=*}'] }] });
  await open('/d/web');
  await button('Edit').click();
  await button('Edit CPU').click();
  const preview = page.locator('#editor-preview .panel');
  const ticks = () => page.evaluate(() => { const { plot } = window.__downpour.preview().drawing.chart; return { min: plot.scales.y.min, max: plot.scales.y.max, shown: plot.axes[1]._values }; });
  await until('its lines', async () => (await preview.locator('.legend button').count()) === 4);
  await page.locator('#panel-title').fill('Of hosts');
  await until('the title', async () => (await preview.locator('h2').textContent()) === 'Of hosts');
  await page.locator('#panel-min').fill('0');
  await page.locator('#panel-max').fill('200');
  await page.locator('#panel-decimals').fill('2');
  await until('the axis', async () => { const { min, max, shown } = await ticks(); return min === 0 && max === 200 && shown.every((t) => /^\d+\.\d\d$/.test(t)); });
  await page.locator('#panel-type').selectOption('number');
  await until('a number', async () => (await preview.getAttribute('data-type')) === 'number' && /^\d/.test(await preview.locator('.number').textContent()));
  await page.locator('#panel-type').selectOption('lines');
  await page.locator('#panel-max').fill('-1');
  await button('Done').click();
  assert.equal(await text('#settings-fault'), 'An axis goes from a number to a greater one, with 0 to 9 decimals.');
  await page.locator('#panel-max').fill('200');
  await page.locator('#panel-description').fill('What <b>users</b> wait for.');
  await button('Done').click();
  assert.equal(await preview.count(), 0);
  const one = (await board()).panels[0];
  assert.deepEqual([one.title, one.axis, one.description], ['Of hosts', { min: 0, max: 200, decimals: 2 }, 'What <b>users</b> wait for.']);
  const description = page.locator('[data-id=p1] .description');
  assert.equal(await description.isVisible(), false);
  await button('About Of hosts').click();
  assert.equal(await description.textContent(), 'What <b>users</b> wait for.');
  await button('Save').click();
  await until('version 2', async () => kept().length === 2);

  // Cancelled, nothing is changed; what the preview asked is asked no more.
  await button('Edit Of hosts').click();
  await until('the preview', async () => (await preview.locator('.legend button').count()) === 4);
  const asked = server.subs.filter((s) => s.query).length;
  await page.locator('#panel-title').fill('No');
  await page.locator('#editor-cancel').click();
  await until('fewer questions', () => server.subs.filter((s) => s.query).length < asked);
  assert.equal((await board()).panels[0].title, 'Of hosts');
  sound();
});

test('a heat map of one line says so', async () => {
  server.answer = metrics;
  keep({ form: 1, title: 'Web', range: { from: '15m-ago', to: '' }, panels: [['one', 'web01'], ['all', '*']].map(([id, host], i) => (
    { id, type: 'heatmap', title: id, place: { x: 6 * i, y: 0, w: 6, h: 8 }, queries: [`avg:cpu.user{host=${host}}`] })) });
  await open('/d/web');
  const remark = (id) => page.locator(`[data-id=${id}] .remark`).textContent();
  await until('the words', async () => (await remark('one')) === 'This is one line: a heat map counts the points of many. Split it by a tag, or draw lines.');
  await until('the other', async () => (await panel('all')).series.length === 4);
  assert.equal(await remark('all'), '');
  sound();
});

test('a type with the name of what every object has does nothing', async () => {
  keep({ form: 1, title: 'x', panels: ['constructor', '__proto__'].map((type, i) => ({ id: `p${i}`, type, title: type, place: { x: 0, y: 4 * i, w: 6, h: 4 }, queries: 7 })) });
  await open('/d/web', 'idle');
  await until('the words', async () => (await text('[data-id=p0] .text')) === 'Unknown panel: this release does not draw “constructor”. It is kept as it is.');
  sound();
});

test('axe finds nothing in any state, light and dark, wide and narrow', () => axeFindsNothing(panelBoards));
