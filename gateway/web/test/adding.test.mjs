// A chart as a panel, a panel as a chart, and names of dashboards.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withPanel } from '../static/js/board/adding.js';
import { asChart, chartOf, empty, read } from '../static/js/board/document.js';
import { nameOf } from '../static/js/board/names.js';
import { defaults, emptyQuery, fromHash } from '../static/js/state.js';

const state = {
  ...defaults(), start: '6h-ago', log: true, shift: '1d', legend: 'table', most: 5, hide: ['x'], pins: [1],
  queries: [{ ...emptyQuery(), metric: 'cpu', tags: [{ key: 'host', value: '*', group: true }], alias: '{host}', right: true }, { ...emptyQuery(), metric: 'mem' }],
  formulas: [{ expr: 'a / b', name: 'share', right: false }, { expr: '', name: '', right: false }],
};
const view = { start: '6h-ago', end: '', zoom: null, pause: null, tz: '', theme: '', shift: '' };

test('a chart becomes a panel of a sound document, next to what is there, and is the same chart again', () => {
  const one = withPanel(empty('Mine'), state, 'CPU');
  const two = withPanel(one, state, 'again');
  assert.equal(read(JSON.stringify(two)).fault, undefined);
  assert.deepEqual(two.panels[0], one.panels[0]);
  assert.deepEqual([two.panels.map((p) => p.id), two.panels.map((p) => p.place.x)], [['p1', 'p2'], [0, 6]]);
  const [panel] = one.panels;
  assert.deepEqual([panel.title, panel.shift, panel.legend, panel.top], ['CPU', '1d', 'table', { n: 5, by: 'last' }]);
  const back = fromHash(asChart(chartOf(panel), panel, view));
  assert.deepEqual(back, { ...state, hide: [], pins: [], formulas: state.formulas.slice(0, 1) });
});

test('a panel as a chart has the range in view, and the comparison of the dashboard', () => {
  const panel = { id: 'a', queries: ['avg:m'] };
  const shown = fromHash(asChart(chartOf(panel), panel, { ...view, start: '1700000000', end: '1700003600', zoom: [1700000100, 1700000200], tz: 'UTC', shift: '1w' }));
  assert.deepEqual([shown.start, shown.end, shown.zoom, shown.tz, shown.shift], ['1700000000', '1700003600', [1700000100, 1700000200], 'UTC', '1w']);
});

test('a name is made of a title, and is none that is taken', () => {
  assert.equal(nameOf('Web servers (EU)'), 'web-servers-eu');
  assert.equal(nameOf('Übersicht: Größe'), 'ubersicht-gro-e');
  assert.equal(nameOf('  .hidden'), 'hidden');
  assert.equal(nameOf('日本'), 'dashboard');
  assert.equal(nameOf('Web', ['web', 'web-2']), 'web-3');
  assert.match(nameOf('x'.repeat(90), ['x'.repeat(64)]), /^x{62}-2$/);
  for (const title of ['a'.repeat(63) + '!b', 'A__', '-', '1.']) assert.match(nameOf(title), /^[a-z0-9][a-z0-9._-]{0,63}$/, title);
});
