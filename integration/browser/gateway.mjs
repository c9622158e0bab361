// The page of a real gateway: what it draws, says and saves is what the HTTP API
// answers; through a proxy that lets no socket pass, and through one that makes
// the page look foreign.
//
// Usage: node gateway.mjs URL

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, request as ask } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { tableFromIPC } from 'apache-arrow';
import { launch, until, untilStatus, watch } from './chromium.mjs';

const base = process.argv[2];
const now = Math.floor(Date.now() / 1000);
let browser;
let page;
let faults;

before(async () => { browser = await launch(); });
after(() => browser?.close());
beforeEach(async () => {
  await page?.context().close();
  page = await (await browser.newContext({ viewport: { width: 1200, height: 800 }, acceptDownloads: true })).newPage();
});

const post = async (path, body, headers = {}) => {
  const response = await fetch(base + path, { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response;
};
const put = (metric, points, tags) => post('/api/put', points.map(([timestamp, value]) => ({ metric, timestamp, value, tags })));
const open = async (hash, status, url = base) => {
  faults = watch(page, new URL(url).host, (text) => /WebSocket connection to|Failed to load resource/.test(text));
  await page.goto(`${url}/#${hash}`);
  await untilStatus(page, status);
};
const columns = () => page.evaluate(() => window.__downpour.columns());
const text = (selector) => page.locator(selector).textContent();
const saved = async (name) => {
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name, exact: true }).click()]);
  return readFileSync(await download.path());
};

test('a name that does not exist yet comes to life, and late points show', async () => {
  await open('start=15m-ago&m=avg:page.late{host=*}', 'unknown');
  assert.equal(await text('#status'), 'No metric is called “page.late” yet. Asking again every second.');
  await put('page.late', [[now - 300, 1], [now - 100, 2]], { host: 'a' });
  await untilStatus(page, 'live');
  await put('page.late', [[now - 200, 1.5]], { host: 'a' });
  await until('the late point', async () => (await columns())[0].join() === [now - 300, now - 200, now - 100].join());
  assert.deepEqual((await columns())[1], [1, 1.5, 2]);
  assert.deepEqual(faults, []);
});

test('CSV and Arrow hold what the API answers', async () => {
  const points = Array.from({ length: 50 }, (_, i) => [now - 500 + 10 * i, i % 7 ? i / 3 : i]);
  await put('page.saved', points, { host: 'a', dc: 'x' });
  await put('page.saved', [[now - 100, '9007199254740993'], [now - 90, '-9223372036854775808']], { host: 'b', dc: 'x' });
  await open(`start=${now - 600}&end=${now}&m=avg:page.saved{host=*}&m=sum:page.saved`, 'complete');
  const answer = await (await post('/api/query?arrays=true', { start: now - 600, end: now, msResolution: true,
    queries: [{ aggregator: 'avg', metric: 'page.saved', tags: { host: '*' } }, { aggregator: 'sum', metric: 'page.saved' }] })).text();
  const results = JSON.parse(answer.replace(/,(-?\d{16,})\]/g, ',"$1"]')); // digits that a double would lose

  const csv = String(await saved('CSV')).trim().split('\r\n').map((l) => l.split(','));
  for (const [n, r] of results.entries()) {
    const cells = csv.slice(1).filter((l) => l[n + 1] !== '').map((l) => [Date.parse(l[0]), l[n + 1]]);
    assert.deepEqual(cells, r.dps.map(([t, v]) => [t, String(v)]), csv[0][n + 1]);
  }
  const table = tableFromIPC(await saved('Arrow'));
  const rows = table.toArray().map((row) => row.toJSON());
  assert.equal(rows.length, results.reduce((n, r) => n + r.dps.length, 0));
  for (const [n, r] of results.entries()) {
    const query = n < results.length - 1 ? 0 : 1;
    const own = rows.filter((row) => row.query === query && (query === 1 || row.host === r.tags.host));
    assert.deepEqual(own.map((row) => [Number(row.timestamp), row.value]), r.dps.map(([t, v]) => [t, Number(v)]));
    own.forEach((row, i) => { if (typeof r.dps[i][1] === 'string') assert.equal(String(row.value_int), r.dps[i][1]); });
  }
  assert.deepEqual(faults, []);
});

test('annotations, rows, explain and trace are those of the gateway', async () => {
  await put('page.told', [[now - 300, 1], [now - 200, 2]], { host: 'a' });
  await post('/api/annotation', { startTime: now - 250, description: 'page deployed' });
  await open('start=15m-ago&m=avg:page.told&open=notes-list,explain,trace,table', 'live');
  await until('the annotation', async () => (await text('#notes-list')).includes('page deployed'));
  await until('the rows', async () => /^2 points from [12] rows in \d+ ms$/.test((await text('#count')).trim()));
  await until('the plan', async () => (await text('#explain')).includes('in-process'));
  await until('what it took', async () => /[12] rows? and 2 points read, \d+ points? sent/.test(await text('#trace')));
  assert.equal(await page.locator('#table tbody tr').count(), 2);
  assert.deepEqual(faults, []);
});

