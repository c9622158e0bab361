// The page of a dashboard in a real Chromium: against a scripted server, and with a URL as its
// argument against a real gateway, too.
//
// Usage: node board.mjs [URL]; it ends with status 1 if a test fails.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { axeFindsNothing, board, button, keep, kept, open, opened, page, panel, panels, server, sound, text } from './boardpage.mjs';
import { boards, web } from './boards.mjs';
import { statusOf, until, untilStatus } from './chromium.mjs';

const real = process.argv[2]?.replace(/\/$/, ''); // its URL

// chart is a document of n charts, one below the other, each of a metric of its own.
const column = (n) => ({ form: 1, title: 'Many', panels: Array.from({ length: n }, (_, i) => (
  { id: `p${i}`, type: 'lines', title: `Panel ${i}`, place: { x: 0, y: 8 * i, w: 12, h: 8 }, queries: [`avg:load.1min{n=${i}}`] })) });

test('every panel shows what it is for, and markup is text', async () => {
  keep({ ...web, title: '<img src=x onerror="window.__ran = 1">', panels: web.panels.map((p) => (p.id === 'cpu' ? { ...p, title: '<b onmouseover="window.__ran = 1">CPU</b>' } : p)) });
  await open('/d/web');
  await until('four hosts', async () => (await panel('cpu')).series.length === 4);
  assert.equal(await text('#title'), '<img src=x onerror="window.__ran = 1">');
  assert.equal(await text('[data-id=cpu] h2'), '<b onmouseover="window.__ran = 1">CPU</b>');
  assert.match(await text('[data-id=note] .text'), /<script>window\.__ran = 1<\/script> is text/);
  assert.equal(await page.locator('#grid :is(script, b[onmouseover], img)').count(), 0);
  await until('a number', async () => Number(await text('[data-id=now] .number')) > 0);
  assert.match(await page.locator('[data-id=now] .spark path').getAttribute('d'), /^M[\d. ML-]+$/);
  assert.equal(await text('[data-id=later] .text'), 'Unknown panel: this release does not draw “candles”. It is kept as it is.');
  await page.locator('[data-id=rows]').scrollIntoViewIfNeeded();
  await until('rows', async () => (await page.locator('[data-id=rows] tbody tr').count()) === 4);
  await page.locator('[data-id=none]').scrollIntoViewIfNeeded();
  await until('no data', async () => (await panel('none')).kind === 'nodata');
  assert.equal(await text('[data-id=none] .said'), 'No data: quiet.metric has no points in this range with these tags.');
  assert.equal(await page.evaluate(() => window.__ran), undefined);
  sound();
});

test('dashboards are found by words and tags, and a new one is named by its title', async () => {
  const tagged = (title, ...tags) => ({ form: 1, title, tags, panels: [] });
  for (const [name, document] of [['web', tagged('Web servers', 'prod', 'eu')], ['db', tagged('Databases', 'prod')], ['lab', tagged('Lab')]]) keep(document, name);
  await open('/d/', 'complete');
  const listed = () => page.locator('#dashboards a').allTextContents();
  assert.deepEqual(await listed(), ['Web servers', 'Databases', 'Lab']);
  await button('prod').click();
  await until('those with a tag', async () => (await listed()).join() === 'Web servers,Databases');
  await page.locator('#find-board').fill('EU serv');
  await until('the one with the words', async () => (await listed()).join() === 'Web servers');
  assert.equal(await text('#found'), '1 of 3 dashboards');
  await page.locator('#find-board').fill('');
  await button('prod').click();
  await until('all', async () => (await listed()).length === 3);

  await page.getByLabel('Title of a new dashboard').fill('Web Servers (EU)');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/d\/web-servers-eu/);
  await until('its title', async () => (await page.locator('#board-title').inputValue()) === 'Web Servers (EU)');
  await page.locator('#board-tags').fill('eu,  lab ,eu');
  await page.keyboard.press('Tab');
  await button('Save').click();
  await until('it kept', () => server.dashboards.has('web-servers-eu'));
  assert.deepEqual([kept('web-servers-eu')[0].title, kept('web-servers-eu')[0].tags], ['Web Servers (EU)', ['eu', 'lab']]);
  await until('an address without the title', () => !page.url().includes('title='));
  // The same title once more has a name of its own.
  await open('/d/', 'complete');
  await page.getByLabel('Title of a new dashboard').fill('Web Servers (EU)');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/d\/web-servers-eu-2/);
  sound();
});

