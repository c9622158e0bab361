// What a dashboard's panels share, in a real Chromium: variables, links with them, comparisons with
// a time before, ranges that are moved, annotations; against a scripted server, and with a URL as its
// argument against a real gateway, too.
//
// Usage: node variables.mjs [URL]; it ends with status 1 if a test fails.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, beforeEach, test } from 'node:test';
import { launch, until, untilStatus, watch } from './chromium.mjs';
import { Scripted, now, result } from './scripted.mjs';

const real = process.argv[2]?.replace(/\/$/, ''); // its URL

let browser;
let server;
let page;
let faults;

before(async () => {
  server = await new Scripted().start();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.close();
});

const opened = async (url = server.url, options = {}) => {
  await page?.context().close();
  page = await (await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options })).newPage();
  faults = watch(page, new URL(url).host, (text) => /Failed to load resource/.test(text));
};

// hosts of the scripted server, in two data centres.
const hosts = [['web01', 'eu'], ['web02', 'eu'], ['db01', 'us'], ['db02', 'us']].map(([host, dc]) => ({ host, dc }));

// admitted are those that a query's filters let pass.
const admitted = ({ queries: [{ filters }] }) => hosts.filter((h) => filters.every(({ type, tagk, filter }) => {
  if (type === 'literal_or') return filter.split('|').includes(h[tagk]);
  return new RegExp(type === 'regexp' ? filter : `^${filter.replaceAll('*', '.*')}$`).test(h[tagk]);
}));

const dayOf = (t) => Math.floor(t / 86400) % 1000;

// answer is a line for each host, whose values are the day: another day, other values.
const answer = (query) => {
  const span = (t) => (typeof t === 'number' ? t : now() - 3600);
  const of = { from: span(query.start), to: query.end ?? now(), step: 60, value: dayOf };
  return admitted(query).map(({ host }) => result(query.queries[0].metric, { host }, of));
};

beforeEach(async () => {
  server.reset();
  Object.assign(server, { answer, series: hosts, names: ['db01', 'db02', 'elsewhere', 'web01', 'web02'] });
  await opened();
});

const dc = { name: 'dc', label: 'Data centre', metric: 'load', tagk: 'dc', all: true };
const host = { name: 'host', metric: 'load', tagk: 'host', filter: { dc: '$dc' } };
const panel = (id, rest) => ({ id, type: 'lines', title: id, place: { x: 0, y: 0, w: 6, h: 6 }, queries: ['avg:load{host=$host}'], ...rest });
const board = (variables, panels, rest = {}) => ({ form: 1, title: 'Shared', range: { from: '1h-ago', to: '' }, variables, panels, ...rest });

const open = async (document, hash = '', status = 'live') => {
  if (document) server.dashboards.set('web', [JSON.stringify(document)]);
  await page.goto(`${server.url}/d/web${hash}`);
  if (status) await untilStatus(page, status);
};
const panels = () => page.evaluate(() => window.__downpour.panels());
const series = async (id) => (await panels()).find((p) => p.id === id)?.series.join() ?? '';
const chosen = () => page.evaluate(() => JSON.stringify(window.__downpour.chosen()));
const text = (selector) => page.locator(selector).textContent();
const control = (name) => page.locator(`[data-name=${name}] > button`);
const options = (name) => page.locator(`[data-name=${name}] [role=option]`);
const untilOptions = (name, list) => until(`options ${list}`, async () => (await options(name).allTextContents()).join() === list);
const hash = () => decodeURIComponent(new URL(page.url()).hash);
const subscribed = () => server.subs.map((s) => s.query.queries[0].filters[0]?.filter ?? '').sort().join(';');
const sound = () => assert.deepEqual(faults, []);