test('a tag is completed from the metric itself, and split by', async () => {
  for (const host of ['web01', 'web02']) await put('page.split', [[now - 60, 1], [now - 30, 2]], { host, rack: 'r1' });
  await put('page.other', [[now - 60, 1]], { host: 'elsewhere', rack: 'r1' });
  await open('start=15m-ago&m=sum:page.split', 'live');
  await page.getByRole('button', { name: 'host', exact: true }).click();
  await until('two lines', async () => (await page.evaluate(() => window.__downpour.series())).join() === 'host=web01,host=web02');
  await page.getByLabel('Tag value').fill('');
  const options = page.locator('#tag-value-0-list [role=option]');
  await options.nth(2).waitFor();
  assert.deepEqual(await options.allTextContents(), ['*', 'web01', 'web02']);
  assert.deepEqual(faults, []);
});

test('a formula is a line that moves with a put; what it cannot be is said at its row', async () => {
  await put('page.ratio', [[now - 300, 1], [now - 100, 3]], { host: 'a' });
  await open('start=15m-ago&m=avg:page.ratio', 'live');
  await page.getByRole('button', { name: 'Add a formula' }).click();
  const formula = page.getByLabel('Formula', { exact: true });
  await formula.fill('a + <img src=x onerror=alert(1)>');
  await formula.press('Enter');
  await until('the reason', async () => (await page.getByTestId('formula-said').textContent()) === 'Character 6: “img” is no query: their letters are a, b, c and so on.');

  await formula.fill('a / (a + 1) * 100');
  await formula.press('Enter');
  const name = page.getByTestId('formula-name');
  await name.fill('<b>share</b>');
  await name.press('Enter');
  await until('the line of the formula', async () => (await columns()).length === 3 && (await columns())[2].join() === '50,75');
  await put('page.ratio', [[now - 50, 4]], { host: 'a' });
  await until('its next point', async () => (await columns())[2].join() === '50,75,80');
  await until('its name as text', async () => (await text('#legend')).includes('<b>share</b>'));
  assert.match(decodeURIComponent(page.url()), /&f=a\+\/\+\(a\+\+\+1\)\+\*\+100&fn=<b>share<\/b>/);
  assert.deepEqual(faults, []);
});

test('percentiles of histograms are lines with the values of the API; what is none is said at the row', async () => {
  const buckets = [{ '0,10': 8, '10,20': 1, '20,40': 1 }, { '0,10': 1, '10,20': 8, '20,40': 1 }, { '0,10': 1, '10,20': 1, '20,40': 8 }];
  const histograms = (host, ages) => ages.map((age, i) => ({ metric: 'page.latency', timestamp: now - age, tags: { host }, buckets: buckets[i % 3], underflow: 0, overflow: 0 }));
  await post('/api/histogram', [...histograms('a', [300, 200, 100]), ...histograms('b', [300, 200])]);
  const api = async () => (await post('/api/query?arrays=true', { start: now - 900, msResolution: true,
    queries: [{ aggregator: 'sum', metric: 'page.latency', tags: { host: '*' }, percentiles: [50, 99.9] }] })).json();
  const series = () => page.evaluate(() => window.__downpour.series());
  const equal = async () => {
    const [[times, ...rows], answer] = [await columns(), await api()];
    return rows.length === 4 && answer.every((r, n) => JSON.stringify(r.dps) === JSON.stringify(times.map((t, i) => [t * 1000, rows[n][i]]).filter(([, v]) => v !== undefined && v !== null)));
  };

  await open('start=15m-ago&m=sum:page.latency{host=*}', 'nodata'); // histograms by themselves are no points
  const field = page.getByLabel('Percentiles');
  const write = async (text) => { await field.fill(text); await field.press('Enter'); };
  await write('50, 99.9');
  await untilStatus(page, 'live');
  await until('the lines of the API', equal);
  assert.deepEqual(await series(), (await api()).map((r) => `p${Number(r.metric.replace('page.latency_pct_', ''))} host=${r.tags.host}`));
  for (const name of await series()) assert.ok((await text('#legend')).includes(name), name);
  await post('/api/histogram', histograms('b', [50]));
  await until('the next histogram', async () => (await columns())[0].at(-1) === now - 50 && await equal());

  for (const [wrong, word] of [['50,150', '150'], ['<b>p50</b>', '<b>p50</b>'], ['50:99]', '50:99]']]) {
    await write(wrong);
    await until('the reason', async () => (await text('#said')) === `Percentiles are numbers from 0 to 100, as in 50,99.9: “${word}” is none.`);
    assert.equal(await field.getAttribute('aria-invalid'), 'true');
    await page.reload();
    await untilStatus(page, 'error');
    assert.equal(await field.inputValue(), wrong);
    assert.equal(await page.getByRole('combobox', { name: 'Metric' }).inputValue(), 'page.latency');
  }
  await write('99.9');
  await untilStatus(page, 'live');
  await until('no reason', async () => (await text('#said')) === '' && (await field.getAttribute('aria-invalid')) === null);
  assert.match(decodeURIComponent(page.url()), /&m=sum:percentiles\[99\.9\]:page\.latency\{host=\*\}/);
  await page.reload();
  await until('the same lines', async () => (await series()).join() === 'p99.9 host=a,p99.9 host=b');
  assert.deepEqual(faults, []);
});

