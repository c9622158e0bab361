// The page in a real Chromium against a scripted server: what it does with late
// points, stalls, dropped sockets, refused origins and removed groups, what it
// says in each state, and what each control does.
//
// Usage: node states.mjs; it ends with status 1 if a test fails.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, beforeEach, test } from 'node:test';
import { launch, record, statusOf, until, untilSaid, untilStatus, watch } from './chromium.mjs';
import { changes, hostsOf, play, scenes } from './scenes.mjs';
import { Scripted, now, result } from './scripted.mjs';

let browser;
let server;
let page;
let faults;

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
  await page?.context().close();
  server.reset();
  page = await (await browser.newContext({ viewport: { width: 1200, height: 800 }, acceptDownloads: true })).newPage();
  faults = watch(page, new URL(server.url).host, provoked);
  await record(page);
});

const open = async (hash, status = 'live') => {
  await page.goto(`${server.url}/#${hash}`);
  if (status) await untilStatus(page, status);
};
const columns = () => page.evaluate(() => window.__downpour.columns().map((c) => c.map((v) => (v === undefined ? 'none' : v))));
const series = () => page.evaluate(() => window.__downpour.series());
const frame = () => page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(() => resolve())); }));
const text = (selector) => page.locator(selector).textContent();
const lastAsked = () => server.received.filter((m) => m.type === 'subscribe').at(-1);
const hash = () => new URL(page.url()).hash;
const untilAddress = (pattern) => until(`the address to have ${pattern}`, () => pattern.test(decodeURIComponent(hash())));

// ramp is one line of ten points, 10 s apart, the last at end.
const end = Math.floor(now() / 10) * 10;
const ramp = (tags = { host: 'a' }) => [result('m', tags, { from: end - 90, to: end, value: (t) => (t - end) / 10 + 10 })];
const scripted = (answer) => { server.answer = answer; };
const sound = () => assert.deepEqual(faults, []);

test('late points, corrections and deletions arrive at their places', async () => {
  scripted(() => ramp());
  await open('m=avg:m{host=*}');
  const [sub] = server.subs;
  server.delta(sub, { upserts: [{ group: 0, dps: [[end - 75, 70], [end - 50, 55], [end + 10, 11]] }], deletes: [{ group: 0, ts: [end - 90] }] });
  await until('the late point', async () => (await columns())[0].includes(end - 75));
  const [times, values] = await columns();
  assert.deepEqual(times, [end - 80, end - 75, end - 70, end - 60, end - 50, end - 40, end - 30, end - 20, end - 10, end, end + 10]);
  assert.deepEqual(values, [2, 70, 3, 4, 55, 6, 7, 8, 9, 10, 11]);
  sound();
});

test('groups come and go; the others keep their look', async () => {
  scripted(() => [...ramp({ host: 'a' }), ...ramp({ host: 'b' }), ...ramp({ host: 'c' })]);
  await open('m=avg:m{host=*}');
  const colour = () => page.locator('#legend button', { hasText: 'host=c' }).locator('line').getAttribute('stroke');
  const was = await colour();
  const [sub] = server.subs;
  server.delta(sub, { removed: [1] });
  await until('two lines', async () => (await series()).length === 2);
  assert.equal(await colour(), was);
  server.delta(sub, { groups: [{ group: 3, queryIndex: 0, metric: 'm', tags: { host: 'd' }, aggregateTags: [] }], upserts: [{ group: 3, dps: [[end, 5]] }] });
  await until('the new line', async () => (await series()).join() === 'host=a,host=c,host=d');
  sound();
});

test('a gap is a gap, and a lone point in it is seen', async () => {
  scripted(() => [result('m', {}, { from: end - 600, to: end, value: (t) => (t > end - 400 && t < end - 100 && t !== end - 250 ? undefined : 5) })]);
  await open('m=avg:m');
  const [times, values] = await columns();
  assert.ok(values.filter((v) => v === null).length === 2, 'one break before the lone point and one after it');
  assert.equal(values[times.indexOf(end - 250)], 5);
  sound();
});

test('a dropped socket is said, and resumed where it was', async () => {
  scripted(() => ramp());
  await open('m=avg:m{host=*}');
  server.delta(server.subs[0], { upserts: [{ group: 0, dps: [[end + 10, 11]] }] });
  await until('the delta', async () => (await columns())[0].length === 11);
  server.drop(1012);
  await untilSaid(page, /Disconnected: the server restarts\. Trying again in \d+ s\./);
  assert.equal((await columns())[0].length, 11, 'what was known stays');
  await until('the second subscription', () => server.subs.length === 2);
  await untilStatus(page, 'live');
  assert.deepEqual(lastAsked().resume, { epoch: 'e1', seq: 2 });
  server.delta(server.subs.at(-1), { upserts: [{ group: 0, dps: [[end + 20, 12]] }] });
  await until('the next point', async () => (await columns())[0].length === 12);
  server.epoch = 'e2'; // restarted: it sends everything
  server.drop(0);
  await until('a new snapshot', async () => (await columns())[0].length === 10 && (await statusOf(page)) === 'live');
  sound();
});