test('a panel out of view asks nothing, and all ask on one socket', async () => {
  keep(column(30));
  await open('/d/web');
  const seen = (await panels()).filter((p) => p.seen).map((p) => p.id);
  assert.ok(seen.length >= 1 && seen.length < 6, `in view are ${seen}`);
  const metricsOf = (list) => list.map((m) => m.query.queries[0].filters[0].filter);
  const asked = () => server.received.filter((m) => m.type === 'subscribe');
  await until('those in view asked', async () => asked().length >= seen.length);
  // The gate: what is below comes into view, and has asked when this is over; what lies between
  // and behind it may have, but the last has not.
  await page.locator('[data-id=p20]').scrollIntoViewIfNeeded();
  await until('panel 20', async () => (await panel('p20')).points > 0);
  assert.ok(!metricsOf(asked()).includes('29'), 'the last panel has asked out of view');
  assert.equal((await panel('p29')).asked, 0);
  await until('the first panel ends what it asked', async () => (await panel('p0')).asked === 0 && server.received.some((m) => m.type === 'unsubscribe'));
  assert.equal((await panel('p0')).series.length, 1, 'it keeps what it has drawn');
  assert.equal(server.sockets.clients.size, 1);
  sound();
});

test('a dropped socket is said once, and all panels go on', async () => {
  keep(web);
  await open('/d/web');
  await until('an answer', async () => (await panel('cpu')).points > 0);
  server.refuse = 503;
  server.api = (path) => (path === '/api/query' ? { status: 403, body: { error: { message: 'refused' } } } : null);
  server.drop(1012);
  await untilStatus(page, 'disconnected');
  assert.ok((await panel('cpu')).points > 0, 'what was known stays');
  Object.assign(server, { refuse: 0, api: () => null });
  server.received.length = 0;
  await page.evaluate(() => dispatchEvent(new Event('online'))); // or the next attempt may be half a minute away
  await untilStatus(page, 'live');
  assert.ok(server.received.filter((m) => m.type === 'subscribe').every((m) => m.resume), 'they go on from where they were');
  sound();
});

test('one cross hair and one zoom for all', async () => {
  keep(web);
  await open('/d/web');
  await until('both charts', async () => (await panel('cpu')).points > 0 && (await panel('two')).points > 0);
  const box = await page.locator('[data-id=cpu] .u-over').boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 40);
  await until('the cross hair in both', async () => {
    const at = (await page.evaluate(() => window.__downpour.cursors())).filter((t) => t !== null);
    return at.length === 2 && Math.abs(at[0] - at[1]) <= 20;
  });
  assert.equal(await page.locator('.tooltip:visible').count(), 1, 'the values are beside the hand alone');
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 50, { steps: 4 });
  await page.mouse.up();
  await until('the zoom in the address', async () => /zoom=\d+%2C\d+/.test(page.url()));
  const zoomed = page.url();
  await button('Reset zoom').click();
  await until('no zoom', async () => !page.url().includes('zoom='));
  await page.goBack();
  await until('the zoom again', async () => page.url() === zoomed);
  sound();
});

