// The states that the page can be in, each with the script that leads there: for
// the accessibility check and for the screenshots.

import { now, result } from './scripted.mjs';

const wave = (phase, height, base = 0) => (t) => Number((base + height * (1 + Math.sin(t / 97 + phase) * 0.6 + Math.sin(t / 31 + phase * 3) * 0.2)).toFixed(2));

const hosts = ['web01', 'web02', 'db01', 'cache01'];

const start = (query) => {
  const ago = /^(\d+)([mhd])-ago$/.exec(query.start);
  return ago ? now() - ago[1] * { m: 60, h: 3600, d: 86400 }[ago[2]] : query.start;
};

export const span = (query) => {
  const [from, to] = [start(query), query.end ?? now()];
  return { from, to, step: Math.max(10, 10 * Math.ceil((to - from) / 4000)) };
};

// hostsOf is a line for each host; the second has a gap, the third begins late.
export const hostsOf = (query) => hosts.map((host, i) => {
  const s = span(query);
  const width = s.to - s.from;
  const hole = (t) => (i === 1 && t > s.to - width * 0.55 && t < s.to - width * 0.4) || (i === 2 && t < s.to - width * 0.8);
  return result(query.queries[0].metric, { host }, { ...s, value: (t) => (hole(t) ? undefined : wave(i, 12 + 9 * i, 4)(t)) });
});

const disk = (query) => [result(query.queries[0].metric, {}, { ...span(query), aggregateTags: ['host'], value: (t) => 41e9 + (t % 90000) * 21000 })];

const requests = wave(0, 900, 400);
const failures = (i) => wave(i + 1, 14 + 6 * i, 3);

// perHost is a line for each of three hosts, of value(i)(t).
const perHost = (metric, of, value) => hosts.slice(0, 3).map((host, i) => result(metric, { host }, { ...span(of), value: value(i) }));

// failing has two queries, and a formula over them.
const failing = (query) => {
  if (query.metrics) return perHost(query.outputs[0].id, query.time, (i) => (t) => (failures(i)(t) / requests(t)) * 100);
  return perHost(query.queries[0].metric, query, (i) => (query.queries[0].metric === 'requests.failed' ? failures(i) : requests));
};

// latency has a line for each requested percentile, as histograms are answered.
const latency = (query) => {
  const { metric, percentiles = [] } = query.queries[0];
  return percentiles.map((p) => result(`${metric}_pct_${p.toFixed(1)}`, {}, { ...span(query), aggregateTags: ['host'], value: wave(0, p / (100.5 - p), p / 4) }));
};

const byMetric = (query) => ({ 'cpu.user': hostsOf, 'disk.used': disk })[query.queries[0].metric]?.(query) ?? [];

// stored is a gateway with some metrics, sketched answers all but one of them.
const stored = () => ({
  metrics: ['proc.loadavg.1min', 'proc.meminfo.memfree', 'disk.used', 'requests.total', 'room.temperature', 'batch.a-job-with-quite-a-long-name.rows.written.per_second'],
  dashboards: new Map([['web', [JSON.stringify({ form: 1, title: 'Web servers', panels: [] })]], ['db', [JSON.stringify({ form: 1, title: 'Databases', panels: [] })]]]),
});

const sketched = (query) => {
  const { metric } = query.queries[0];
  if (metric === 'proc.meminfo.memfree') return [];
  return [result(metric, {}, { ...span(query), step: 60, aggregateTags: ['host'], value: wave(metric.length, 3 * metric.length, metric.length) })];
};

const notes = (path, parameters, body) => {
  if (path !== '/api/query' || !body?.globalAnnotations) return null;
  const s = span(body);
  const width = s.to - s.from;
  const at = (share, description) => ({ tsuid: '', startTime: Math.floor(s.from + width * share), description });
  return { body: [{ metric: body.queries[0].metric, tags: {}, aggregateTags: [], globalAnnotations: [at(0.3, 'deploy 2.14'), at(0.78, 'cache cleared')], dps: [[s.to, 1]] },
    { statsSummary: { rowsPreFilter: 4, dpsPreFilter: 340, emittedDPs: 1, totalTime: 1.2 } }] };
};

const plan = { plan: 'scan tsdb metric 000001 rows [1795251600, 1795255200)\nrange [0000016b015d90, 0000016b016ba0)\naggregate avg', parts: [
  { range: ['0000016b015d90', '00000180000000'], server: 'rs1.example:4280', mode: 'partial', rows: 'all rows' },
  { range: ['00000180000000', '0000016b016ba0'], server: 'in-process', mode: 'strict', rows: 'all rows' }] };

const tree = { name: 'query', ms: 41.2, attributes: { queries: 1 }, children: [
  { name: 'compile', ms: 0.4, attributes: { parts: 2 }, children: [] },
  { name: 'execute', ms: 37.9, attributes: {}, children: [
    { name: 'part', ms: 36.1, attributes: { server: 'rs1.example:4280', rows: 1200, points: 432000 }, children: [] },
    { name: 'part', ms: 21.7, attributes: { server: 'in-process', rows: 310, points: 111600 }, children: [] }] },
  { name: 'merge', ms: 2.1, attributes: { groups: 4 }, children: [] }] };

