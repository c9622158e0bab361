// The types of panels, and what their drawings compute.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { newPanel, read } from '../static/js/board/document.js';
import { asks, typeOf, types } from '../static/js/board/types.js';
import { drawingOf, drawings } from '../static/js/board/types/drawings.js';
import { dotted, spark } from '../static/js/spark.js';
import { Unknown } from '../static/js/board/types/unknown.js';
import { faultOf, noting, toQuery } from '../static/js/query.js';
import { defaults, formatM, parseM } from '../static/js/state.js';
import { chosen, newest, sorted, summary, top } from '../static/js/stats.js';
import { bandOf, bandsOf, format, parse } from '../static/js/thresholds.js';

test('every type has a drawing, and a new panel of it is a sound document', () => {
  assert.deepEqual(Object.keys(drawings).sort(), Object.keys(types).sort());
  for (const type of Object.keys(types)) {
    const panel = newPanel({ panels: [] }, type);
    assert.equal(read(JSON.stringify({ form: 1, panels: [panel] })).fault, undefined, type);
    assert.deepEqual([panel.place.w, panel.place.h], types[type].size);
  }
  assert.deepEqual([asks('lines'), asks('text'), asks('of a later release')], [true, false, false]);
});

test('a type with the name of what every object has is unknown', () => {
  for (const type of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    assert.deepEqual([typeOf(type), drawingOf(type)], [null, Unknown]);
    assert.ok(read(`{"form":1,"panels":[{"id":"a","type":"${type}","queries":7,"place":{"x":0,"y":0,"w":1,"h":1}}]}`).document, type);
  }
});

test('a line is summed up by its numbers in the range', () => {
  const group = { times: [1, 2, 3, 4, 5, 6], values: [100, 4, NaN, null, 9007199254740993n, 2] };
  assert.deepEqual(summary(group, [2, 4]), { last: 4, least: 4, greatest: 4, mean: 4 });
  assert.deepEqual(summary(group, [2, 6]), { last: 2, least: 2, greatest: 9007199254740992, mean: (9007199254740992 + 6) / 3 });
  assert.deepEqual(summary(group, [7, 9]), { last: null, least: null, greatest: null, mean: null });
  assert.deepEqual(newest({ times: [1, 2, 3], values: [7n, null, NaN] }), [1, 7n]);
  assert.deepEqual(newest({ times: [], values: [] }), []);
});

test('a point of a spark line that no line reaches is a dot', () => {
  assert.equal(dotted('M0.00 15.00M50.00 15.00L100.00 15.00M1.00 2.00'), 'M0.00 15.00h0M50.00 15.00L100.00 15.00M1.00 2.00h0');
});

test('a spark line breaks where there is no number', () => {
  assert.equal(spark({ times: [0, 5, 10], values: [0, 1, 2] }, [0, 10]), 'M0.00 28.00L50.00 15.00L100.00 2.00');
  assert.equal(spark({ times: [0, 2, 5, 10], values: [1, null, 1, 1] }, [0, 10]), 'M0.00 15.00M50.00 15.00L100.00 15.00');
  assert.equal(spark({ times: [-5, 0, 5, 10], values: [1, Infinity, NaN, 3] }, [0, 10]), 'M100.00 2.00');
});

// The same file is checked by the gateway: dashboard/fields_test.go.
test('fields of panels are sound or not, as the gateway says', () => {
  const cases = JSON.parse(readFileSync(new URL('../../extra/dashboards/dashboard/testdata/panels.json', import.meta.url), 'utf8'));
  for (const { sound, panel } of cases) assert.equal(read(JSON.stringify({ form: 1, panels: [panel] })).fault === undefined, sound, JSON.stringify(panel));
});

test('the greatest lines are kept, and those left out are counted', () => {
  const line = (label, ...values) => ({ label, group: { times: values.map((_, i) => i), values } });
  const lines = [line('a', 9, 1), line('b', 2, 8), line('c', NaN, null), line('d', 5, 5), line('e', 100)]; // e's point lies outside
  const of = (n, by) => { const t = top(lines, { n, by }, [0.5, 1]); return [t.lines.map((l) => l.label).join(''), t.left]; };
  lines[4].group.times = [0];
  assert.deepEqual(of(2, 'last'), ['bd', 3]);
  assert.deepEqual(of(3, 'max'), ['abd', 2]);
  assert.deepEqual(of(4, 'avg'), ['abcd', 1]);
  assert.deepEqual(of(5, 'avg'), ['abcde', 0]);
  assert.deepEqual(top([line('none', NaN), line('below', -5), line('far below', -9)], { n: 2, by: 'max' }, [0, 1]).lines.map((l) => l.label), ['below', 'far below']);
  assert.deepEqual(top(lines, { n: 2, by: 'avg' }, [0, 1]).lines.map((l) => l.label), ['a', 'e'], 'of equal ones the first');
});

