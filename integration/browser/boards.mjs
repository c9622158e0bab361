// The states that the page of a dashboard can be in, as scenes.mjs has those of the chart's page.
// A scene's path takes the place of its hash.

import { hostsOf, span, unfold } from './scenes.mjs';
import { now, result } from './scripted.mjs';

export const panel = (id, type, [x, y, w, h], rest) => ({ id, type, title: '', place: { x, y, w, h }, ...rest });

export const web = {
  form: 1, title: 'Web servers', range: { from: '15m-ago', to: '' }, panels: [
    panel('note', 'text', [0, 0, 6, 3], { text: 'Four hosts behind one balancer.\n<script>window.__ran = 1</script> is text.' }),
    panel('now', 'number', [6, 0, 3, 3], { title: 'Load', queries: ['avg:load.1min'] }),
    panel('later', 'candles', [9, 0, 3, 3], { title: 'Latency', queries: [{ m: 'sum:latency' }] }),
    panel('cpu', 'lines', [0, 3, 6, 7], { title: 'CPU', queries: ['avg:auto:cpu.user{host=*}'] }),
    panel('two', 'lines', [6, 3, 6, 7], { title: 'CPU of web01, and disk', queries: ['avg:cpu.user{host=web01}', { m: 'max:disk.used', right: true }] }),
    panel('rows', 'table', [0, 10, 6, 5], { title: 'By host', queries: [{ aggregator: 'avg', metric: 'cpu.user', filters: [{ type: 'wildcard', tagk: 'host', filter: '*', groupBy: true }] }] }),
    panel('none', 'lines', [6, 10, 6, 5], { title: 'Nothing here', queries: ['avg:quiet.metric{host=nobody}'] }),
  ],
};

export const metrics = (query) => {
  const { metric, filters: [of] = [] } = query.queries[0];
  if (metric === 'cpu.user') return hostsOf(query).filter((r) => of?.type !== 'literal_or' || r.tags.host === of.filter);
  if (metric === 'disk.used') return [result(metric, {}, { ...span(query), aggregateTags: ['host'], value: (t) => 41e9 + (t % 90000) * 21000 })];
  if (metric === 'load.1min') return [result(metric, {}, { ...span(query), value: (t) => Number((1.4 + Math.sin(t / 120)).toFixed(3)) })];
  return [];
};

export const kept = (s, document = web) => {
  s.answer = metrics;
  s.dashboards.set('web', [JSON.stringify(document)]);
};

// shared is web with a variable, whose value is in a chart's filter and title, compared with a day ago.
const shared = {
  ...web, variables: [{ name: 'host', label: 'Host', metric: 'cpu.user', tagk: 'host', multi: true, all: true }],
  panels: web.panels.map((p) => (p.id === 'cpu' ? { ...p, title: 'CPU of $host', shift: '1d', queries: ['avg:auto:cpu.user{host=$host}'] } : p)),
};

const edit = async (page) => {
  await unfold(page);
  await page.locator('#edit').click();
};

export const boards = {
  boards: { path: '/d/', status: 'complete', script: (s) => { kept(s); s.dashboards.set('db', [JSON.stringify({ ...web, title: 'Databases', tags: ['prod', 'eu'] })]); } },
  board: {
    path: '/d/web', status: 'live', script: kept,
    act: async (page) => {
      const box = await page.locator('[data-id=cpu] .u-over').boundingBox();
      await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2);
    },
  },
  boardedit: { path: '/d/web', status: 'live', script: kept, act: edit },
  boardpanel: {
    path: '/d/web', status: 'live', script: kept,
    act: async (page) => { await edit(page); await page.getByRole('button', { name: 'Edit CPU', exact: true }).click(); },
  },
  boardvariables: {
    path: '/d/web', hash: 'var-host=web02', status: 'live', script: (s) => { kept(s, shared); s.annotations = [{ startTime: now() - 300, endTime: now() - 120, description: 'deployed' }]; },
    act: async (page) => {
      await unfold(page);
      await page.locator('[data-name=host] > button').click();
      await page.locator('[data-name=host] [role=option]').first().waitFor();
    },
  },
  boardvariablesedit: {
    path: '/d/web', status: 'live', script: (s) => kept(s, shared),
    act: async (page) => { await edit(page); await page.locator('#edit-variables').click(); },
  },
  boardversions: {
    path: '/d/web', status: 'live', script: (s) => { kept(s); s.dashboards.get('web').push(JSON.stringify({ ...web, title: 'Second' })); },
    act: async (page) => { await edit(page); await page.locator('#versions-open').click(); await page.locator('#versions-list li').first().waitFor(); },
  },
  boardnew: { path: '/d/fresh', status: 'idle', script: kept },
  boardconflict: {
    path: '/d/web', status: 'live', script: kept,
    act: async (page, s) => {
      await edit(page);
      await page.locator('#board-title').fill('Mine');
      s.dashboards.get('web').push(JSON.stringify({ ...web, title: 'Theirs' }));
      await page.locator('#save').click();
      await page.locator('#conflict').waitFor();
    },
  },
  boardlater: { path: '/d/web', status: 'live', script: (s) => kept(s, { ...web, form: 2 }) },
  boardlost: { path: '/d/web', status: 'disconnected', first: 'live', script: kept, act: async (page, s) => { s.refuse = 503; s.api = (path) => (path === '/api/query' ? { status: 403, body: { error: { message: 'CORS domain not allowed' } } } : null); s.drop(); } },
};