const inspected = (path, parameters, body) => {
  if (path === '/api/query' && parameters.get('explain')) return { body: plan };
  if (path === '/api/query' && parameters.get('trace')) return { body: [{ trace: tree }, { statsSummary: { rowsPreFilter: 1510, dpsPreFilter: 543600, emittedDPs: 360, totalTime: 41.2 } }] };
  return notes(path, parameters, body);
};

// changes are of each kind, and not of all metrics.
export const changes = () => {
  const end = now() * 1000;
  const series = (metric, host, before, after, rest) => ({ metric, tags: { host, dc: 'eu' }, before, after, ...rest });
  return {
    before: { start: end - 1800_000, end: end - 900_000 }, after: { start: end - 900_000, end }, step: 60_000,
    changed: { all: 31, series: [series('cpu.user', 'web01', 12.25, 71.5, { score: 18.2 }), series('requests.total', 'web01', 411, 87.2, { score: 6.1, rate: true }), series('batch.a-job-with-quite-a-long-name.rows.written.per_second', 'db01', 0.00125, 41e9, { score: 2.5 })] },
    appeared: { all: 1, series: [series('errors', '<b>web01</b>', undefined, 4)] },
    vanished: { all: 1, series: [series('disk.used', 'web02', 41e9)] },
    looked: { metrics: 40, series: 8040, sparse: 12 },
    notLookedAt: { metrics: 2, listed: [{ metric: 'logs.lines', why: 'the time budget of 5s was over' }, { metric: 'logs.bytes', why: 'the time budget of 5s was over' }] },
  };
};

const error = (code, message, temporary) => () => ({ error: { code, message, temporary } });
const cpu = 'm=avg:auto:cpu.user{host=*}';

const hover = async (page) => {
  const box = await page.locator('#chart .u-over').boundingBox();
  await page.mouse.move(box.x + box.width * 0.62, box.y + box.height * 0.5);
};

// unfold shows what folds on a narrow screen.
export const unfold = async (page) => {
  const fold = page.locator('#fold');
  if (await fold.isVisible() && (await fold.getAttribute('aria-expanded')) === 'false') await fold.click();
};