test('a table is sorted by any column, rows without a number last', () => {
  const rows = [{ label: 'web10', last: 3 }, { label: 'web9', last: null }, { label: 'web2', last: -1 }, { label: 'web1', last: 3 }];
  const by = (field, down) => sorted(rows, { by: field, down }).map((r) => r.label).join();
  assert.equal(by('last', true), 'web1,web10,web2,web9');
  assert.equal(by('last', false), 'web2,web1,web10,web9');
  assert.equal(by('label', false), 'web1,web2,web9,web10');
  assert.equal(by('label', true), 'web10,web9,web2,web1');
});

test('thresholds are bands from each to the next, and a text', () => {
  const list = [{ value: 95, colour: 'red' }, { value: 80, colour: 'amber' }, { value: 80, colour: 'blue' }];
  assert.deepEqual(bandsOf(list), [{ from: 80, to: 95, colour: 'blue' }, { from: 95, to: Infinity, colour: 'red' }]);
  assert.deepEqual([79.9, 80, 94, 95, 1e9, Infinity, -Infinity, NaN].map((v) => bandOf(list, v)?.colour), [undefined, 'blue', 'blue', 'red', 'red', 'red', undefined, undefined]);
  assert.deepEqual(parse(' 80 amber,95  red, '), { thresholds: [{ value: 80, colour: 'amber' }, { value: 95, colour: 'red' }] });
  assert.deepEqual(parse(format(list)).thresholds, list);
  const both = [...list, { value: 5, colour: 'red', right: true }];
  assert.deepEqual([bandsOf(both).length, bandsOf(both, true)], [2, [{ from: 5, to: Infinity, colour: 'red' }]]);
  assert.deepEqual([bandOf(both, 7), bandOf(both, 7, true)?.colour], [undefined, 'red']);
  assert.equal(format(both), '95 red, 80 amber, 80 blue, 5 red right');
  assert.deepEqual(parse(format(both)).thresholds, both);
  assert.deepEqual(parse(''), { thresholds: [] });
  for (const bad of ['80', 'red', '80 pink', 'x red', '80 red 90', '80 red left', '80 red right 1', '80 right', 'Infinity red', '80 toString']) assert.match(parse(bad).fault, /^A threshold is a value and a colour/, bad);
  assert.match(parse(Array.from({ length: 11 }, (_, i) => `${i} red`).join()).fault, /10 thresholds at most/);
});

test('lines that stand on each other meet, and a heat map asks for buckets', () => {
  const state = { ...defaults(), start: '15m-ago', queries: [], aligned: true };
  const of = (m, s = state) => toQuery(s, { ...parseM(m), right: false }, 1e9).queries[0];
  assert.equal(of('sum:auto:m').downsample, '15s-avg');
  assert.equal(of('sum:auto:m', { ...state, aligned: undefined }).downsample, undefined);
  assert.equal(of('sum:1m-sum:m').downsample, '1m-sum');
  assert.equal(of('sum:auto:m', { ...state, start: '7d-ago' }).downsample, '30m-avg');
  const m = 'sum:1m-avg:show-histogram-buckets:latency{host=*}';
  assert.equal(formatM(parseM(m)), m);
  const query = toQuery(state, { ...parseM(m.replace('sum:', 'max:')), right: false }, 1e9);
  assert.deepEqual([query.queries[0].showHistogramBuckets, query.queries[0].percentiles, query.queries[0].aggregator, query.queries[0].downsample, query.queries[0].rollupUsage], [true, undefined, 'sum', '1m-sum', undefined]);
  assert.equal(faultOf(parseM(m)), '');
  assert.equal(noting(query).queries[0].downsample, '0all-sum');
});

test('of many lines those are chosen whose names hold all words, and of these the first', () => {
  const rows = ['web01 dc=eu', 'web02 dc=us', 'db01 dc=eu', 'WEB03 dc=eu'].map((label, i) => ({ label, last: [3, 1, null, 2][i], mean: [1, 2, 3, 4][i] }));
  const f = (choice, order = { by: '', down: true }) => chosen(rows, choice, order).map((r) => r.label.split(' ')[0]).join();
  assert.equal(f({}), 'web01,web02,db01,WEB03');
  assert.equal(f({ only: ' eu  Web' }), 'web01,WEB03');
  assert.equal(f({ only: 'no' }), '');
  assert.equal(f({ most: 2 }), 'web01,WEB03');
  assert.equal(f({ most: 2 }, { by: 'label', down: false }), 'web01,WEB03');
  assert.equal(f({ most: 1 }, { by: 'mean', down: false }), 'web01');
  assert.equal(f({ most: 2, only: 'eu' }, { by: 'mean', down: true }), 'db01,WEB03');
  assert.equal(f({ most: 9 }), 'web01,web02,db01,WEB03');
});