test('a stalled server keeps the old answer pale, then the new one comes', async () => {
  scripted(() => ramp());
  await open('m=avg:m{host=*}');
  server.mute = true;
  await page.selectOption('#range', '5m-ago');
  await untilStatus(page, 'connecting');
  assert.equal((await columns())[0].length, 10);
  assert.notEqual(await page.locator('#chart').getAttribute('data-stale'), null);
  server.mute = false;
  await page.selectOption('#range', '30m-ago');
  await untilStatus(page, 'live');
  assert.equal(await page.locator('#chart').getAttribute('data-stale'), null);
  sound();
});

test('a wrong origin is named', async () => {
  server.refuse = 403;
  server.api = (path) => (path === '/api/query' ? { status: 403, body: { error: { code: 403, message: 'CORS domain not allowed', details: 'The domain [http://other] is not permitted access' } } } : null);
  await open('m=avg:m', 'disconnected');
  await until('the reason', async () => (await text('#status')).includes('the server refuses this page: CORS domain not allowed. The domain [http://other] is not permitted access'));
});

test('where sockets are blocked it asks by HTTP, and goes back to a socket', async () => {
  server.refuse = 400;
  let n = 0;
  scripted(() => { n++; return ramp(); });
  await open('m=avg:m{host=*}', 'polling');
  assert.match(await text('#status'), /^Live, asking every 5 s/);
  assert.equal((await columns())[0].length, 10);
  assert.ok(n >= 1);
  server.refuse = 0;
  await untilStatus(page, 'live');
  assert.equal(lastAsked().resume, undefined);
  sound();
});

test('an unknown name is asked for until it comes', async () => {
  scripted(() => ({ error: { code: 400, message: "No such name for 'tagv': 'web9'", temporary: true } }));
  await open('m=avg:m{host=web9}', 'unknown');
  assert.equal(await text('#status'), 'No tag value is called “web9” yet. Asking again every second.');
  scripted(() => ramp());
  server.snapshot(server.subs[0]);
  await untilStatus(page, 'live');
  sound();
});

test('an error of one query leaves the other alone', async () => {
  scripted((q) => (q.queries[0].metric === 'm' ? ramp() : { error: { code: 400, message: 'Invalid interval: 0m', temporary: false } }));
  await open('m=avg:m{host=*}&m=avg:bad', 'error');
  assert.equal(await text('#status'), 'B: The server says: Invalid interval: 0m.');
  assert.equal(await text('#said-2'), 'The server says: Invalid interval: 0m.');
  assert.deepEqual(await series(), ['host=a']);
  server.delta(server.subs[0], { upserts: [{ group: 0, dps: [[end + 10, 1]] }] });
  await until('A goes on', async () => (await columns())[0].length === 11);
  await page.locator('#remove-2').click();
  await untilStatus(page, 'live');
  assert.equal(server.received.filter((m) => m.type === 'subscribe').length, 2, 'A was not asked again');
  sound();
});

test('several queries: added, completed, on a second axis, in the address', async () => {
  scripted((q) => [result(q.queries[0].metric, {}, { from: end - 90, to: end, value: () => (q.queries[0].metric === 'disk.used' ? 4e10 : 7) })]);
  await open('m=avg:auto:cpu.user');
  await page.getByRole('button', { name: 'Add a query' }).click();
  await page.keyboard.type('dis');
  await page.getByRole('option', { name: 'disk.used' }).click();
  await until('two lines', async () => (await series()).join() === 'cpu.user,disk.used');
  await page.locator('#right-2').check();
  await until('the address', async () => decodeURIComponent(hash()).includes('m=avg:auto:cpu.user&o=&m=avg:auto:disk.used&o=axis+x1y2'));
  await page.goto('about:blank');
  await page.goBack();
  await until('the same again', async () => (await series()).join() === 'cpu.user,disk.used');
  assert.equal(await page.locator('#right-2').isChecked(), true);
  sound();
});

