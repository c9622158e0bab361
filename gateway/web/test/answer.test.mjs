import assert from 'node:assert/strict';
import test from 'node:test';
import { Answer, indexOf, parse } from '../static/js/answer.js';

const about = (metric, host) => ({ queryIndex: 0, metric, tags: { host }, aggregateTags: [] });

function start() {
  const a = new Answer();
  a.apply({ type: 'snapshot', epoch: 'e', seq: 1, results: [{ ...about('m', 'a'), dps: [[10, 1], [20, 2.5], [30, 'NaN']] }, { ...about('m', 'b'), dps: [[10, null]] }] });
  return a;
}

const points = (a, i) => a.groups.get(i).times.map((t, n) => [t, a.groups.get(i).values[n]]);

test('a snapshot replaces everything', () => {
  const a = start();
  assert.deepEqual(points(a, 0), [[10, 1], [20, 2.5], [30, NaN]]);
  assert.deepEqual(points(a, 1), [[10, null]]);
  assert.equal(a.points, 4);
  a.apply({ type: 'snapshot', results: [] });
  assert.equal(a.points, 0);
});

test('deltas append, correct, insert late points and delete', () => {
  const a = start();
  a.apply({ type: 'delta', upserts: [{ group: 0, dps: [[15, 7], [20, 3], [40, 4]] }], deletes: [{ group: 0, ts: [10] }, { group: 1, ts: [10, 11] }] });
  assert.deepEqual(points(a, 0), [[15, 7], [20, 3], [30, NaN], [40, 4]]);
  assert.deepEqual(points(a, 1), []);
});

test('groups come, change and go', () => {
  const a = start();
  a.apply({ type: 'delta', groups: [{ group: 2, ...about('m', 'c') }, { group: 0, ...about('m', 'z') }], removed: [1], upserts: [{ group: 2, dps: [[10, 9]] }], deletes: [] });
  assert.deepEqual([...a.groups.keys()].sort(), [0, 2]);
  assert.equal(a.groups.get(0).tags.host, 'z');
  assert.equal(points(a, 0).length, 3); // described again, the points stay
  assert.deepEqual(points(a, 2), [[10, 9]]);
});

test('random deltas end where a fresh snapshot is', () => {
  let seed = 42;
  const random = (n) => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor((seed / 2147483648) * n); };
  const a = start();
  const want = new Map(points(a, 0));
  for (let n = 0; n < 3000; n++) {
    const dps = new Map(Array.from({ length: random(4) }, () => [random(60), random(9)]));
    const ts = Array.from({ length: random(3) }, () => random(60)).filter((t) => !dps.has(t));
    dps.forEach((v, t) => want.set(t, v));
    ts.forEach((t) => want.delete(t));
    a.apply({ type: 'delta', upserts: [{ group: 0, dps: [...dps].sort((x, y) => x[0] - y[0]) }], deletes: [{ group: 0, ts }] });
    assert.deepEqual(points(a, 0), [...want].sort((x, y) => x[0] - y[0]));
  }
});

test('times in ms become seconds, and a time is found', () => {
  const a = new Answer();
  a.apply({ type: 'snapshot', results: [{ ...about('m', 'a'), dps: [[1795255200000, 1], [1795255200250, 2]] }] });
  a.apply({ type: 'delta', upserts: [{ group: 0, dps: [[1795255200100, 3]] }], deletes: [{ group: 0, ts: [1795255200000] }] });
  assert.deepEqual(points(a, 0), [[1795255200.1, 3], [1795255200.25, 2]]);
  assert.deepEqual([1795255200.25, 1795255200.3, 0].map((t) => indexOf(a.groups.get(0), t)), [1, -1, -1]);
});

test('a long integer is found among fractions, and these alone do not make reading slow', (t) => {
  const parsed = t.mock.method(JSON, 'parse');
  const exact = (text) => { parsed.mock.resetCalls(); parse(text); return parsed.mock.calls[0].arguments.length === 2; };
  for (const text of ['[9007199254740993]', '[-9007199254740993]', '{"v":12345678901234567890}', '[0.1234567890123456,9007199254740993]', '[1234567890123456]']) assert.ok(exact(text), text);
  for (const text of ['[49.666666666666664]', '[-0.12345678901234567]', '[1234567890123456.5]', '[12345678901234567.25]', '[1234567890123456E3]', '[1e16]', '[123456789012345]']) assert.ok(!exact(text), text);
});