test('a dashboard is built, saved and opened again', async () => {
  await open('/d/fresh', 'idle');
  assert.equal(await text('#told'), 'There is no dashboard fresh yet: what you save makes it.');
  await page.locator('#board-title').fill('Fresh');
  await button('Add a panel').click();
  await page.locator('#panel-title').fill('CPU');
  await page.locator('#metric').fill('cpu.user');
  await page.locator('#metric').press('Enter');
  await button('Add a tag').click();
  await page.locator('#tag-key-0').fill('host');
  await page.locator('#tag-key-0').press('Tab');
  await page.locator('#tag-value-0').fill('*');
  await page.locator('#tag-value-0').press('Tab');
  await button('Done').click();
  await until('four hosts', async () => (await panel('p1')).series.length === 4);
  await button('Add a panel').click();
  await page.locator('#panel-type').selectOption('text');
  await page.locator('#panel-text').fill('hello');
  await button('Done').click();
  await button('Save').click();
  await until('version 1', async () => (await text('#told')) === 'Saved as version 1.');
  assert.deepEqual(kept('fresh')[0], {
    form: 1, title: 'Fresh', range: { from: '1h-ago', to: '' }, panels: [
      { id: 'p1', type: 'lines', title: 'CPU', place: { x: 0, y: 0, w: 6, h: 8 }, queries: ['avg:auto:cpu.user{host=*}'] },
      { id: 'p2', type: 'text', title: '', place: { x: 6, y: 0, w: 6, h: 3 }, text: 'hello' },
    ],
  });
  await open('/d/fresh');
  await until('four hosts again', async () => (await panel('p1')).series.length === 4);
  assert.equal(await text('[data-id=p2] .text'), 'hello');
  sound();
});

test('panels move and grow by keys and by mouse', async () => {
  keep(web);
  await open('/d/web');
  await button('Edit').click();
  const at = async (id) => (await board()).panels.find((p) => p.id === id).place;
  await button('Move CPU').focus();
  await page.keyboard.press('ArrowDown');
  assert.equal((await at('cpu')).y, 8, 'behind the table, which has come up');
  assert.deepEqual(await at('rows'), { x: 0, y: 3, w: 6, h: 5 });
  assert.match(await text('#readout'), /^Column 1, row 9, 6 wide, 7 high$/);
  await page.keyboard.press('ArrowUp');
  assert.deepEqual([(await at('cpu')).y, (await at('rows')).y], [3, 10]);
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Move CPU', 'the focus stays');
  await button('Size of CPU').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowLeft');
  assert.deepEqual([await at('cpu'), (await at('rows')).y], [{ x: 0, y: 3, w: 5, h: 8 }, 11]);

  const from = await button('Move Load').boundingBox();
  await page.mouse.move(from.x + 5, from.y + 5);
  await page.mouse.down();
  await page.mouse.move(from.x + 5 - 600, from.y + 5 + 4 * 48, { steps: 6 });
  await page.mouse.up();
  const moved = await at('now');
  assert.equal(moved.x, 0);
  const places = (await board()).panels.map((p) => p.place);
  for (const [i, a] of places.entries()) {
    for (const b of places.slice(i + 1)) assert.ok(a.x >= b.x + b.w || b.x >= a.x + a.w || a.y >= b.y + b.h || b.y >= a.y + a.h, `${JSON.stringify(a)} lies on ${JSON.stringify(b)}`);
  }
  await button('Save').click();
  await until('version 2', async () => kept().length === 2);
  assert.deepEqual(kept()[1].panels.find((p) => p.id === 'later').queries, [{ m: 'sum:latency' }], 'an unknown panel is kept as it is');
  sound();
});