test('tag keys come from the answer, tag values from the metric', async () => {
  scripted((q) => [result(q.queries[0].metric, {}, { from: end - 90, to: end, aggregateTags: ['host', 'rack'] })]);
  await open('m=avg:auto:cpu.user');
  await page.getByRole('button', { name: 'Add a tag' }).click();
  await page.getByLabel('Tag key').click();
  await page.getByRole('option', { name: 'rack' }).waitFor(); // of the answer: the server's list has it not
  await page.getByRole('option', { name: 'host' }).click();
  await page.getByLabel('Tag value').click();
  await page.getByRole('option', { name: '*', exact: true }).waitFor();
  await page.getByLabel('Tag value').fill('web01|web0');
  await page.getByRole('option', { name: 'web01|web02', exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByLabel('Tag value').fill('*');
  await page.keyboard.press('Enter');
  await until('a line each', async () => decodeURIComponent(hash()).includes('m=avg:auto:cpu.user{host=*}'));
  assert.ok(server.asked.some((a) => a.path === '/api/search/values' && a.query.includes('tagk=host')));
  sound();
});

async function drag(from, to) {
  const box = await page.locator('#chart .u-over').boundingBox();
  await page.mouse.move(box.x + box.width * from, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to, box.y + 60, { steps: 5 });
  await page.mouse.up();
  return box;
}

test('drag zooms; the button, a double click, Escape and the browser go back', async () => {
  scripted(hostsOf);
  await open('start=15m-ago&m=avg:m{host=*}');
  const back = page.getByRole('button', { name: 'Reset zoom' });
  const waysBack = [() => back.click(), () => page.locator('#chart .u-over').dblclick({ position: { x: 300, y: 80 } }), async () => { await page.locator('#chart').focus(); await page.keyboard.press('Escape'); }, () => page.goBack()];
  for (const way of waysBack) {
    assert.equal(await back.isVisible(), false);
    await drag(0.4, 0.7);
    await back.waitFor();
    const [from, to] = /zoom=([\d.]+),([\d.]+)/.exec(decodeURIComponent(hash())).slice(1).map(Number);
    assert.ok(to - from > 240 && to - from < 300, `${to - from} s of 900 are 0.3`);
    await way();
    await back.waitFor({ state: 'hidden' });
  }
  assert.equal(await page.locator('.pinned').count(), 0, 'a double click pins nothing');
  sound();
});

test('a zoom into a long range asks for more points', async () => {
  scripted(hostsOf);
  await open('start=7d-ago&m=avg:auto:m{host=*}');
  assert.equal(lastAsked().query.queries[0].downsample, '30m-avg');
  await drag(0.5, 0.55);
  await until('a finer question', async () => lastAsked().query.queries[0].downsample === '2m-avg');
  await untilStatus(page, 'complete');
  await page.getByRole('button', { name: 'Reset zoom' }).click();
  await untilStatus(page, 'live');
  sound();
});

test('a click on a name hides its line, with Shift it is alone', async () => {
  scripted(() => [...ramp({ host: 'a' }), ...ramp({ host: 'b' }), ...ramp({ host: 'c' })]);
  await open('m=avg:m{host=*}');
  const pressed = () => page.locator('#legend button').evaluateAll((bs) => bs.map((b) => b.getAttribute('aria-pressed')).join());
  const b = page.locator('#legend button', { hasText: 'host=b' });
  await b.click();
  await until('b hidden', async () => (await pressed()) === 'true,false,true');
  await untilAddress(/hide=host=b/);
  await b.click({ modifiers: ['Shift'] });
  await until('b alone', async () => (await pressed()) === 'false,true,false');
  await b.click({ modifiers: ['Shift'] });
  await until('all', async () => (await pressed()) === 'true,true,true');
  sound();
});

test('the tooltip follows the mouse, a click pins it, and the pin stays', async () => {
  scripted(() => [...ramp({ host: 'a' }), ...ramp({ host: 'b' })]);
  await open(`start=${end - 90}&m=avg:m{host=*}`);
  const box = await page.locator('#chart .u-over').boundingBox();
  const at = (share) => [box.x + box.width * share, box.y + 90];
  await page.mouse.move(...at(0.5));
  await page.locator('.tooltip:not(.pinned)').waitFor();
  assert.match(await text('.tooltip:not(.pinned)'), /host=a.*host=b/);
  await page.mouse.click(...at(0.5));
  await page.locator('.pinned').waitFor();
  await page.mouse.move(2, 2);
  await page.locator('.tooltip:not(.pinned)').waitFor({ state: 'hidden' });
  const told = await text('.pinned');
  await page.reload();
  await page.locator('.pinned').waitFor();
  assert.equal(await text('.pinned'), told);
  const [, time] = /pin=(\d+)/.exec(hash());
  server.delta(server.subs.at(-1), { upserts: [{ group: 0, dps: [[Number(time), 1234.5]] }] });
  await until('the corrected value in the pin', async () => (await text('.pinned')).includes('1234.5'));
  await page.getByRole('button', { name: /^Unpin/ }).click();
  await page.locator('.pinned').waitFor({ state: 'detached' });
  sound();
});

test('a pause stands still and is left again', async () => {
  scripted(() => ramp());
  await open('m=avg:m{host=*}');
  await page.getByRole('button', { name: 'Pause' }).click();
  await untilStatus(page, 'paused');
  assert.match(await text('#status'), /^Paused at \d\d:\d\d:\d\d\.$/);
  assert.equal(typeof lastAsked().query.end, 'number');
  await untilAddress(/pause=\d+/);
  await page.getByRole('button', { name: 'Resume' }).click();
  await untilStatus(page, 'live');
  sound();
});

test('what a query has that means nothing is said below the chart', async () => {
  const months = 'the duration "5min" is read as 5n, n is for months';
  scripted(() => Object.assign(ramp(), { ignored: [months] }));
  await open('m=avg:5min-avg:m&m=sum:5min-avg:m');
  await until('the words, once', async () => (await text('#lost')) === months);
  scripted(() => ramp());
  await open('m=avg:m', null); // the page is live already
  await until('no words', async () => (await text('#lost')) === '');
  sound();
});

test('a log scale leaves out what has no place on it, and says so', async () => {
  scripted(() => [result('m', {}, { from: end - 90, to: end, value: (t) => (t - end) / 10 + 7 })]); // -2 … 7
  await open('m=avg:m');
  await page.getByLabel('Log scale').check();
  await until('the words', async () => (await text('#lost')).startsWith('3 points at or below zero'));
  assert.deepEqual((await columns())[1].slice(0, 4), [null, null, null, 1]);
  await untilAddress(/&ylog/);
  sound();
});

test('the time zone is that of the axis, the table and the fields', async () => {
  scripted(() => ramp());
  await open(`m=avg:m&tz=Asia/Kolkata&start=${end - 90}&end=${end}&open=table`, 'complete');
  const shown = new Date((end + 19800) * 1000).toISOString().slice(0, 19).replace('T', ' ');
  assert.equal(await text('#table tbody tr:first-child th'), shown);
  assert.equal(await page.locator('#to').inputValue(), shown);
  await page.selectOption('#zone', 'UTC');
  await until('UTC', async () => (await text('#table tbody tr:first-child th')) === new Date(end * 1000).toISOString().slice(0, 19).replace('T', ' '));
  await page.locator('#from').fill('not a time');
  await page.locator('#from').press('Tab');
  assert.equal(await page.locator('#from').getAttribute('aria-invalid'), 'true');
  await page.locator('#from').fill('2h-ago');
  await page.locator('#to').fill('');
  await page.locator('#to').press('Tab');
  await until('a relative range', async () => (await page.locator('#range').inputValue()) === '2h-ago');
  sound();
});

test('dark by the system, by choice, and by the address', async () => {
  scripted(() => ramp());
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: 'dark' });
  await open('m=avg:m');
  assert.equal(await ground(), 'rgb(20, 23, 26)');
  await page.selectOption('#theme', 'light');
  assert.equal(await ground(), 'rgb(252, 252, 251)');
  await untilAddress(/theme=light/);
  sound();
});