// Each scene: hash, status to wait for; script(server) before, act(page) after, narrow(page) once its
// window has become narrow.
export const scenes = {
  live: { hash: `start=15m-ago&${cpu}`, status: 'live', script: (s) => { s.answer = byMetric; s.api = notes; }, act: hover },
  several: { hash: `start=6h-ago&${cpu}&o=&m=max:auto:disk.used&o=axis+x1y2`, status: 'live', script: (s) => { s.answer = byMetric; s.api = notes; } },
  pinned: {
    hash: `start=15m-ago&${cpu}`, status: 'live', script: (s) => { s.answer = byMetric; s.api = notes; },
    act: async (page) => {
      const box = await page.locator('#chart .u-over').boundingBox();
      for (const x of [0.3, 0.66]) await page.mouse.click(box.x + box.width * x, box.y + box.height * 0.4);
      await page.mouse.move(5, 5);
    },
  },
  zoomed: {
    hash: `start=15m-ago&${cpu}`, status: 'live', script: (s) => { s.answer = byMetric; },
    act: async (page) => {
      const box = await page.locator('#chart .u-over').boundingBox();
      await page.mouse.move(box.x + box.width * 0.3, box.y + 60);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * 0.6, box.y + 90, { steps: 4 });
      await page.mouse.up();
    },
  },
  changed: {
    hash: `start=15m-ago&${cpu}`, status: 'live', script: (s) => { s.answer = byMetric; s.api = (path) => (path === '/api/changes' ? { body: changes() } : null); },
    act: async (page) => { await page.locator('#what-changed').click(); await page.locator('#changes li').first().waitFor(); },
  },
  formula: {
    hash: 'start=15m-ago&m=sum:auto:requests.failed{host=*}&o=&m=sum:auto:requests.total{host=*}&o=&f=a+/+b+*+100&fn=failed+%25&fo=axis+x1y2'
      + ['web01', 'web02', 'db01'].map((h) => `&hide=requests.total+host%3D${h}`).join(''),
    status: 'live', script: (s) => { s.answer = failing; s.metrics = ['requests.failed', 'requests.total']; }, act: hover,
  },
  percentiles: { hash: 'start=15m-ago&m=sum:auto:percentiles[50,99,99.9]:request.latency&ylog', status: 'live', script: (s) => { s.answer = latency; s.metrics = ['request.latency']; }, act: hover },
  nopercentile: { hash: 'start=15m-ago&m=sum:auto:percentiles[50,150]:request.latency', status: 'error', script: (s) => { s.answer = latency; s.metrics = ['request.latency']; } },
  log: { hash: `start=15m-ago&${cpu}&ylog`, status: 'live', script: (s) => { s.answer = byMetric; } },
  paused: { hash: `start=15m-ago&${cpu}&pause=${now()}`, status: 'paused', script: (s) => { s.answer = byMetric; } },
  inspected: { hash: `start=15m-ago&${cpu}&open=table,notes-list,explain,trace`, status: 'live', script: (s) => { s.answer = byMetric; s.api = inspected; } },
  completion: {
    hash: `start=15m-ago&${cpu}`, status: 'live', script: (s) => { s.answer = byMetric; },
    act: async (page) => { await unfold(page); await page.locator('#tag-value-0').fill('web'); await page.locator('#tag-value-0-list [role=option]').first().waitFor(); await page.keyboard.press('ArrowDown'); },
  },
  unfolded: { hash: `start=15m-ago&${cpu}`, status: 'live', script: (s) => { s.answer = byMetric; }, act: unfold, narrow: unfold },
  keys: { hash: `start=15m-ago&${cpu}`, status: 'live', script: (s) => { s.answer = byMetric; }, act: (page) => page.keyboard.press('?') },
  adding: {
    hash: `start=15m-ago&${cpu}&shift=1h`, status: 'live', script: (s) => { s.answer = byMetric; s.api = notes; Object.assign(s, { dashboards: stored().dashboards }); },
    act: async (page) => { await page.locator('#to-dashboard').click(); await page.locator('#adding').waitFor(); },
  },
  nearby: { hash: 'm=avg:cpu{host=*}', status: 'unknown', script: (s) => { s.answer = () => ({ error: { code: 400, message: "No such name for 'metrics': 'cpu'", temporary: true, suggestions: ['sys.cpu', 'cpu.user'] } }); }, act: unfold },
  history: {
    hash: `start=15m-ago&${cpu}`, status: 'live', script: (s) => { s.answer = byMetric; },
    act: async (page) => { await page.locator('#history-open').click(); await page.locator('#history-list a').first().waitFor(); },
  },
  badtime: {
    hash: `start=${now() - 900}&end=${now()}&${cpu}`, status: 'complete', script: (s) => { s.answer = byMetric; },
    act: async (page) => { await page.locator('#from').fill('5x'); await page.keyboard.press('Tab'); },
  },
  nodata: { hash: 'm=avg:quiet.metric{host=nobody}', status: 'nodata', script: () => {} },
  unknown: { hash: 'm=avg:no.such.metric', status: 'unknown', script: (s) => { s.answer = error(400, "No such name for 'metrics': 'no.such.metric'", true); } },
  error: { hash: 'm=avg:cpu.user', status: 'error', script: (s) => { s.answer = error(400, 'Invalid interval: 0m', false); } },
  toomany: {
    hash: 'm=none:cpu.user{host=*}', status: 'toomany',
    script: (s) => { s.answer = (q) => Array.from({ length: 230 }, (_, i) => result('cpu.user', { host: `h${i}` }, { ...span(q), step: 60, value: wave(i, 5 + (i % 40)) })); },
  },
  manylines: {
    hash: 'start=15m-ago&m=none:cpu.user{host=*}&only=h1&most=10', status: 'live',
    script: (s) => { s.answer = (q) => Array.from({ length: 200 }, (_, i) => result('cpu.user', { host: `h${i}.rack-${i % 7}.example` }, { ...span(q), step: 60, value: wave(i, 5 + (i % 40)) })); }, act: hover,
  },
  disconnected: { hash: `start=15m-ago&${cpu}`, status: 'disconnected', script: (s) => { s.answer = byMetric; }, act: async (page, s) => { s.refuse = 503; s.api = () => ({ status: 403, body: { error: { message: 'CORS domain not allowed' } } }); s.drop(); }, then: 'disconnected', first: 'live' },
  polling: { hash: `start=15m-ago&${cpu}`, status: 'polling', script: (s) => { s.refuse = 400; s.answer = byMetric; } },
  start: {
    hash: 'start=15m-ago', status: 'idle', script: (s) => { Object.assign(s, stored(), { answer: sketched }); },
    act: (page) => page.waitForFunction(() => window.__downpour.cards().filter((c) => c.points > 0).length >= 4),
  },
  nometrics: { hash: '', status: 'nometrics', script: (s) => { s.metrics = []; } },
};

// play brings a page into a scene.
export async function play(page, server, scene, untilStatus, extra = '') {
  server.reset();
  scene.script(server);
  await page.goto('about:blank');
  const hash = [scene.hash, extra].filter(Boolean).join('&');
  await page.goto(server.url + (scene.path ?? '/') + (hash && `#${hash}`));
  if (scene.status) await untilStatus(page, scene.first ?? scene.status); // the documentation has none
  await scene.act?.(page, server);
  if (scene.first) await untilStatus(page, scene.status);
}