test('values are listed, one variable filters another, and a choice changes titles, filters and texts', async () => {
  await open(board([dc, host], [
    panel('cpu', { title: 'Load of $host in ${dc}' }), { ...panel('note', { type: 'text', text: 'This is $host. <b>$cost</b>', title: '' }), place: { x: 6, y: 0, w: 6, h: 3 } },
  ], { title: 'Of $host' }));
  await until('the first host', async () => (await series('cpu')) === 'host=db01');
  assert.deepEqual([await text('[data-id=cpu] h2'), await text('[data-id=note] .text'), await text('#title')], ['Load of db01 in All', 'This is db01. <b>$cost</b>', 'Of db01']);
  assert.equal(await control('dc').textContent(), 'Data centre All');

  await control('dc').click();
  await untilOptions('dc', 'All,eu,us');
  await options('dc').nth(1).click();
  await until('a host of eu', async () => (await series('cpu')) === 'host=web01');
  assert.equal(hash(), '#var-dc=eu');
  await control('host').click();
  await untilOptions('host', 'web01,web02');
  await options('host').nth(1).click();
  await until('the other', async () => (await series('cpu')) === 'host=web02');
  assert.equal(await page.evaluate(() => document.activeElement.closest('.variable')?.dataset.name), 'host', 'the focus is back');
  assert.equal(hash(), '#var-dc=eu&var-host=web02');
  await page.reload();
  await until('the same after a reload', async () => (await series('cpu')) === 'host=web02');
  await page.goBack();
  await until('one step back', async () => (await series('cpu')) === 'host=web01');
  await page.goBack();
  await until('two steps back', async () => (await series('cpu')) === 'host=db01');
  await page.goForward();
  await until('and forward', async () => (await series('cpu')) === 'host=web01');
  sound();
});

test('Enter takes the first value that is found, and a second one applies what is chosen', async () => {
  const one = { ...host, filter: undefined };
  await open(board([one, { ...one, name: 'some', multi: true }], [panel('cpu')]));
  await until('the first', async () => (await chosen()) === '{"host":["db01"],"some":["db01"]}');
  await control('host').click();
  await page.keyboard.type('web');
  await untilOptions('host', 'web01,web02');
  await page.keyboard.press('Enter');
  await until('it', async () => (await chosen()) === '{"host":["web01"],"some":["db01"]}');
  await control('some').click();
  await page.keyboard.type('02');
  await untilOptions('some', 'db02,web02');
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('.values').count(), 1, 'there may be others to choose');
  await page.keyboard.press('Enter');
  await until('both', async () => (await chosen()) === '{"host":["web01"],"some":["db01","db02"]}');
  sound();
});

test('by keys alone: search, several values, Apply, and Escape leaves all as it was', async () => {
  await open(board([{ ...host, filter: undefined, multi: true, all: true }], [panel('cpu')]));
  await until('all', async () => (await series('cpu')) === 'host=web01,host=web02,host=db01,host=db02');
  await control('host').focus();
  await page.keyboard.press('ArrowDown');
  await untilOptions('host', 'All,db01,db02,web01,web02');
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('role')), 'combobox');
  await page.keyboard.type('web');
  await untilOptions('host', 'web01,web02');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  assert.deepEqual(await options('host').evaluateAll((list) => list.map((o) => o.getAttribute('aria-selected'))), ['true', 'true']);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.values').count(), 0);
  assert.equal(await chosen(), '{"host":["*"]}', 'nothing has changed');

  await page.keyboard.press('ArrowDown');
  await untilOptions('host', 'All,db01,db02,web01,web02');
  for (let i = 0; i < 3; i++) {
    await page.keyboard.press('ArrowDown');
    if (i > 0) await page.keyboard.press('Enter');
  }
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await until('two hosts', async () => (await series('cpu')) === 'host=db01,host=db02');
  assert.equal(hash(), '#var-host=db01&var-host=db02');
  assert.equal(subscribed(), 'db01|db02');
  sound();
});

test('a link has the values and the range; a value cannot become a query', async () => {
  await open(board([{ ...host, multi: true, filter: undefined }], [panel('cpu', { title: '$host' })]), `#${new URLSearchParams([['var-host', 'web01'], ['var-host', 'x)|(.*'], ['var-host', '<img src=x onerror=alert(1)>'], ['var-nobody', 'y']])}`);
  await until('the one that there is', async () => (await series('cpu')) === 'host=web01');
  assert.deepEqual(server.subs.at(-1).query.queries, [{ aggregator: 'avg', metric: 'load', filters: [
    { type: 'regexp', tagk: 'host', filter: '^(?:web01|x\\)\\|\\(\\.\\*|\\<img src\\=x onerror\\=alert\\(1\\)\\>)$', groupBy: true }] }]);
  assert.equal(await text('[data-id=cpu] h2'), 'web01, x)|(.*, <img src=x onerror=alert(1)>');
  assert.equal(await page.locator('#grid img').count(), 0);
  assert.equal(await text('#variables-said'), 'The address has a variable “nobody”, which this dashboard has not.');

  await open(board([{ ...host, filter: undefined }], [panel('cpu')]), '');
  await page.goto('about:blank');
  await open(null);
  await until('the first', async () => (await series('cpu')) === 'host=db01');
  await page.getByRole('button', { name: 'Copy link' }).click();
  await until('the link', async () => hash() === '#start=1h-ago&var-host=db01');
  sound();
});