test('annotations are drawn, listed and told', async () => {
  scripted(() => ramp());
  server.api = (path, parameters, body) => (body?.globalAnnotations ? { body: [{ ...ramp()[0], annotations: [{ tsuid: '01', startTime: end - 30, description: 'deploy <b>2</b>' }] }] } : null);
  await open(`m=avg:m{host=*}&open=notes-list`);
  await until('the list', async () => (await text('#notes-list')).includes('deploy <b>2</b>'));
  await page.getByLabel('Annotations').uncheck();
  await page.locator('#notes-list').waitFor({ state: 'hidden' });
  await untilAddress(/notes=off/);
  sound();
});

test('what it took is said; explain and trace are shown', async () => {
  await play(page, server, scenes.inspected, untilStatus);
  await until('rows', async () => (await text('#count')).match(/^\d+ points from 4 rows in \d+ ms/));
  await until('the plan', async () => (await text('#explain')).includes('rs1.example:4280'));
  await until('the tree', async () => /execute.*part/.test(await text('#trace')));
  assert.match(await text('#trace'), /1,510 rows and 543,600 points read/);
  sound();
});

async function downloaded(name) {
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name, exact: true }).click()]);
  return { name: download.suggestedFilename(), content: readFileSync(await download.path()) };
}

test('CSV is what was answered, to the last digit', async () => {
  scripted(() => [{ queryIndex: 0, metric: 'm', tags: { host: 'a' }, aggregateTags: [], dps: [[end - 10, 0.1 + 0.2], [end, 1]] }]);
  await open(`start=${end - 90}&m=avg:m{host=*}`);
  server.subs[0].socket.send(`{"type":"delta","id":"${server.subs[0].id}","seq":2,"upserts":[{"group":0,"dps":[[${end},9007199254740993]]}]}`);
  await until('the big integer', async () => (await text('#legend')).includes('9007T'));
  const { name, content } = await downloaded('CSV');
  assert.match(name, /^m-\d{4}-\d\d-\d\dT\d{6}\.csv$/);
  const iso = (t) => new Date(t * 1000).toISOString().replace('.000', '');
  assert.equal(String(content), `time,host=a\r\n${iso(end - 10)},0.30000000000000004\r\n${iso(end)},9007199254740993\r\n`);
  sound();
});

