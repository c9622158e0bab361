// Documents of dashboards, and what is undone in them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chartOf, duplicated, empty, newPanel, read, retyped, withChart } from '../static/js/board/document.js';
import { decode, elementOf, encode } from '../static/js/board/link.js';
import { Undo } from '../static/js/board/undo.js';
import { wordsOf } from '../static/js/board/versions.js';

const panelOf = (id, x, y, w, h) => ({ id, type: 'text', place: { x, y, w, h } });

test('queries are texts, texts with an axis, and sub-queries', () => {
  const { queries, formulas, log } = chartOf({ type: 'lines', log: true, formulas: [{ expr: 'a / b' }], queries: [
    'avg:auto:rate:m{host=*}', { m: 'sum:n', right: true },
    { aggregator: 'sum', metric: 'k', downsample: '1m-avg', rate: true, rateOptions: { counter: true, counterMax: 9 }, filters: [{ type: 'wildcard', tagk: 'h', filter: 'w*', groupBy: true }, { type: 'regexp', tagk: 'd', filter: 'x.*' }] }] });
  assert.deepEqual([queries.map((q) => q.metric), formulas[0].expr, log], [['m', 'n', 'k'], 'a / b', true]);
  assert.deepEqual(withChart({ id: 'a', type: 'lines' }, { queries, formulas, log }), { id: 'a', type: 'lines', log: true, formulas: [{ expr: 'a / b' }],
    queries: ['avg:auto:rate:m{host=*}', { m: 'sum:n', right: true }, 'sum:1m-avg:rate{counter,9}:k{h=w*}{d=regexp(x.*)}'] });
  assert.match(chartOf({ queries: [{ metric: 'm', explicitTags: true }] }).fault, /“explicitTags”/);
  const histograms = { metric: 'k', aggregator: 'sum', downsample: '1m-sum', showHistogramBuckets: true };
  assert.deepEqual(withChart({}, chartOf({ queries: [histograms] })).queries, ['sum:1m-sum:show-histogram-buckets:k']);
  for (const q of [{ metric: 7 }, { ...histograms, percentiles: [50] }, { metric: 'm', filters: 'x' }, { metric: 'm', filters: [{}] }, { metric: 'm', tags: { a: 1 } }, { metric: 'm', percentiles: ['x'] }, {}]) {
    assert.ok(chartOf({ queries: [q] }).fault, JSON.stringify(q));
  }
});

test('a document is read back as it is, whatever it has beside', () => {
  const document = { ...empty('t'), links: [{ name: 'host' }], panels: [{ ...panelOf('a', 0, 0, 1, 1), type: 'of a later release', queries: 7 }] };
  assert.deepEqual(read(JSON.stringify(document)).document, document);
  assert.equal(read(JSON.stringify({ ...document, form: 2 })).later, true);
  assert.equal(newPanel(document, 'lines').id, 'p2');
});

test('a link holds a document, and no more than one may be', async () => {
  const text = JSON.stringify({ ...empty('ü – “x”'), panels: Array.from({ length: 400 }, (_, i) => panelOf(`p${i}`, 0, i, 1, 1)) });
  const letters = await encode(text);
  assert.match(letters, /^[\w-]+$/);
  assert.ok(letters.length < text.length / 5);
  assert.equal(await decode(letters), text);
  await assert.rejects(decode(await encode('x'.repeat((1 << 20) + 1))), /more than 1 MiB/);
  for (const bad of ['AAAA', '%', letters.slice(0, 40)]) await assert.rejects(decode(bad));
});

test('a version is told in words', () => {
  const version = { version: 7, saved: new Date(2026, 10, 21, 10, 30).toISOString(), by: 'ops', title: 'Web', panels: 1 };
  assert.equal(wordsOf(version, 7), '7 (in force) · 2026-11-21 10:30:00 by ops · Web, 1 panel');
  assert.equal(wordsOf({ ...version, by: '', title: '', deleted: true }, 8), '7 · 2026-11-21 10:30:00 · deleted');
});

test('a new panel has the size of its type, and the first place that is free', () => {
  const document = { panels: [panelOf('p1', 0, 0, 6, 8), panelOf('p9', 0, 8, 12, 3)] };
  assert.deepEqual(newPanel(document, 'lines'), { id: 'p3', type: 'lines', title: '', place: { x: 6, y: 0, w: 6, h: 8 }, queries: [] });
  assert.deepEqual(newPanel(document, 'number').place, { x: 6, y: 0, w: 3, h: 4 });
  const drawn = { ...newPanel(document, 'lines'), type: 'number', title: 'Load' };
  assert.deepEqual(retyped({ panels: [...document.panels, drawn] }, drawn), { ...drawn, place: { x: 6, y: 0, w: 3, h: 4 } });
  assert.deepEqual(newPanel({ panels: [panelOf('a', 0, 0, 9, 8)] }, 'lines').place, { x: 0, y: 8, w: 6, h: 8 }, 'three columns are no room for six');
});

test('a copy is next to its panel, or below it, with an id of its own', () => {
  const document = { panels: [{ ...panelOf('p2', 0, 0, 6, 4), title: 'CPU', of: 'a later release' }, panelOf('b', 0, 4, 12, 4)] };
  const { panels, id } = duplicated(document, 'p2');
  assert.deepEqual([id, panels.length], ['p3', 3]);
  assert.deepEqual(panels[2], { ...document.panels[0], id: 'p3', place: { x: 6, y: 0, w: 6, h: 4 } });
  const again = duplicated({ panels }, 'b');
  assert.deepEqual(again.panels.at(-1).place, { x: 0, y: 8, w: 12, h: 4 });
});

test('changes are undone from the last to the first; one movement is one of them', () => {
  const undo = new Undo();
  assert.deepEqual([undo.next, undo.undo()], ['', undefined]);
  const hold = {};
  undo.note({ title: 'a' }, 'the removal of CPU');
  undo.note({ title: 'b' }, 'the move of CPU', hold);
  undo.note({ title: 'c' }, 'the move of CPU', hold);
  undo.note({ title: 'd' }, 'the move of CPU');
  undo.note({ title: 'e' }, 'the move of CPU');
  const undone = [];
  while (undo.next) undone.push([undo.next, undo.undo().document.title]);
  assert.deepEqual(undone, [['the move of CPU', 'e'], ['the move of CPU', 'd'], ['the move of CPU', 'b'], ['the removal of CPU', 'a']]);
});

test('the last hundred changes can be undone, until another document comes', () => {
  const undo = new Undo();
  for (let i = 0; i < 150; i++) undo.note(i, 'one');
  let n = 0;
  for (let step = undo.undo(); step; step = undo.undo()) assert.equal(step.document, 149 - n++);
  assert.equal(n, 100);
  undo.note(1, 'one');
  undo.clear();
  assert.equal(undo.next, '');
});

test('a panel’s element for another page has its names as text', () => {
  assert.equal(elementOf('http://h:4242', 'web', 'a"><b>&'), '<div data-dashboard="web" data-panel="a&quot;>&lt;b>&amp;"></div><script type="module" src="http://h:4242/ui/embed.js"></script>');
});