test('a panel is duplicated, and what was done last is undone by button and by Ctrl+Z', async () => {
  keep(web);
  await open('/d/web');
  await button('Edit').click();
  const undo = page.locator('#undo');
  const shown = async () => (await panels()).map((p) => p.id).sort().join();
  const all = await shown();
  const first = await board();
  assert.ok(await undo.isDisabled(), 'nothing is done yet');

  await button('Duplicate CPU').click();
  await until('the copy', async () => (await panel('p8'))?.series.length === 4);
  assert.deepEqual((await board()).panels.at(-1).place, { x: 0, y: 15, w: 6, h: 7 });
  assert.ok(await page.evaluate(() => document.querySelector('[data-id=p8]').contains(document.activeElement)), 'the focus goes to the copy');
  await button('Remove CPU').first().click();
  await until('no original', async () => (await panel('cpu')) === undefined);
  assert.equal(await undo.getAttribute('title'), 'Undo the removal of CPU');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'undo');
  await page.keyboard.press('Enter');
  await until('the original', async () => (await panel('cpu'))?.series.length === 4);
  assert.equal(await text('#readout'), 'Undone: the removal of CPU.');
  await page.keyboard.press('Control+z');
  await until('no copy', async () => (await shown()) === all);
  assert.deepEqual(await board(), first);
  assert.ok(await undo.isDisabled());
  assert.equal(await page.evaluate(() => document.activeElement.id), 'add-panel', 'the focus is not lost');

  // A drag is one change, whatever it passes; a neighbour in the row changes places.
  const from = await button('Move CPU').boundingBox();
  await page.mouse.move(from.x + 5, from.y + 5);
  await page.mouse.down();
  await page.mouse.move(from.x + 600, from.y + 5, { steps: 8 });
  await page.mouse.up();
  const x = async (id) => (await board()).panels.find((p) => p.id === id).place.x;
  assert.deepEqual([await x('cpu'), await x('two')], [6, 0]);
  await button('Size of CPU').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Control+z');
  assert.deepEqual([await x('cpu'), await x('two')], [6, 0], 'the size alone is undone');
  await page.keyboard.press('Control+z');
  assert.deepEqual(await board(), first);

  await page.locator('#board-title').fill('Mine');
  await page.locator('#board-title').press('Control+z');
  assert.equal(await undo.getAttribute('title'), 'Undo the change of the title', 'in a field the key is the field’s');
  await button('Add a panel').click();
  await page.locator('#panel-type').selectOption('number');
  await page.keyboard.press('Control+z');
  await button('Done').click();
  assert.deepEqual((await board()).panels.at(-1).place, { x: 0, y: 15, w: 3, h: 4 });
  await undo.click();
  assert.deepEqual((await board()).panels, first.panels, 'a new panel is one change');
  sound();
});

test('a conflict is told, and nothing is overwritten unasked', async () => {
  keep(web);
  await open('/d/web');
  await button('Edit').click();
  await page.locator('#board-title').fill('Mine');
  server.dashboards.get('web').push(JSON.stringify({ ...web, title: 'Theirs' }));
  await button('Save').click();
  await page.locator('#conflict').waitFor();
  assert.match(await text('#conflict-text'), /^Not saved, because somebody else has: dashboard web: version 2 was saved at .* Your changes are still here\.$/);
  assert.equal(kept().length, 2);
  assert.equal((await board()).title, 'Mine');
  await button('Save mine in its place').click();
  await until('version 3', async () => kept().length === 3);
  assert.equal(kept()[2].title, 'Mine');

  await page.locator('#board-title').fill('Mine again');
  server.dashboards.get('web').push(JSON.stringify({ ...web, title: 'Theirs again' }));
  await button('Save').click();
  await page.locator('#conflict').waitFor();
  await button('Take theirs, drop mine').click();
  await until('theirs', async () => (await text('#title')) === 'Theirs again');
  assert.equal(kept().length, 4);
  sound();
});

test('a version is shown as a change, and a save makes it the newest', async () => {
  keep(web);
  server.dashboards.get('web').push(JSON.stringify({ ...web, title: 'Second', panels: web.panels.slice(0, 2) }));
  await open('/d/web');
  await button('Edit').click();
  await button('Versions').click();
  await until('both', async () => (await page.locator('#versions-list li').count()) === 2);
  assert.deepEqual((await page.locator('#versions-list li span').allTextContents()).map((t) => t.replace(/ · .* · /, ' · ')), ['2 (in force) · Second, 2 panels', '1 · Web servers, 7 panels']);
  await button('Show version 1').click();
  await until('the first', async () => (await text('#title')) === 'Web servers');
  assert.equal(await text('#told'), 'This is version 1. “Save” makes it the newest, “Discard” leaves it.');
  assert.equal(kept().length, 2, 'nothing is saved yet');
  await button('Discard').click();
  await until('the one in force', async () => (await text('#title')) === 'Second');

  await button('Edit').click();
  await page.locator('#board-title').fill('Mine');
  assert.ok(await page.locator('#versions-open').isDisabled(), 'changes would be lost');
  await page.locator('#board-title').fill('Second');
  await button('Versions').click();
  await button('Show version 1').click();
  await until('the first again', async () => (await text('#title')) === 'Web servers');
  await button('Save').click();
  await until('version 3', async () => kept().length === 3);
  assert.deepEqual(kept()[2], { ...web, range: { ...web.range } });
  sound();
});