test('PNG is a picture', async () => {
  scripted(() => ramp());
  await open('m=avg:m{host=*}');
  const { name, content } = await downloaded('PNG');
  assert.match(name, /\.png$/);
  assert.deepEqual([...content.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
  assert.ok(content.readUInt32BE(16) > 1000 && content.length > 5000, `${content.readUInt32BE(16)} px, ${content.length} bytes`);
  sound();
});

test('keys read the chart aloud, and leave it', async () => {
  scripted(() => [...ramp({ host: 'a' }), ...ramp({ host: 'b' })]);
  await open('m=avg:m{host=*}');
  await page.locator('#chart').focus();
  const said = () => text('#readout');
  await page.keyboard.press('ArrowLeft');
  assert.match(await said(), /^host=a: 10 at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  await page.keyboard.press('ArrowLeft');
  assert.match(await said(), /^host=a: 9 at/);
  server.delta(server.subs[0], { upserts: [{ group: 0, dps: [[end + 10, 11]] }] });
  await until('the new point', async () => (await columns())[0].length === 11);
  await page.keyboard.press('ArrowDown');
  assert.match(await said(), /^host=b: 9 at/, 'the place is kept while the chart moves');
  await page.keyboard.press('Home');
  assert.match(await said(), /^host=b: 1 at/);
  await page.keyboard.press('Enter');
  await page.locator('.pinned').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.tooltip:not(.pinned)').waitFor({ state: 'hidden' });
  sound();
});

test('the whole page can be used without a mouse', async () => {
  scripted(hostsOf);
  await open('m=avg:m{host=*}');
  const reached = new Set();
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press('Tab');
    reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.textContent.slice(0, 12)));
  }
  for (const id of ['range', 'pause', 'metric', 'aggregator', 'tag-key-0', 'tag-value-0', 'add-tag', 'add-query', 'zone', 'theme', 'chart', 'csv', 'png', 'arrow', 'Data table', 'Explain', 'Trace']) assert.ok(reached.has(id), `${id} is not reached: ${[...reached]}`);
  sound();
});

test('too many series: the first are drawn, and a query too big draws nothing', async () => {
  await play(page, server, scenes.toomany, untilStatus);
  assert.equal((await series()).length, 200);
  scripted(() => ({ error: { code: 413, message: 'this query needs more memory', temporary: false } }));
  await open('m=avg:big', 'toomany');
  // The page before it said the same kind of thing.
  await until('the refusal', async () => /^Too much for one answer/.test(await text('#message')));
  sound();
});

test('the start page lists metrics with small charts, newest first, finds them, and charts one by a click', async () => {
  server.metrics = Array.from({ length: 80 }, (_, i) => `app${i}.requests`).concat('room.temperature');
  server.dashboards.set('web', [JSON.stringify({ form: 1, title: 'Web servers', panels: [] })]);
  scripted((q) => [result(q.queries[0].metric, {}, { from: now() - 600, step: 60, value: (t) => t % 7 })]);
  await open('start=15m-ago', 'idle');
  const cards = () => page.evaluate(() => window.__downpour.cards());
  await until('cards', async () => (await cards()).length === 48);
  assert.deepEqual((await cards()).slice(0, 2).map((c) => c.metric), ['room.temperature', 'app79.requests']);
  assert.equal(await text('#start-said'), '81 metrics, the newest first. Here are 48: type a part of a name to find others.');
  assert.equal(await page.locator('#start-boards a').getAttribute('href'), '/d/web');
  assert.equal(await page.locator('#view').isVisible(), false);

  await until('charts of those on screen', async () => (await cards())[0].points > 0);
  const asking = () => server.subs.filter((s) => s.query).length;
  assert.ok(asking() >= 12 && asking() < 48, `${asking()} ask`);
  assert.equal((await cards()).at(-1).asks, false, 'one out of view asks');
  await page.locator('#cards li').last().scrollIntoViewIfNeeded();
  await until('the last one asks', async () => (await cards()).at(-1).points > 0);
  await until('the first one asks no more', async () => !(await cards())[0].asks);

  // A new metric comes to the front by itself.
  server.metrics.push('just.put');
  await until('the new one', async () => (await cards())[0].metric === 'just.put');

  const field = page.getByRole('combobox', { name: 'Metric' });
  await field.fill('TEMP');
  await until('what is found', async () => (await cards()).map((c) => c.metric).join() === 'room.temperature');
  assert.equal(await text('#start-said'), '1 metric with “TEMP” in the name.');
  await field.fill('none such');
  await until('that there is none', async () => (await text('#start-said')) === 'No metric’s name holds “none such”.');
  await field.fill('temp');
  await until('it again', async () => (await cards()).length === 1);
  await page.keyboard.press('Tab');
  assert.equal(hash(), '#start=15m-ago', 'what is typed charts nothing before it is taken');
  await page.locator('#cards a').click();
  await untilStatus(page, 'live');
  assert.equal(decodeURIComponent(hash()), '#start=15m-ago&m=avg:auto:room.temperature');
  await until('the small charts to end', async () => asking() === 1);
  assert.equal(await page.locator('#start').isVisible(), false);

  await page.getByRole('link', { name: 'Metrics', exact: true }).click();
  await until('cards', async () => (await cards()).length === 48);
  await page.keyboard.press('/');
  await page.keyboard.type('app7');
  const first = page.locator('#metric-list [role=option]').first();
  await until('names for all that is typed', async () => (await first.textContent()) === 'app7.requests');
  await page.keyboard.press('Enter');
  await untilAddress(/m=avg:auto:app7\.requests$/);
  await untilStatus(page, 'live');
  sound();
});

