// Documents of dashboards and where their panels lie.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chartOf, columns, empty, moved, newPanel, put, read, settle, sized, withChart } from '../static/js/board/document.js';
import { decode, encode } from '../static/js/board/link.js';
import { wordsOf } from '../static/js/board/versions.js';

// random is a generator of numbers below n, whose seed a failure shows.
function random(seed) {
  let s = seed;
  return (n) => {
    s = (Math.imul(s, 1664525) + 1013904223) >>> 0;
    return Math.floor((s / 2 ** 32) * n);
  };
}

const panelOf = (id, x, y, w, h) => ({ id, type: 'text', place: { x, y, w, h } });

const overlap = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

// sound says what is wrong with places, '' for nothing.
function wrong(panels) {
  for (const [i, { place: a, id }] of panels.entries()) {
    if (![a.x, a.y, a.w, a.h].every(Number.isInteger) || a.x < 0 || a.y < 0 || a.w < 1 || a.h < 1 || a.x + a.w > columns) return `${id} is at ${JSON.stringify(a)}`;
    for (const { place: b, id: other } of panels.slice(i + 1)) if (overlap(a, b)) return `${id} lies on ${other}`;
    const held = a.y === 0 || panels.some(({ place: b, id: other }) => other !== id && b.y + b.h === a.y && a.x < b.x + b.w && b.x < a.x + a.w);
    if (!held) return `${id} hangs in the air`;
  }
  return '';
}

test('whatever moves, no panel lies on another, and none hangs in the air', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const n = random(seed);
    let panels = settle(Array.from({ length: 1 + n(12) }, (_, i) => {
      const w = 1 + n(columns);
      return panelOf(`p${i}`, n(columns - w + 1), n(20), w, 1 + n(9));
    }));
    assert.equal(wrong(panels), '', `seed ${seed}`);
    assert.deepEqual(settle(panels), panels, `seed ${seed}: what lies well stays`);
    for (let step = 0; step < 12; step++) {
      const { id, place } = panels[n(panels.length)];
      const before = JSON.stringify(panels);
      const change = [
        () => moved(panels, id, ['left', 'right', 'up', 'down'][n(4)]),
        () => sized(panels, id, n(7) - 3, n(7) - 3),
        () => put(panels, id, { ...place, x: n(columns - place.w + 1), y: n(200) / 10 }),
      ][n(3)];
      const after = change();
      assert.equal(JSON.stringify(panels), before, `seed ${seed}: the list given is not changed`);
      panels = after;
      assert.equal(wrong(panels), '', `seed ${seed}, step ${step}`);
    }
  }
});

test('up and down change places with the neighbour, and back', () => {
  const panels = [panelOf('a', 0, 0, 6, 3), panelOf('b', 0, 3, 6, 8), panelOf('c', 6, 0, 6, 4)];
  const y = (list) => list.map((p) => p.place.y);
  assert.deepEqual(y(moved(panels, 'a', 'down')), [8, 0, 0]);
  assert.deepEqual(y(moved(moved(panels, 'a', 'down'), 'a', 'up')), [0, 3, 0]);
  assert.deepEqual(y(moved(panels, 'a', 'up')), [0, 3, 0]);
  assert.deepEqual(y(sized(panels, 'a', 0, 20)), [0, 23, 0], 'a panel that grows stays where it is');
});

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