test('what cannot be saved stays, and says why', async () => {
  keep(web);
  await open('/d/web');
  await button('Edit').click();
  await page.locator('#board-title').fill('Mine');
  server.api = (path, q, body, method) => (method === 'PUT' ? { status: 403, body: { error: { code: 403, message: 'Forbidden' } } } : null);
  await button('Save').click();
  await until('the reason', async () => (await text('#told')) === 'Not saved: Forbidden. Your changes are still here.');
  assert.ok(await page.locator('#token-form').isVisible(), 'another token may do');
  assert.equal((await board()).title, 'Mine');
  server.api = () => null;
  await page.locator('#token').fill('another');
  await page.locator('#token').press('Enter');
  await untilStatus(page, 'live');
  assert.equal((await board()).title, 'Mine', 'a new token drops nothing');
  await button('Save').click();
  await until('version 2', async () => kept().length === 2);
  sound();
});

test('without its table a dashboard is in a link', async () => {
  const missing = { status: 424, body: { error: { code: 424, message: 'dashboards are kept in table downpour-state (DOWNPOUR_TABLE_STATE), which -create-tables makes: no such table: downpour-state' } } };
  server.api = (path) => (path.startsWith('/api/dashboards') ? missing : null);
  await open('/d/web', 'idle');
  assert.match(await text('#told'), /^dashboards are kept in table downpour-state .* Until then a dashboard can be kept in a link, and in a file\.$/);
  await button('Add a panel').click();
  await page.locator('#metric').fill('load.1min');
  await page.locator('#metric').press('Enter');
  await button('Done').click();
  await until('a line', async () => (await panel('p1')).series.length === 1);
  await button('Copy link').click();
  await until('the link', async () => page.url().includes('doc='));
  const link = page.url();
  await opened();
  await page.goto(link);
  await until('the same', async () => (await panels()).length === 1 && (await panel('p1')).series.length === 1);
  assert.deepEqual((await board()).panels[0].queries, ['avg:auto:load.1min']);
  sound();
});

test('a hostile document does nothing but say so', async () => {
  const fine = (part) => JSON.stringify({ form: 1, panels: [{ id: 'a', type: 'lines', place: { x: 0, y: 0, w: 6, h: 4 }, ...part }] });
  for (const [document, said] of [
    ['{"form":1', 'The document is not JSON.'],
    ['[]', 'The document is no dashboard: it has no form.'],
    [JSON.stringify({ form: 1, panels: Array.from({ length: 10_000 }, (_, i) => ({ id: `p${i}` })) }), 'The document has 10000 panels: 500 are the most.'],
    [fine({ id: '"><script>' }), 'Panel 1: its id is none.'],
    [fine({ place: { x: 0, y: 1e300, w: 1, h: 1 } }), 'Panel 1: its place is not on the grid.'],
    [fine({ queries: [7] }), 'Panel 1: its queries are none.'],
    [`{"form":1,"title":"${'x'.repeat(1 << 20)}","panels":[]}`, 'The document has more than 1 MiB.'],
  ]) {
    server.dashboards.set('web', [document]);
    await page.goto('about:blank');
    await open('/d/web', 'error');
    assert.equal(await text('#status'), said);
  }
  await page.goto('about:blank');
  await open('/d/web#doc=AAAA', 'error');
  assert.equal(await text('#status'), 'The link is damaged: it holds no dashboard.');

  keep({ ...web, form: 2 });
  await page.goto('about:blank');
  await open('/d/web');
  assert.match(await text('#told'), /^A later release made this dashboard\./);
  assert.ok(await button('Edit').isDisabled());

  keep(JSON.parse(fine({ queries: [{ metric: 'm', aggregator: 'sum', explicitTags: true }] })));
  await page.goto('about:blank');
  await open('/d/web', 'idle');
  await until('the fault', async () => (await text('[data-id=a] .said')) === 'Query 1: the panel does not draw a query with “explicitTags”.');
  sound();
});