test('a panel is there for each value, and once while it is edited', async () => {
  const document = board([{ ...host, filter: undefined, multi: true, all: true }], [
    panel('cpu', { title: 'Load of $host', repeat: 'host', place: { x: 0, y: 0, w: 6, h: 5 } }), { ...panel('note', { type: 'text', text: 'below', title: '' }), place: { x: 0, y: 5, w: 12, h: 2 } }]);
  await open(document);
  await until('four panels', async () => (await Promise.all(['cpu', 'cpu/db02', 'cpu/web01', 'cpu/web02'].map(series))).join() === 'host=db01,host=db02,host=web01,host=web02');
  const boxes = await page.evaluate(() => [...document.querySelectorAll('.panel')].map((p) => [p.querySelector('h2').textContent, Math.round(p.getBoundingClientRect().top), Math.round(p.getBoundingClientRect().left)]));
  assert.deepEqual(boxes.map(([title]) => title), ['Load of db01', 'Load of db02', 'Load of web01', 'Load of web02', '']);
  assert.ok(boxes[1][1] === boxes[0][1] && boxes[1][2] > boxes[0][2] && boxes[2][1] > boxes[0][1] && boxes[4][1] > boxes[3][1], JSON.stringify(boxes));
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await until('one panel', async () => (await panels()).map((p) => p.id).join() === 'cpu,note');
  assert.equal(await text('[data-id=cpu] h2'), 'Load of db01');
  await page.getByRole('button', { name: 'Edit Load of db01' }).click();
  assert.equal(await page.locator('#panel-title').inputValue(), 'Load of $host');
  assert.equal(await page.locator('#panel-repeat').inputValue(), 'host');
  await page.locator('#panel-repeat').selectOption('');
  await page.locator('#panel-shift').selectOption('1w');
  await page.getByRole('button', { name: 'Done', exact: true }).click();
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await until('version 2', async () => server.dashboards.get('web').length === 2);
  const { repeat, ...rest } = document.panels[0];
  assert.deepEqual(JSON.parse(server.dashboards.get('web')[1]).panels[0], { ...rest, shift: '1w' });
  sound();
});

test('more than fifty values are not repeated, and the panel says so', async () => {
  server.series = Array.from({ length: 80 }, (_, i) => ({ host: `h${i}` }));
  await open(board([{ ...host, filter: undefined, all: true }], [panel('cpu', { repeat: 'host', place: { x: 0, y: 0, w: 3, h: 2 } })]), '', null);
  await until('fifty panels', async () => (await panels()).length === 50);
  await page.locator('[data-id="cpu/h49"]').scrollIntoViewIfNeeded();
  // The scripted server has no such host: the panel without data says that first.
  server.answer = (query) => [result('load', { host: query.queries[0].filters[0].filter }, { from: now() - 600 })];
  await page.evaluate(() => dispatchEvent(new Event('online')));
  server.drop();
  await until('the words', async () => (await text('[data-id="cpu/h49"] .said')) === 'This panel is repeated for the first 50 of 80 values: choose the others by themselves.');
});

test('a tag of a million values: bounded requests, and the page stays quick', async () => {
  const million = Array.from({ length: 1_000_000 }, (_, i) => ({ host: `node-${String(i).padStart(6, '0')}`, dc: i % 2 ? 'us' : 'eu' }));
  Object.assign(server, { series: million, names: million.map((s) => s.host) });
  await open(board([dc, host], [panel('cpu', { queries: ['avg:load{dc=$dc}'] })]), '#var-dc=eu');
  await until('the first', async () => (await chosen()) === '{"dc":["eu"],"host":["node-000000"]}');
  await control('host').click();
  await until('a list', async () => (await options('host').count()) === 200);
  assert.equal(await text('.values p'), '5,000 values are known, not all: type a part of one to find others.');
  const started = await page.evaluate(() => { window.__long = 0; new PerformanceObserver((l) => l.getEntries().forEach((e) => { window.__long = Math.max(window.__long, e.duration); })).observe({ entryTypes: ['longtask'] }); return performance.now(); });
  await page.keyboard.type('node-99999');
  await untilOptions('host', 'node-999990,node-999992,node-999994,node-999996,node-999998,node-99999');
  console.log(`# the longest task of the page while typing: ${await page.evaluate(() => Math.round(window.__long))} ms of ${Math.round(await page.evaluate(() => performance.now()) - started)} ms`);
  await options('host').nth(4).click();
  await until('the choice', async () => (await chosen()) === '{"dc":["eu"],"host":["node-999998"]}');
  for (const { path, query, body } of server.asked) {
    if (path.startsWith('/api/search/')) assert.ok(body.limit <= 5000 && body.tags.length <= 201, JSON.stringify(body).slice(0, 200));
    if (path === '/api/suggest') assert.ok(Number(new URLSearchParams(query).get('max')) <= 200, query);
  }
  sound();
});