const manyHosts = () => Array.from({ length: 200 }, (_, i) => ramp({ host: `web${i}`, dc: 'eu' })[0]).map((r, i) => ({ ...r, dps: r.dps.map(([t, v]) => [t, v * (i + 1)]) }));

test('two hundred lines have a table: sorted, searched, the first of them, with values at the cursor', async () => {
  scripted(manyHosts);
  await open(`start=${end - 90}&m=avg:m{host=*}`);
  const rows = () => page.locator('#lines tbody tr').count();
  const drawnLines = () => page.evaluate(() => window.__downpour.shown().length);
  await until('a table', async () => (await rows()) === 200);
  assert.equal(await page.locator('#legend').isVisible(), false);

  const only = page.getByRole('textbox', { name: 'Lines with' });
  await only.fill('web19');
  await until('those found', async () => (await rows()) === 11 && (await drawnLines()) === 11);
  assert.equal(await text('.line-tools [role=status]'), '11 of 200 lines');
  await untilAddress(/only=web19/);
  await only.fill('');
  await page.getByRole('combobox', { name: 'How many lines' }).selectOption('top 5');
  await until('five', async () => (await rows()) === 5 && (await drawnLines()) === 5);
  const names = () => page.locator('#lines tbody button span').allTextContents();
  assert.deepEqual((await names()).sort(), [195, 196, 197, 198, 199].map((i) => `host=web${i}`));
  await page.locator('#lines thead').getByRole('button', { name: 'Least' }).click();
  await page.locator('#lines thead').getByRole('button', { name: 'Least' }).click();
  await until('the five least', async () => (await names()).join() === [0, 1, 2, 3, 4].map((i) => `host=web${i}`).join());

  const box = await page.locator('#chart .u-over').boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 60);
  const at = () => page.locator('#lines tbody td[data-by=at]').allTextContents();
  await until('values at the cursor', async () => { const [first, second] = (await at()).map(Number); return first > 0 && second === 2 * first; });
  await page.mouse.move(5, 5);
  await until('none without it', async () => (await at()).every((v) => v === ''));

  // The address has it all, and a phone has room for it.
  await page.setViewportSize({ width: 390, height: 800 });
  await page.reload();
  await until('five again', async () => (await rows()) === 5 && (await drawnLines()) === 5);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await page.getByRole('button', { name: 'As a list' }).click();
  await untilAddress(/legend=list/);
  await until('a list', async () => (await page.locator('#legend button').count()) === 200 && (await page.locator('#legend').isVisible()));
  assert.equal(await drawnLines(), 5, 'what is chosen stays chosen');
  sound();
});

test('lines are called as their query says', async () => {
  scripted(() => [...ramp({ host: 'a', dc: 'eu' }), ...ramp({ host: 'b', dc: 'eu' })]);
  await open('m=avg:m{host=*}');
  await page.getByLabel('Name of lines').fill('{host} in {dc}');
  await page.keyboard.press('Tab');
  await untilAddress(/n={host} in {dc}|n={host}\+in\+{dc}/);
  await until('the names', async () => (await series()).join() === 'a in eu,b in eu');
  scripted(() => ramp({ host: 'a', dc: 'eu' }));
  await open('start=14m-ago&m=avg:m{dc=eu}');
  await until('the tag that was grouped by', async () => (await series()).join() === 'dc=eu');
  sound();
});

test('a chart is added to a new dashboard, to one that is there, and opened from there as it was', async () => {
  scripted(hostsOf);
  await open('start=3h-ago&m=avg:auto:cpu.user{host=*}&n={host}');
  const dialog = page.getByRole('dialog', { name: 'Add to a dashboard' });
  const add = page.getByRole('button', { name: 'Add to dashboard' });
  await add.click();
  await dialog.getByRole('button', { name: 'Add', exact: true }).click();
  await until('that a title is wanted', async () => (await text('#adding-fault')) === 'A new dashboard has a title.');
  await dialog.getByLabel('Its title').fill('Web servers');
  await page.keyboard.press('Enter');
  await until('it said', async () => (await text('#told')) === 'Added to Web servers.');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'to-dashboard');
  const kept = () => JSON.parse(server.dashboards.get('web-servers').at(-1));
  assert.deepEqual(kept(), { form: 1, title: 'Web servers', range: { from: '3h-ago', to: '' },
    panels: [{ id: 'p1', type: 'lines', title: 'cpu.user', place: { x: 0, y: 0, w: 6, h: 8 }, queries: [{ m: 'avg:auto:cpu.user{host=*}', alias: '{host}' }] }] });

  // Somebody else saves while the second one is added: nothing of either is lost.
  server.api = (path, parameters, body, method) => {
    if (path !== '/api/dashboards/web-servers' || method !== 'PUT') return null;
    server.api = () => null;
    server.dashboards.get('web-servers').push(JSON.stringify({ ...kept(), title: 'Theirs' }));
    return { status: 409, body: { error: { code: 409, message: 'version 2 was saved' } } };
  };
  await add.click();
  await dialog.getByLabel('Title of the panel').fill('Once more');
  await dialog.getByRole('button', { name: 'Add', exact: true }).click();
  await until('both', () => kept().panels.length === 2 && kept().title === 'Theirs');

  await page.locator('#told a').click();
  await until('its panels', async () => (await page.evaluate(() => window.__downpour?.panels?.()?.length)) === 2);
  await page.getByRole('link', { name: 'Open as chart: Once more' }).click();
  await untilStatus(page, 'live');
  assert.equal(decodeURIComponent(hash()), '#start=3h-ago&m=avg:auto:cpu.user{host=*}&n={host}');
  sound();
});

