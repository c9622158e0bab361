// Limits and decimals of axes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ticks } from '../static/js/format.js';

globalThis.matchMedia ??= () => ({ matches: false, addEventListener() {} });
globalThis.navigator ??= {};
const { limited } = await import('../static/js/axes.js');

const free = () => [3, 7];

test('limits take the place of what the lines say, each by itself', () => {
  const f = (limits, log) => limited(free, limits, log)(null, 3, 7);
  assert.equal(limited(free, undefined), free);
  assert.equal(limited(free, {}), free);
  assert.deepEqual(f({ min: 0 }), [0, 7]);
  assert.deepEqual(f({ max: 100 }), [3, 100]);
  assert.deepEqual(f({ min: -1, max: 5 }), [-1, 5]);
});

test('lines beyond a limit leave an axis that goes up', () => {
  const f = (limits, log) => limited(free, limits, log)(null, 3, 7);
  assert.deepEqual(f({ min: 10 }), [10, 20]);
  assert.deepEqual(f({ max: 2 }), [0, 2]);
  assert.deepEqual(f({ max: 0 }), [-1, 0]);
  assert.deepEqual(f({ max: 2 }, true), [0.2, 2]);
});

test('a log scale has no limit at or below zero', () => {
  assert.equal(limited(free, { min: 0 }, true), free);
  assert.deepEqual(limited(free, { min: -5, max: 9 }, true)(null, 3, 7), [3, 9]);
});

test('an axis writes as many decimals as it is given', () => {
  assert.deepEqual(ticks([0, 0.5, 1], 0.5, 'none', 2), ['0.00', '0.50', '1.00']);
  assert.deepEqual(ticks([0, 1500], 500, 'none', 0), ['0k', '2k']);
  assert.deepEqual(ticks([0, 0.5], 0.5), ['0', '0.5']);
});