test('variables are made, changed and saved on the page; what is wrong is said in the dialog', async () => {
  await open(board(undefined, [panel('cpu', { queries: ['avg:load{host=web01}'] })]));
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.getByRole('button', { name: 'Variables', exact: true }).click();
  const field = (row, name) => page.locator('.variable-row').nth(row).getByLabel(name, { exact: true });
  await field(0, 'Name').fill('host');
  await field(0, 'Values of metric').fill('load');
  await field(0, 'Tag').fill('host');
  await field(0, 'Filter').fill('dc=$dc');
  await field(0, 'several').check();
  await page.getByRole('button', { name: 'Done', exact: true }).last().click();
  assert.equal(await text('#variables-fault'), 'Variable “host” is filtered by “dc”, which is no variable.');
  await page.getByRole('button', { name: 'Add a variable' }).click();
  await field(1, 'Name').fill('dc');
  await field(1, 'Values of metric').fill('load');
  await field(1, 'Tag').fill('dc');
  await field(1, 'Filter').fill('host=$host');
  await page.getByRole('button', { name: 'Done', exact: true }).last().click();
  assert.equal(await text('#variables-fault'), 'The filters of variables go in a circle: “host”, “dc”.');
  await field(1, 'Filter').fill('');
  await field(1, 'Default').fill('us');
  await page.getByRole('button', { name: 'Done', exact: true }).last().click();
  await until('the values', async () => (await chosen()) === '{"dc":["us"],"host":["db01"]}');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await until('version 2', async () => server.dashboards.get('web').length === 2);
  assert.deepEqual(JSON.parse(server.dashboards.get('web')[1]).variables, [
    { name: 'host', metric: 'load', tagk: 'host', filter: { dc: '$dc' }, multi: true }, { name: 'dc', metric: 'load', tagk: 'dc', default: 'us' }]);
  sound();
});

test('faults of variables in words', async () => {
  server.api = (path) => (path === '/api/search/values' ? { status: 404, body: { error: { code: 404, message: 'Unable to resolve one or more UIDs' } } } : null);
  await open(board([host, { ...dc, default: 'eu' }], [panel('cpu'), panel('other', { place: { x: 6, y: 0, w: 6, h: 6 }, queries: ['avg:load{host=$nobody}'] })]), '', null);
  await until('the reason', async () => (await text('#variables-said')) === 'host: There is no metric load, or no tag host, or no such value of a filter yet.');
  assert.equal(await text('[data-id=other] .said'), 'Query 1: there is no variable “nobody”.');
  assert.equal(server.subs.length, 0, 'nothing is asked');
  server.api = () => null;
  await until('it goes on by itself', async () => (await series('cpu')) === 'host=web01');

  for (const [variables, said] of [
    [[host], 'Variable “host” is filtered by “dc”, which is no variable.'],
    [[dc, dc], 'Variable 2: its name is that of another, “dc”.'],
    [[{ ...dc, filter: { rack: '$host' } }, host], 'The filters of variables go in a circle: “dc”, “host”.'],
  ]) {
    await page.goto('about:blank');
    await open(board(variables, []), '', 'error');
    assert.equal(await text('#status'), said);
  }
});

