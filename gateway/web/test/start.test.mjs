// What the start page says and asks.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { heading, links, sketch } from '../static/js/start.js';

const found = (length, more, newest = true) => ({ length, more, newest });

test('the heading counts all metrics, and says what order they are in only where it is known', () => {
  assert.equal(heading(found(1, 0), ''), '1 metric, the newest first.');
  assert.equal(heading(found(48, 1200), ''), '1,248 metrics, the newest first. Here are 48: type a part of a name to find others.');
  assert.equal(heading(found(3, 0, false), ''), '3 metrics.');
  assert.equal(heading(found(2, 0), 'cpu'), '2 metrics with “cpu” in the name.');
  assert.equal(heading(found(48, 2), 'cpu'), '50 metrics with “cpu” in the name, 48 of them here: type another part of the name.');
  assert.equal(heading(found(0, 0), '<b>'), 'No metric’s name holds “<b>”.');
});

test('links lead to the dashboards that were saved last, then to those that are built in', () => {
  const all = [{ name: 'host', version: 0 }, ...Array.from({ length: 9 }, (_, i) => ({ name: `d${i}`, version: 1, saved: `2026-11-0${i + 1}T00:00:00Z` }))];
  assert.deepEqual(links(all).map((d) => d.name), ['d8', 'd7', 'd6', 'd5', 'd4', 'd3', 'd2', 'd1']);
  assert.deepEqual(links(all.slice(0, 2)).map((d) => d.name), ['d0', 'host']);
});

test('a small chart is one live query of one line, with few points', () => {
  const { end, queries } = sketch('m');
  assert.equal(end, undefined);
  assert.deepEqual(queries, [{ aggregator: 'avg', metric: 'm', filters: [], downsample: '1m-avg', rollupUsage: 'ROLLUP_RAW' }]);
});
