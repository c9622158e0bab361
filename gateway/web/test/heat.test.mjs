// Heat maps: how many points lie in each cell.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byValue, isBucket, levelsOf, ofBuckets } from '../static/js/heat.js';

const total = (heat) => heat.rows.reduce((n, r) => n + r.counts.reduce((a, c) => a + (c ?? 0), 0), 0);

test('every point of the range is in one cell', () => {
  for (let seed = 1; seed <= 100; seed++) {
    let s = seed;
    const random = (n) => { s = (Math.imul(s, 1664525) + 1013904223) >>> 0; return (s / 2 ** 32) * n; };
    const log = random(2) > 1;
    const groups = Array.from({ length: 1 + Math.floor(random(20)) }, () => {
      const times = Array.from({ length: 200 }, (_, i) => i * 10 + Math.floor(random(5)));
      return { times, values: times.map(() => 10 ** random(4) - (random(5) > 4 ? 100 : 0)), step: random(2) > 1 ? 10 : 0 };
    });
    const range = [105, 1731];
    const heat = byValue(groups, range, { log, unit: ['none', 'bytes', 's'][Math.floor(random(3))] });
    const inside = groups.flatMap((g) => g.times.map((t, i) => [t, g.values[i]])).filter(([t]) => t >= range[0] && t <= range[1]);
    assert.equal(total(heat) + heat.lost, inside.length, `seed ${seed}`);
    assert.equal(heat.lost, log ? inside.filter(([, v]) => v <= 0).length : 0, `seed ${seed}`);
    assert.ok(heat.rows.length >= 1 && heat.rows.length <= 60 && heat.times.length <= 102, `seed ${seed}: ${heat.rows.length} rows, ${heat.times.length} columns`);
    for (const [t, v] of inside) {
      if (log && v <= 0) continue;
      const k = heat.times.findIndex((m) => t >= m - heat.width / 2 && t < m + heat.width / 2);
      const row = heat.rows.findIndex((r, i) => v >= r.low && (v < r.high || i === heat.rows.length - 1));
      assert.ok(heat.rows[row].counts[k] > 0, `seed ${seed}: ${v} at ${t}`);
    }
  }
});

test('a cell without points is told from a column without any', () => {
  const { times, rows } = byValue([{ times: [0, 10, 30], values: [1, 2, 1], step: 10 }], [0, 40]);
  assert.deepEqual(times, [5, 15, 25, 35]);
  const [low, high] = [rows[0].counts, rows.at(-1).counts];
  assert.deepEqual([low, high], [[1, undefined, null, 1], [undefined, 1, null, undefined]]);
});

test('one value, none, and what is no number', () => {
  assert.equal(byValue([{ times: [1], values: [5] }], [0, 10]).rows.length >= 1, true);
  assert.equal(total(byValue([{ times: [1, 2, 3], values: [0, 0, 0] }], [0, 10])), 3);
  for (const values of [[], [NaN], [null], [Infinity]]) {
    const heat = byValue([{ times: values.map((_, i) => i), values }], [0, 10], { log: true });
    assert.deepEqual(heat.rows, []);
    assert.ok(heat.bounds[0] > 0, 'an axis without rows is one all the same');
  }
  assert.equal(total(byValue([{ times: [1], values: [9007199254740993n] }], [0, 10])), 1);
});

test('a value on a bound is in the row that begins there, the greatest in the last', () => {
  const values = Array.from({ length: 21 }, (_, i) => i);
  const { rows } = byValue([{ times: values.map(() => 1), values }], [0, 2]);
  assert.deepEqual(rows.map((r) => [r.low, Math.max(...r.counts.filter((c) => c))]), values.slice(0, 20).map((v) => [v, v === 19 ? 2 : 1]));
});

test('rows have bounds that one can read', () => {
  const values = Array.from({ length: 100 }, (_, i) => i * 1e7);
  const bytes = byValue([{ times: values.map((_, i) => i), values }], [0, 100], { unit: 'bytes' });
  assert.ok(bytes.rows.every((r) => r.low % 2 ** 26 === 0), `${bytes.rows.map((r) => r.low)}`);
  const plain = byValue([{ times: [0, 1], values: [0.3, 0.7] }], [0, 2], { text: String });
  assert.deepEqual(plain.rows[0].label, '0.3 to 0.32');
});

test('levels take each count once, the greatest too', () => {
  assert.deepEqual(levelsOf([1, 3, 2]), [1, 2, 3]);
  assert.deepEqual(levelsOf([]), []);
  for (const most of [1, 5, 6, 7, 8, 20, 35, 36, 37, 38, 1000, 1e9]) {
    const levels = levelsOf([1, most]);
    assert.equal(levels[0], 1);
    assert.ok(levels.every((l, i) => i === 0 || l > levels[i - 1]) && levels.at(-1) <= most, `${most}: ${levels}`);
  }
  assert.equal(levelsOf([0.5, 0.1]).length, 6);
});

test('buckets of histograms are rows; those without an end lie beside them, if they have counts', () => {
  const bucket = (name, values) => ({ metric: `latency_${name}`, times: [0, 60], values, step: 60 });
  const groups = [bucket('UNDERFLOW', [0, 0]), bucket('1.0_5.0', [3, 0]), bucket('0.0_1.0', [5, 1]), bucket('OVERFLOW', [0, 2]), bucket('1.0_5.0', [4, 0])];
  assert.ok(groups.every(isBucket));
  assert.ok(isBucket({ metric: 'm_1.0E-4_0.5' }) && !isBucket({ metric: 'm_pct_99.0' }) && !isBucket({ metric: 'cpu_1' }));
  const { rows, bounds, times } = ofBuckets(groups, [0, 119]);
  assert.deepEqual(rows.map(({ label, low, high, counts }) => [label, low, high, counts]), [
    ['0 to 1', 0, 1, [5, 1]], ['1 to 5', 1, 5, [7, undefined]], ['5 or more', 5, 9, [undefined, 2]]]);
  assert.deepEqual([bounds, times], [[0, 9], [30, 90]]);
  assert.ok(ofBuckets(groups, [0, 119], { log: true }).bounds[0] > 0, 'a log scale has no zero');
});