test('a variable in a metric stands for the one value that is chosen', async () => {
  await open(board([{ ...dc, multi: true }], [panel('cpu', { title: '', queries: ['avg:load.$dc{host=*}'] })]), '', '');
  await until('the reason', async () => (await text('[data-id=cpu] .said')) === 'Query 1: the metric “load.$dc” takes one value of “dc”: choose one, or repeat the panel for each.');
  assert.deepEqual(server.subs, [], 'nothing is asked');
  await page.goto(`${server.url}/d/web#var-dc=eu`);
  await until('its metric', async () => server.subs.map((s) => s.query.queries[0].metric).join() === 'load.eu');
  await until('lines', async () => (await series('cpu')).startsWith('host=web01'));
  assert.equal(await text('[data-id=cpu] h2'), 'load.eu');
  await page.goto(`${server.url}/d/web#var-dc=us`);
  await until('the other metric', async () => server.subs.map((s) => s.query.queries[0].metric).join() === 'load.us');
  sound();
});

test('on a phone the variables fold with the rest', async () => {
  await opened(server.url, { viewport: { width: 390, height: 800 } });
  await open(board([dc, host], [panel('cpu')]));
  await until('a line', async () => (await series('cpu')) === 'host=db01');
  assert.equal(await control('host').isVisible(), false);
  assert.ok((await page.locator('[data-id=cpu]').boundingBox()).y < 200, 'the chart comes first');
  await page.locator('#fold').click();
  await control('host').click();
  await untilOptions('host', 'db01,db02,web01,web02');
  await options('host').nth(2).click();
  await until('the other line', async () => (await series('cpu')) === 'host=web01');
  await page.locator('#fold').click();
  assert.equal(await control('host').isVisible(), false);
  sound();
});

const marks = () => page.evaluate(() => [...document.querySelectorAll('[data-id=cpu] .legend button')].map((b) => `${b.querySelector('span').textContent} ${b.querySelector('b').textContent} ${b.querySelector('line').getAttribute('stroke-dasharray')}`));

test('a week ago is drawn at the present time, dashed, and goes on; the whole board can be compared', async () => {
  await open(board([{ ...host, filter: undefined }], [panel('cpu', { shift: '1w' }), panel('two', { place: { x: 6, y: 0, w: 6, h: 6 } })]));
  await until('both', async () => (await series('cpu')) === 'host=db01,host=db01 (1w ago)');
  assert.equal(await series('two'), 'host=db01');
  await until('their values', async () => (await marks()).join() === `host=db01 ${dayOf(now())} ,host=db01 (1w ago) ${dayOf(now() - 604800)} 3 4`);
  const shifted = server.subs.filter((s) => s.query.end !== undefined).map((s) => s.query);
  assert.equal(shifted.length, 1);
  assert.ok(Math.abs(shifted[0].start - (now() - 3600 - 604800)) < 60 && Math.abs(shifted[0].end - (now() + 900 - 604800)) < 60, JSON.stringify(shifted[0]));

  await page.locator('#compare').selectOption('1d');
  await until('the other, too', async () => (await series('two')) === 'host=db01,host=db01 (1d ago)');
  assert.equal(hash(), '#shift=1d');
  assert.equal(await series('cpu'), 'host=db01,host=db01 (1w ago)', 'a panel of its own shift keeps it');
  await page.reload();
  await until('after a reload', async () => (await series('two')) === 'host=db01,host=db01 (1d ago)');
  await page.goBack();
  await until('and back', async () => (await series('two')) === 'host=db01');
  sound();
});

test('the range is moved by a drag with Shift, by keys and by buttons', async () => {
  await open(board([], [panel('cpu', { queries: ['avg:load{host=web01}'] })]));
  await until('a line', async () => (await series('cpu')) === 'host=web01');
  const box = await page.locator('[data-id=cpu] .u-over').boundingBox();
  const drag = async (key, from, to) => {
    await page.keyboard.down(key);
    await page.mouse.move(box.x + box.width * from, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * to, box.y + 40, { steps: 5 });
    await page.mouse.up();
    await page.keyboard.up(key);
  };
  const range = () => ['start', 'end'].map((n) => Number(new URLSearchParams(hash().slice(1)).get(n)));
  await drag('Shift', 0.25, 0.75);
  await until('half an hour earlier', async () => hash().includes('end='));
  const [start, end] = range();
  assert.ok(Math.abs(end - start - 3600) <= 1 && Math.abs(end - (now() - 1800)) < 150, hash());
  assert.ok(!hash().includes('zoom'));
  await page.locator('[data-id=cpu] .chart').focus();
  await page.keyboard.press('Shift+ArrowLeft');
  await until('a quarter of an hour more', async () => Math.abs(range()[1] - (end - 900)) <= 2);
  await page.getByRole('button', { name: 'Later', exact: true }).click();
  await until('half an hour later', async () => Math.abs(range()[1] - (end + 900)) <= 3);
  await page.goBack();
  await until('undone', async () => Math.abs(range()[1] - (end - 900)) <= 2);
  sound();
});