test('a file is exported and imported', async () => {
  keep(web);
  await open('/d/web');
  const [download] = await Promise.all([page.waitForEvent('download'), button('Export').click()]);
  assert.equal(download.suggestedFilename(), 'web.json');
  const file = await download.path();
  assert.deepEqual(JSON.parse(readFileSync(file)), web);
  await open('/d/', 'complete');
  assert.equal(await page.locator('#dashboards a').getAttribute('href'), '/d/web');
  await page.locator('#import').setInputFiles({ name: 'Other Web.json', mimeType: 'application/json', buffer: readFileSync(file) });
  await page.waitForURL(/\/d\/other-web#doc=/);
  await until('the panels', async () => (await panels()).length === web.panels.length);
  await button('Edit').click();
  await button('Save').click();
  await until('version 1', async () => server.dashboards.has('other-web'));
  sound();
});

test('on a phone the panels lie in one column', async () => {
  keep(web);
  await opened({ viewport: { width: 390, height: 800 } });
  await open('/d/web');
  const boxes = await page.evaluate(() => [...document.querySelectorAll('.panel')].map((p) => { const b = p.getBoundingClientRect(); return [p.dataset.id, b.left, b.right]; }));
  assert.deepEqual(boxes.map(([id]) => id), ['note', 'now', 'later', 'cpu', 'two', 'rows', 'none']);
  assert.ok(boxes.every(([, left, right]) => left === boxes[0][1] && right === boxes[0][2] && right <= 390));
  await until('nothing to scroll sideways', () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  sound();
});

test('axe finds nothing in any state, light and dark, wide and narrow', () => axeFindsNothing(boards));

// The same page with a gateway behind it: what is saved there is what the page shows, and a second
// page that saves is notified.
if (real) {
  test('a real gateway keeps it', async () => {
    const put = (value) => fetch(`${real}/api/put?sync`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(['a', 'b'].map((host) => ({ metric: 'board.test', timestamp: Math.floor(Date.now() / 1000), value, tags: { host } }))) });
    await put(1);
    await opened({}, real);
    const document = { form: 1, title: 'Real', range: { from: '15m-ago', to: '' }, panels: [{ id: 'p1', type: 'lines', title: 'B', place: { x: 0, y: 0, w: 6, h: 8 }, queries: ['sum:board.test{host=*}'] }] };
    const saved = await fetch(`${real}/api/dashboards/real`, { method: 'PUT', headers: { 'If-None-Match': '*' }, body: JSON.stringify(document) });
    assert.equal(saved.status, 200);
    await page.goto(`${real}/d/real`);
    await until('two lines', async () => (await panel('p1'))?.series.length === 2);
    await button('Edit').click();
    await page.locator('#board-title').fill('Mine');
    const other = await fetch(`${real}/api/dashboards/real`, { method: 'PUT', headers: { 'If-Match': saved.headers.get('ETag') }, body: JSON.stringify({ ...document, title: 'Theirs' }) });
    assert.equal(other.headers.get('ETag'), '"2"');
    await button('Save').click();
    await page.locator('#conflict').waitFor();
    assert.equal((await (await fetch(`${real}/api/dashboards/real`)).json()).title, 'Theirs');
    await button('Save mine in its place').click();
    await until('version 3', async () => (await text('#told')) === 'Saved as version 3.');
    assert.equal((await (await fetch(`${real}/api/dashboards/real`)).json()).title, 'Mine');
    const before = (await panel('p1')).points;
    await until('a point that is put appears', async () => { await put(2); return (await panel('p1')).points > before; });
    assert.equal(await statusOf(page), 'live');
    sound();
  });
}
