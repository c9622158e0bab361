// Lines that stand on each other, and what a gap does to those above it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toColumns } from '../static/js/columns.js';
import { areas, bars, filled, tops } from '../static/js/stack.js';

const [none, gap] = [undefined, null];

// drawn lists what is visited: each stretch or bar as [line, place, ends…].
const drawn = (f, columns, { sides = columns.slice(1).map(() => false), hidden = [] } = {}) => {
  const out = [];
  f(columns, sides, hidden, (...args) => out.push(args));
  return out;
};

test('a line has a value between two of its points, and none in a gap, before its first or after its last', () => {
  const times = [0, 1, 2, 3, 4, 5, 6, 7];
  assert.deepEqual(filled(times, [none, 10, none, none, 40, gap, gap, 7]), [null, 10, 20, 30, 40, null, null, 7]);
  assert.deepEqual(filled(times, [1, gap, none, 5, none, none, none, none]), [1, null, null, 5, null, null, null, null]);
  assert.deepEqual(filled([0, 1, 4], [0, none, 8]), [0, 2, 8], 'by time, not by place');
});

test('a line without a value adds nothing', () => {
  // The lower line has a gap between 1 and 3: the upper one comes down there, and goes up again.
  const columns = [[0, 1, 2, 3, 4], [10, 10, gap, 10, 10], [1, 1, 1, 1, 1]];
  assert.deepEqual(drawn(areas, columns), [
    [0, 0, [0, 10], [0, 10]], [0, 3, [0, 10], [0, 10]],
    [1, 0, [10, 11], [10, 11]], [1, 1, [0, 1], [0, 1]], [1, 2, [0, 1], [0, 1]], [1, 3, [10, 11], [10, 11]],
  ]);
  assert.deepEqual(tops(columns, [false, false], [], true)[2], [11, 11, 1, 11, 11]);
});

test('lines whose points lie at different times stand on each other all the same', () => {
  const columns = [[0, 1, 2, 3], [10, none, 30, none], [none, 5, none, 5]];
  assert.deepEqual(drawn(areas, columns), [
    [0, 0, [0, 10], [0, 20]], [0, 1, [0, 20], [0, 30]],
    [1, 1, [20, 25], [30, 35]], [1, 2, [0, 5], [0, 5]], // after the other's last point it stands alone
  ]);
  assert.deepEqual(tops(columns, [false, false], [], true), [[0, 1, 2, 3], [10, 20, 30, none], [none, 25, 35, 5]], 'also between points: a scale reaches there');
});

test('what is below zero hangs below it; axes and hidden lines do not mix', () => {
  const columns = [[0, 1], [2, 2], [-3, -3], [4, -4], [5, 5]];
  assert.deepEqual(drawn(bars, columns), [
    [0, 0, [0, 2]], [0, 1, [0, 2]], [1, 0, [0, -3]], [1, 1, [0, -3]], [2, 0, [2, 6]], [2, 1, [-3, -7]], [3, 0, [6, 11]], [3, 1, [2, 7]],
  ]);
  assert.deepEqual(drawn(bars, columns, { sides: [false, true, true, false], hidden: [true, false, false, false] }), [
    [1, 0, [0, -3]], [1, 1, [0, -3]], [2, 0, [0, 4]], [2, 1, [-3, -7]], [3, 0, [0, 5]], [3, 1, [0, 5]],
  ]);
});

test('bars are at points alone', () => {
  const columns = [[0, 1, 2], [1, none, 3], [none, 5, 5]];
  assert.deepEqual(drawn(bars, columns), [[0, 0, [0, 1]], [0, 2, [0, 3]], [1, 1, [0, 5]], [1, 2, [3, 8]]]);
  assert.deepEqual(tops(columns, [false, false], [], false), [[0, 1, 2], [1, none, 3], [none, 5, 8]]);
});

// Whatever the lines, what stands at a time is the sum of the values there.
test('the top of a stack is the sum of what lines have there', () => {
  for (let seed = 1; seed <= 200; seed++) {
    let s = seed;
    const random = (n) => { s = (Math.imul(s, 1664525) + 1013904223) >>> 0; return Math.floor((s / 2 ** 32) * n); };
    const groups = Array.from({ length: 1 + random(5) }, () => {
      const times = Array.from({ length: 30 }, (_, i) => i).filter(() => random(4) > 0);
      return { times, values: times.map(() => (random(9) === 0 ? NaN : random(100))) };
    });
    const columns = toColumns(groups);
    const [times, ...rows] = columns;
    const sides = rows.map(() => false);
    const highest = new Array(times.length).fill(0);
    areas(columns, sides, [], (i, k, [, left], [, right]) => {
      highest[k] = Math.max(highest[k], left);
      highest[k + 1] = Math.max(highest[k + 1], right);
    });
    const all = rows.map((row) => filled(times, row));
    times.forEach((t, k) => {
      const there = all.filter((f) => f[k] !== null && ((k > 0 && f[k - 1] !== null) || (k + 1 < times.length && f[k + 1] !== null)));
      const sum = (of) => of.reduce((n, f) => n + f[k], 0);
      const [before, after] = [-1, 1].map((by) => sum(there.filter((f) => f[k + by] != null)));
      assert.ok(Math.abs(highest[k] - Math.max(before, after)) < 1e-9, `seed ${seed}, time ${t}: ${highest[k]}, want ${before} or ${after}`);
    });
  }
});