test('a drag with Alt makes an annotation, which all charts show; a reader is not offered it', async () => {
  server.annotations = [{ startTime: now() - 600, description: '<b>deployed</b>' }];
  const document = board([], [panel('cpu', { queries: ['avg:load{host=web01}'] }), panel('two', { place: { x: 6, y: 0, w: 6, h: 6 }, queries: ['avg:load{host=db01}'] })]);
  await open(document);
  await until('the annotation', async () => (await text('#notes-list')).includes('<b>deployed</b>'));
  await until('a line', async () => (await series('cpu')) === 'host=web01');
  const box = await page.locator('[data-id=cpu] .u-over').boundingBox();
  const drag = async (key) => {
    await page.keyboard.down(key);
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.75, box.y + 40, { steps: 5 });
    await page.mouse.up();
    await page.keyboard.up(key);
  };
  await drag('Alt');
  await page.locator('#note').waitFor();
  assert.ok(!hash().includes('zoom'), 'it is no zoom');
  await page.getByRole('button', { name: 'Annotate', exact: true }).last().click();
  assert.equal(await text('#note-fault'), 'It has no text.');
  await page.locator('#note-text').fill('load test');
  await page.getByRole('button', { name: 'Annotate', exact: true }).last().click();
  await until('it is saved', async () => server.annotations.length === 2);
  const [, made] = server.annotations;
  assert.ok(made.description === 'load test' && Math.abs(made.startTime - (now() - 1800)) < 150 && Math.abs(made.endTime - made.startTime - 900) < 60, JSON.stringify(made));
  await until('both in the page', async () => (await page.evaluate(() => window.__downpour.notes().length)) === 2);
  const noted = await page.evaluate(() => getComputedStyle(document.getElementById('notes-list')).display);
  assert.notEqual(noted, 'none');

  // One at the same second is not changed.
  server.annotations[1].startTime = 1_700_000_000;
  await page.getByRole('button', { name: 'Annotate', exact: true }).first().click();
  await page.locator('#note-from').fill('2023-11-14 22:13:20');
  const zone = await page.evaluate(() => new Date(1_700_000_000_000).getTimezoneOffset());
  assert.equal(zone, 0, 'the tests run in UTC');
  await page.locator('#note-text').fill('another');
  await page.getByRole('button', { name: 'Annotate', exact: true }).last().click();
  await until('the reason', async () => (await text('#note-fault')) === 'At this second there is an annotation already: “load test”. Choose another time.');
  assert.equal(server.annotations.length, 2);
  await page.keyboard.press('Escape');

  server.mayWrite = false;
  await page.reload();
  await until('the annotations', async () => (await page.evaluate(() => window.__downpour.notes().length)) === 1);
  assert.ok(await page.locator('#annotate').isHidden());
  await until('a line', async () => (await series('cpu')) === 'host=web01');
  await drag('Alt');
  await until('a zoom instead', async () => hash().includes('zoom='));
  sound();
});

test('a panel that wants them shows the annotations of its own series', async () => {
  const at = now() - 1200;
  server.api = (path, params, body) => (path !== '/api/query' || !body?.globalAnnotations ? null : { body: [{
    metric: 'load', tags: { host: 'web01' }, aggregateTags: [], dps: [[at, 1]], globalAnnotations: [{ tsuid: '', startTime: at, description: 'of all' }],
    annotations: [{ tsuid: '000001000001000001', startTime: at, endTime: at + 300, description: '<b>disk replaced</b>' }],
  }] });
  const of = (host) => ({ queries: [`avg:load{host=${host}}`] });
  await open(board([], [panel('cpu', { annotations: true, ...of('web01') }), panel('two', { place: { x: 6, y: 0, w: 6, h: 6 }, ...of('db01') })]));
  await until('both lines', async () => (await series('cpu')) === 'host=web01' && (await series('two')) === 'host=db01');
  const notesOf = (id) => page.evaluate((i) => window.__downpour.drawing(i).picture.notes.map((n) => [n.text, n.end - n.time]), id);
  await until('the annotation', async () => JSON.stringify(await notesOf('cpu')) === '[["<b>disk replaced</b>",300]]');
  assert.deepEqual(await notesOf('two'), [], 'the other panel has none');
  await until('the list', async () => (await text('#notes-list')).includes('<b>disk replaced</b>'));
  const asked = server.asked.filter((a) => a.body?.globalAnnotations).map((a) => a.body.queries[0].filters[0].filter);
  assert.deepEqual(asked, ['web01'], 'and asks for none');
  await page.locator('[data-id=cpu]').evaluate((e) => e.scrollIntoView());
  const box = await page.locator('[data-id=cpu] .u-over').boundingBox();
  await page.mouse.move(box.x + box.width * (1 - 1200 / 3600), box.y + 40);
  await until('it beside the hand', async () => (await text('[data-id=cpu] .tooltip')).includes('disk replaced'));
  sound();
});