test('a chart is compared with before, and its link is copied', async () => {
  // A day ago the values were ten times as high.
  const day = 86400;
  scripted((q) => { const from = Number(q.start) > 0 ? Number(q.start) : now() - 900; const past = q.end !== undefined; return [result('m', { host: 'a' }, { from, to: past ? Number(q.end) : now(), step: 60, value: () => (past ? 10 : 1) })]; });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await open('start=15m-ago&m=avg:m{host=*}');
  await page.getByLabel('Compare').selectOption('a day ago');
  await untilAddress(/shift=1d/);
  await until('both lines', async () => (await series()).join() === 'host=a,host=a (1d ago)');
  const asked = server.subs.find((s) => s.query?.end !== undefined);
  assert.ok(Math.abs(Number(asked.query.start) - (now() - 900 - day)) < 5, JSON.stringify(asked.query));
  const [times, , before] = await columns();
  const then = times.filter((t, i) => before[i] === 10);
  assert.ok(then.length >= 13 && then[0] >= now() - 960 && then.at(-1) <= now(), 'what was there a day ago stands at today’s times');
  await page.getByRole('button', { name: 'Copy link' }).click();
  await until('it said', async () => (await text('#told')) === 'The link is copied.');
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), page.url());
  sound();
});

test('a chart is annotated by a button, and by a drag, where the token may', async () => {
  scripted(() => ramp());
  server.api = (path, p, body) => (path === '/api/query' && body?.globalAnnotations ? { body: [] } : null);
  await open(`start=${end - 90}&m=avg:m{host=*}`);
  await page.getByRole('button', { name: 'Annotate' }).click();
  await page.getByLabel('Text', { exact: true }).fill('deployed');
  await page.locator('#note-save').click();
  await until('it is listed', async () => /deployed$/.test(await text('#notes-list ul')));
  const box = await page.locator('#chart .u-over').boundingBox();
  await page.keyboard.down('Control');
  await page.mouse.move(box.x + box.width * 0.3, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 80, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up('Control');
  await page.locator('#note').waitFor();
  await page.getByLabel('Text', { exact: true }).fill('slow');
  await page.locator('#note-save').click();
  await until('both', async () => (await page.locator('#notes-list li').count()) === 2);
  const [, slow] = server.annotations;
  assert.ok(slow.endTime > slow.startTime && slow.description === 'slow', JSON.stringify(slow));

  server.mayWrite = false;
  await page.reload();
  await untilStatus(page, 'live');
  await until('the list', async () => (await page.locator('#notes-list li').count()) === 2);
  assert.equal(await page.getByRole('button', { name: 'Annotate' }).isVisible(), false);
  sound();
});

test('what changed in a stretch that is marked by the mouse, or by keys, is listed, and one click charts one', async () => {
  scripted(() => ramp());
  let asked;
  server.api = (path, parameters) => { if (path !== '/api/changes') return null; asked = Object.fromEntries(parameters); return { body: changes() }; };
  await open(`start=${end - 90}&m=avg:m{host=*}`);
  const box = await page.locator('#chart .u-over').boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 80, { steps: 4 });
  await page.mouse.up();
  await page.getByRole('button', { name: 'What changed here?' }).click();
  const rows = page.locator('#changes li');
  await until('the list', async () => (await rows.count()) === 5);
  const [from, to] = /zoom=(\d+),(\d+)/.exec(hash()).slice(1).map(Number);
  assert.deepEqual([asked.start, asked.end, asked.limit], [String(from), String(to), '20']);
  assert.match(await text('#changes h2'), /^What changed: 20\d\d-.* – .*, compared with 20\d\d-.* – /);
  assert.equal(await text('#changes-said'), '31 changed, 1 new, 1 gone, of 8,040 series of 40 metrics, 12 of them with too few points to say.');
  assert.equal(await text('#changes-missing'), '2 metrics not looked at. logs.lines, logs.bytes: the time budget of 5s was over. A part of a name finds fewer.');
  assert.deepEqual((await page.locator('#changes li b').allTextContents()).slice(0, 4), ['12.25 → 71.5', '411/s → 87.2/s', '0.00125 → 41G', 'none → 4']);
  assert.equal(await page.locator('#changes b', { hasText: 'web01' }).count(), 0, 'a tag’s value is text');

  await page.locator('#changes-with').fill('cpu');
  await page.keyboard.press('Tab');
  await until('a second request', () => asked.metric === 'cpu');
  await rows.first().locator('a').click();
  await untilAddress(/m=avg:auto:cpu.user\{\}\{host=web01,dc=eu\}$/);
  assert.equal(await rows.count(), 5, 'the list stays for the next one');
  await page.getByRole('button', { name: 'Close', exact: true }).click();
  assert.equal(await page.evaluate(() => document.activeElement.id), 'what-changed');

  await page.goBack();
  await untilStatus(page, 'live');
  await page.keyboard.press('z');
  await page.locator('#chart').focus();
  for (const key of ['Home', 'ArrowRight', 'Space', 'ArrowRight', 'ArrowRight', 'ArrowRight']) await page.keyboard.press(key);
  await until('the stretch to be seen', async () => (await page.locator('.u-select').boundingBox()).width > 20);
  await page.keyboard.press('Space');
  await untilAddress(/zoom=/);
  const [left, right] = /zoom=(\d+),(\d+)/.exec(hash()).slice(1).map(Number);
  assert.ok(right - left > 0 && right - left < 90, hash());
  await page.keyboard.press('w');
  await until('it asked', () => asked.start === String(left) && asked.end === String(right));
  assert.equal(await page.evaluate(() => document.activeElement.id), 'changes-title');

  server.api = (path) => (path === '/api/changes' ? { status: 413, body: { error: { code: 413, message: 'too much' } } } : null);
  await page.keyboard.press('w');
  await until('the reason', async () => (await text('#changes-said')) === 'What changed cannot be said: too much.');
  sound();
});

