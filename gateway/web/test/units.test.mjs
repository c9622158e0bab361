// Units: how values and axes are written.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { between, ticks, value } from '../static/js/format.js';
import { names, stepsOf } from '../static/js/units.js';

test('a value has the sign that fits its size', () => {
  for (const [v, unit, text] of [
    [0, 'bytes', '0 B'], [1023, 'bytes', '1023 B'], [1024, 'bytes', '1 KiB'], [-1536, 'bytes', '-1.5 KiB'], [41e9, 'bytes', '38.18 GiB'], [2 ** 60, 'bytes', '1024 PiB'], [0.25, 'bytes', '0.25 B'],
    [999, 'bits/s', '999 bit/s'], [1e9, 'bits/s', '1 Gbit/s'], [12.345, '%', '12.35%'], [-0.5, '%', '-0.5%'], [1e6, '%', '1000000%'],
    [0, 's', '0 s'], [90, 's', '1.5 min'], [86400, 's', '1 d'], [0.0012, 's', '1.2 ms'], [2.5e-7, 's', '250 ns'], [1e-12, 's', '0.001 ns'],
    [0, 'ms', '0 ms'], [1500, 'ms', '1.5 s'], [0.25, 'ms', '250 µs'], [7.2e6, 'ms', '2 h'], [1234, 'ops/s', '1.234 kops/s'],
    [1234, 'none', '1.234k'], [1234, undefined, '1.234k'], [1234, 'miles', '1.234k'], [1234, 'constructor', '1.234k'],
    [null, 'bytes', '–'], [NaN, 's', '–'], [Infinity, 'bytes', 'Infinity'], [9007199254740993n, 'bytes', '8 PiB'],
  ]) assert.equal(value(v, unit), text, `${v} ${unit}`);
  assert.equal(value(1234567, 'bytes', 7), '1.177375 MiB');
});

test('ticks are told apart, in one size', () => {
  assert.deepEqual(ticks([0, 2 ** 29, 2 ** 30, 1.5 * 2 ** 30], 2 ** 29, 'bytes'), ['0', '0.5 GiB', '1.0 GiB', '1.5 GiB']);
  assert.deepEqual(ticks([0, 1800, 3600, 5400], 1800, 's'), ['0', '0.5 h', '1.0 h', '1.5 h']);
  assert.deepEqual(ticks([0, 2.5, 5, 7.5], 2.5), ['0', '2.5', '5.0', '7.5']);
  assert.deepEqual(ticks([0, 0.25, 0.5], 0.25, '%'), ['0', '0.25%', '0.50%']);
  for (const unit of names) {
    for (const step of stepsOf(unit) ?? [0.01, 0.25, 1, 2.5, 1000, 5e7]) {
      for (const n of [1, 3, 9, 20]) {
        const texts = ticks(Array.from({ length: n }, (_, i) => (i + 1) * step), step, unit);
        assert.equal(new Set(texts).size, n, `${unit}, step ${step}: ${texts}`);
      }
    }
  }
});

test('the steps of an axis ascend', () => {
  for (const unit of names) {
    const steps = stepsOf(unit) ?? [];
    assert.ok(steps.every((s, i) => i === 0 || s > steps[i - 1]), `${unit}: ${steps}`);
  }
});

test('a stretch of time names its day once', () => {
  assert.equal(between(1795255220, 40, 'UTC'), '2026-11-21 10:00:00 – 10:00:40');
  assert.equal(between(1795305600, 60, 'UTC'), '2026-11-21 23:59:30 – 2026-11-22 00:00:30');
});