const axe = readFileSync(new URL('./node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

test('axe finds nothing in the controls and dialogs, light and dark, wide and narrow', async () => {
  await opened(server.url, { bypassCSP: true });
  server.annotations = [{ startTime: now() - 600, description: 'deployed' }];
  await open(board([dc, { ...host, multi: true, all: true }], [panel('cpu', { shift: '1w', repeat: 'host', title: '$host' })]));
  const states = {
    plain: async () => {},
    list: async () => { await control('host').click(); await untilOptions('host', 'All,db01,db02,web01,web02'); await page.keyboard.press('ArrowDown'); },
    variables: async () => { await page.keyboard.press('Escape'); await page.getByRole('button', { name: 'Edit', exact: true }).click(); await page.getByRole('button', { name: 'Variables', exact: true }).click(); },
    note: async () => { await page.keyboard.press('Escape'); await page.getByRole('button', { name: 'Annotate', exact: true }).first().click(); },
  };
  for (const [name, enter] of Object.entries(states)) {
    await enter();
    for (const [colorScheme, width] of [['light', 1280], ['dark', 390]]) {
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme });
      if (width < 400) await page.evaluate(() => { const fold = document.getElementById('fold'); if (fold.getAttribute('aria-expanded') === 'false') fold.click(); });
      await page.evaluate(axe);
      const found = await page.evaluate((t) => window.axe.run(document, { runOnly: { type: 'tag', values: t }, resultTypes: ['violations'] }), tags);
      assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(' ')).join('; ')}`), [], `${name}, ${colorScheme}`);
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}-${colorScheme}.png` });
      await until(`${name} to fit into a window of ${width}`, () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    }
    await page.setViewportSize({ width: 1280, height: 800 });
  }
});

// The same with a gateway behind it: its own series are the values, and it keeps annotations.
if (real) {
  test('a real gateway has the values, filtered, and keeps an annotation', async () => {
    const post = async (path, body) => { const r = await fetch(real + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }); assert.ok(r.ok, `${path}: ${r.status}`); };
    const put = (value) => post('/api/put?sync', hosts.map((h) => ({ metric: 'shared.load', timestamp: now(), value, tags: h })));
    await put(1);
    await post('/api/put?sync', hosts.map((h) => ({ metric: 'shared.load', timestamp: now() - 604800 - 300, value: 7, tags: h })));
    const document = board([{ ...dc, metric: 'shared.load' }, { ...host, metric: 'shared.load' }], [panel('cpu', { queries: ['avg:shared.load{host=$host}{dc=$dc}'], shift: '1w' })]);
    const saved = await fetch(`${real}/api/dashboards/shared`, { method: 'PUT', headers: { 'If-None-Match': '*' }, body: JSON.stringify(document) });
    assert.equal(saved.status, 200, await saved.text());
    await opened(real);
    await page.goto(`${real}/d/shared#var-dc=us`);
    await until('the first of us, and a week ago', async () => (await series('cpu')) === 'host=db01,host=db01 (1w ago)');
    await control('host').click();
    await untilOptions('host', 'db01,db02');
    await options('host').nth(1).click();
    await until('the other', async () => (await series('cpu')).startsWith('host=db02'));
    await page.getByRole('button', { name: 'Annotate', exact: true }).click();
    await page.locator('#note-text').fill('seen');
    await page.getByRole('button', { name: 'Annotate', exact: true }).last().click();
    await until('the annotation', async () => (await page.evaluate(() => window.__downpour.notes().map((n) => n.text).join())) === 'seen');
    assert.ok((await (await fetch(`${real}/api/annotations?start_time=${now() - 3600}`)).json()).some((a) => a.description === 'seen'));
    sound();
  });
}