test('times are taken as people write them, and a bad one says why next to its field', async () => {
  scripted(() => ramp());
  await open('m=avg:m{host=*}');
  await page.locator('#range').selectOption('absolute');
  const from = page.getByLabel('from', { exact: true });
  await from.fill('now-6h');
  await page.getByLabel('to', { exact: true }).fill('');
  await page.keyboard.press('Enter');
  await untilAddress(/^#start=6h-ago&m=/);
  await page.locator('#range').selectOption('absolute');
  const before = hash();
  await from.fill('5x');
  await page.keyboard.press('Tab');
  await until('the reason', async () => /^“x” is no unit of time/.test(await text('#time-said')));
  assert.equal(await from.getAttribute('aria-invalid'), 'true');
  assert.equal(hash(), before);
  await from.fill('yesterday');
  await page.getByLabel('to', { exact: true }).fill('yesterday');
  await page.keyboard.press('Tab');
  await until('a day', async () => { const p = new URLSearchParams(hash().slice(1)); const day = Number(p.get('end')) - Number(p.get('start')); return day >= 82800 && day <= 90000 && Number(p.get('end')) < now(); });
  assert.equal(await text('#time-said'), '');
  sound();
});

test('for a name that does not exist those that may be meant are offered, and one click takes one', async () => {
  scripted((q) => (q.queries[0].metric === 'cpu' ? { error: { code: 400, message: "No such name for 'metrics': 'cpu'", temporary: true, suggestions: ['sys.cpu', '<b>cpu</b>'] } } : ramp()));
  await open('m=avg:cpu{host=*}', 'unknown');
  await until('the offers', async () => (await page.locator('#near button').allTextContents()).join() === 'sys.cpu,<b>cpu</b>');
  await page.locator('#near').getByRole('button', { name: 'sys.cpu' }).click();
  await untilStatus(page, 'live');
  await untilAddress(/m=avg:sys.cpu{host=\*}$/);
  assert.equal(await page.locator('#near').isVisible(), false);
  sound();
});

test('charts that had points are kept in a history, which opens them again and forgets', async () => {
  scripted((q) => (q.queries[0].metric === 'quiet' ? [] : ramp()));
  const keeping = (text) => until(`${text} to be kept`, () => page.evaluate((t) => localStorage.getItem('downpour.history')?.includes(t), text));
  await open('m=avg:m{host=*}');
  await keeping('avg:m{host=*}');
  await open('start=1h-ago&m=sum:m');
  await keeping('sum:m');
  await open('m=avg:quiet', 'nodata');
  await page.getByRole('button', { name: 'History' }).click();
  const links = page.locator('#history-list a');
  assert.deepEqual(await links.allTextContents(), ['sum:m', 'avg:m{host=*}']);
  await links.nth(0).click();
  await untilStatus(page, 'live');
  assert.equal(decodeURIComponent(hash()), '#start=1h-ago&m=sum:m');
  assert.equal(await page.locator('#history').isVisible(), false);
  await page.getByRole('button', { name: 'History' }).click();
  await page.getByRole('button', { name: 'Forget all' }).click();
  await until('none', async () => (await text('#history-said')) === 'No chart yet.' && (await links.count()) === 0);
  sound();
});