// proxy passes requests on to the gateway, with headers as a proxy sends them;
// upgrade says whether sockets pass.
async function proxy({ host, upgrade }) {
  const target = new URL(base);
  const forward = (r) => ask({ agent: false, host: target.hostname, port: target.port, path: r.url, method: r.method, headers: { ...r.headers, ...(host ? { host } : {}) } });
  const server = createServer((r, w) => {
    const on = forward(r).on('response', (answer) => { w.writeHead(answer.statusCode, answer.headers); answer.pipe(w); }).on('error', () => w.destroy());
    r.pipe(on);
  });
  server.on('upgrade', (r, socket) => {
    if (!upgrade) return socket.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    forward(r).on('response', (answer) => {
      answer.destroy();
      socket.end(`HTTP/1.1 ${answer.statusCode} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    })
      .on('upgrade', (answer, inner) => {
        socket.write(`HTTP/1.1 101 Switching Protocols\r\n${Object.entries(answer.headers).map(([k, v]) => `${k}: ${v}\r\n`).join('')}\r\n`);
        inner.pipe(socket).pipe(inner);
        for (const s of [inner, socket]) s.on('error', () => { inner.destroy(); socket.destroy(); });
      }).end();
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => { server.closeAllConnections(); server.close(); } };
}

test('a heat map has the counts that the API answers for the buckets of histograms, and goes on', async () => {
  const histogram = (host, age, counts) => ({ metric: 'page.heat', timestamp: now - age, tags: { host }, buckets: Object.fromEntries(['0,10', '10,20', '20,40'].map((k, i) => [k, counts[i]])), underflow: 0, overflow: 0 });
  await post('/api/histogram', [histogram('a', 300, [8, 1, 0]), histogram('b', 300, [2, 5, 0]), histogram('a', 100, [0, 7, 3])]);
  const document = { form: 1, title: 'Heat', range: { from: '15m-ago', to: '' }, panels: [
    { id: 'heat', type: 'heatmap', title: 'Heat', place: { x: 0, y: 0, w: 12, h: 8 }, unit: 'ms', queries: ['sum:show-histogram-buckets:page.heat'] }] };
  const put = await fetch(`${base}/api/dashboards/heat`, { method: 'PUT', headers: { 'If-None-Match': '*' }, body: JSON.stringify(document) });
  assert.equal(put.status, 200);
  faults = watch(page, new URL(base).host);
  await page.goto(`${base}/d/heat`);
  const drawn = () => page.evaluate(() => {
    const { labels, data } = window.__downpour.drawing('heat')?.picture ?? { labels: [], data: [[]] };
    return Object.fromEntries(labels.map((l, i) => [l, data[i + 1].reduce((n, c) => n + (c ?? 0), 0)]));
  });
  const answered = async () => {
    const answer = await (await post('/api/query?arrays=true', { start: now - 900, queries: [{ aggregator: 'sum', metric: 'page.heat', showHistogramBuckets: true }] })).json();
    const bounds = answer.map((r) => [/_([\d.]+)_([\d.]+)$/.exec(r.metric), r.dps.reduce((n, [, v]) => n + v, 0)]).filter(([b]) => b);
    return Object.fromEntries(bounds.map(([[, low, high], n]) => [`${Number(low)} ms to ${Number(high)} ms`, n]));
  };
  await until('the counts', async () => JSON.stringify(await drawn()) === JSON.stringify({ '0 ms to 10 ms': 10, '10 ms to 20 ms': 13, '20 ms to 40 ms': 3 }));
  assert.deepEqual(await drawn(), await answered());
  await post('/api/histogram', [histogram('b', 50, [0, 0, 4])]);
  await until('the next histogram', async () => (await drawn())['20 ms to 40 ms'] === 7);
  assert.deepEqual(await drawn(), await answered());
  assert.deepEqual(faults, []);
});

test('behind a proxy without WebSocket the page polls, and new points come', async () => {
  const through = await proxy({ upgrade: false });
  try {
    await put('page.polled', [[now - 60, 1], [now - 30, 2]], { host: 'a' });
    await open('start=15m-ago&m=avg:page.polled', 'polling', through.url);
    assert.equal((await columns())[0].length, 2);
    await put('page.polled', [[now - 10, 3]], { host: 'a' });
    await until('the new point', async () => (await columns())[1].includes(3));
    assert.deepEqual(faults, []);
  } finally {
    through.close();
  }
});

test('behind a proxy that changes the host name, the page says why it is refused', async () => {
  const through = await proxy({ host: new URL(base).host, upgrade: true });
  try {
    await open('start=15m-ago&m=avg:page.polled', 'disconnected', through.url);
    await until('the reason', async () => (await text('#status')).includes(`the server refuses this page: CORS domain not allowed. The domain [${through.url}] is not permitted access`));
  } finally {
    through.close();
  }
});
