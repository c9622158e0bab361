// Dashboards of every type of panel, with units, thresholds and top lines: states of the page as
// boards.mjs has them.

import { kept, metrics as usual, panel } from './boards.mjs';
import { span, unfold } from './scenes.mjs';
import { result } from './scripted.mjs';

const red = (value, amber) => [{ value: amber, colour: 'amber' }, { value, colour: 'red' }];

export const types = {
  form: 1, title: 'Every type', range: { from: '15m-ago', to: '' }, panels: [
    panel('stacked', 'stacked', [0, 0, 6, 7], { title: 'CPU of all hosts', unit: '%', queries: ['avg:1m-avg:cpu.user{host=*}'] }),
    panel('bars', 'bars', [6, 0, 6, 7], { title: 'Requests a minute', unit: 'ops/s', queries: ['sum:1m-sum:requests{code=*}'], thresholds: red(900, 600) }),
    panel('many', 'heatmap', [0, 7, 6, 7], { title: 'Memory of 120 hosts', unit: 'bytes', queries: ['avg:30s-avg:memory{host=*}'] }),
    panel('latency', 'heatmap', [6, 7, 6, 7], { title: 'Latency', unit: 'ms', log: true, queries: ['sum:1m-sum:show-histogram-buckets:latency'] }),
    panel('axes', 'lines', [0, 14, 6, 8], { title: 'Traffic, and CPU on the right', unit: 'bits/s', rightUnit: '%', thresholds: [...red(9e8, 7e8), { value: 20, colour: 'blue', right: true }], queries: ['avg:traffic{nic=*}', { m: 'avg:cpu.user{host=web01}', right: true }] }),
    panel('top', 'lines', [6, 14, 6, 8], { title: 'Memory, the three greatest', unit: 'bytes', legend: 'table', top: { n: 3, by: 'max' }, queries: ['avg:memory{host=*}'] }),
    panel('fine', 'number', [0, 22, 3, 4], { title: 'Used', unit: '%', thresholds: [...red(90, 80), { value: 0, colour: 'green' }], queries: ['avg:cpu.user{host=web01}'] }),
    panel('hot', 'number', [3, 22, 3, 4], { title: 'Memory', unit: 'bytes', thresholds: red(2 ** 31, 2 ** 30), queries: ['sum:memory'] }),
    panel('table', 'table', [6, 22, 6, 4], { title: 'By interface', unit: 'bits/s', queries: ['avg:traffic{nic=*}'] }),
  ],
};

const bounds = [0, 1, 2, 5, 10, 20, 50, 100, 200];

// latencies are the counts of a histogram's buckets; in the middle of the range requests are slow.
const latencies = (query) => {
  const s = { ...span(query), step: 60 };
  const slow = (t) => (t > s.from + 400 && t < s.from + 600 ? 2 : 0);
  const bucket = (name, value) => result(`latency_${name}`, {}, { ...s, aggregateTags: ['host'], value });
  return [
    bucket('UNDERFLOW', () => 0),
    ...bounds.slice(1).map((high, i) => bucket(`${bounds[i]}.0_${high}.0`, (t) => Math.round(900 * Math.exp(-((i - 2 - slow(t)) ** 2) / 2)))),
    bucket('OVERFLOW', (t) => (slow(t) ? 3 : 0)),
  ];
};

const many = (query) => Array.from({ length: 120 }, (_, i) => result('memory', { host: `h${String(i).padStart(3, '0')}` }, {
  ...span(query), step: 30, value: (t) => Math.round(2 ** 30 * (0.6 + 0.3 * Math.sin(i / 19 + t / 400) + (i % 7) / 20)),
}));

// Each code has a point at every time, except 503, which is there for only five minutes.
const requests = (query) => ['200', '404', '503'].map((code, i) => {
  const s = span(query);
  return result('requests', { code }, { ...s, step: 60, value: (t) => (i === 2 && (t < s.from + 300 || t > s.from + 600) ? undefined : Math.round([500, 120, 260][i] * (1 + 0.3 * Math.sin(t / 150 + i)))) });
});

export const metrics = (query) => {
  const { metric, filters: [of] = [], showHistogramBuckets } = query.queries[0];
  if (metric === 'requests') return requests(query);
  if (metric === 'latency' && showHistogramBuckets) return latencies(query);
  if (metric === 'memory') return of ? many(query) : [result(metric, {}, { ...span(query), aggregateTags: ['host'], value: (t) => 2.2 * 2 ** 30 + (t % 900) * 2 ** 18 })];
  if (metric === 'traffic') return ['eth0', 'eth1'].map((nic, i) => result(metric, { nic }, { ...span(query), value: (t) => 4e8 * (1 + i * 0.6) * (1 + 0.5 * Math.sin(t / 200 + i)) }));
  return usual(query);
};

const script = (s) => {
  kept(s, types);
  s.answer = metrics;
};

const open = (title) => async (page) => {
  await unfold(page);
  await page.locator('#edit').click();
  await page.getByRole('button', { name: `Edit ${title}`, exact: true }).click();
};

export const panelBoards = {
  types: { path: '/d/web', status: 'live', script },
  typeslower: { path: '/d/web', status: 'live', script, act: async (page) => { await page.locator('[data-id=hot]').scrollIntoViewIfNeeded(); await page.locator('[data-id=table] tbody tr').first().waitFor(); } },
  typespoint: {
    path: '/d/web', status: 'live', script,
    act: async (page) => {
      await page.locator('[data-id=latency]').scrollIntoViewIfNeeded();
      await page.locator('[data-id=latency] .levels li').first().waitFor();
      const box = await page.locator('[data-id=latency] .u-over').boundingBox();
      await page.mouse.move(box.x + box.width * 0.55, box.y + box.height * 0.4);
    },
  },
  typesfull: { path: '/d/web', hash: 'panel=many', status: 'live', script },
  typesfullnumber: { path: '/d/web', hash: 'panel=hot', status: 'live', script },
  typeskeys: { path: '/d/web', status: 'live', script, act: (page) => page.keyboard.press('?') },
  typesmenu: { path: '/d/web', status: 'live', script, act: unfold, narrow: unfold },
  typeseditor: { path: '/d/web', status: 'live', script, act: open('Memory, the three greatest') },
  typesfault: {
    path: '/d/web', status: 'live', script,
    act: async (page) => {
      await open('Requests a minute')(page);
      await page.locator('#panel-thresholds').fill('600 pink');
      await page.getByRole('button', { name: 'Done' }).click();
    },
  },
};
