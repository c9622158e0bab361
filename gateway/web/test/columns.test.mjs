import assert from 'node:assert/strict';
import test from 'node:test';
import { Looks, alone, labels, nearest, toColumns, withBreaks, withPercentile } from '../static/js/columns.js';
import * as format from '../static/js/format.js';

const group = (times, values = times.map(() => 1)) => ({ times, values });

test('groups share a row of times', () => {
  assert.deepEqual(toColumns([group([1, 3], [10, 30]), group([2, 3], [20, 31])]), [[1, 2, 3], [10, undefined, 30], [undefined, 20, 31]]);
  assert.deepEqual(toColumns([]), [[]]);
});

test('the line breaks where points stop for a while, not where one is late', () => {
  assert.deepEqual(withBreaks(group([10, 20, 30, 40, 60, 70, 110])).times, [10, 20, 30, 40, 60, 70, 80, 110]);
  assert.deepEqual(withBreaks(group([10, 500])).times, [10, 500]); // too few to know a step
});

test('a break lasts until the next point, also where another group goes on', () => {
  const [times, a] = toColumns([group([0, 10, 20, 30, 70, 80]), group([0, 10, 20, 30, 40, 50, 60, 70, 80])]);
  assert.deepEqual(times, [0, 10, 20, 30, 40, 50, 60, 70, 80]);
  assert.deepEqual(a, [1, 1, 1, 1, null, null, null, 1, 1]);
});

test('NaN, null and infinity are breaks', () => {
  assert.deepEqual(toColumns([group([1, 2, 3, 4], [NaN, null, Infinity, 4])])[1], [null, null, null, 4]);
});

test('where the step is known, one missing point is a gap', () => {
  assert.deepEqual(withBreaks({ ...group([0, 60, 180]), step: 60 }), { times: [0, 60, 120, 180], values: [1, 1, null, 1] });
  assert.deepEqual(withBreaks({ ...group([0, 60, 120]), step: 60 }).times, [0, 60, 120]);
});

test('on a log axis, what is not positive is a gap', () => {
  assert.deepEqual(toColumns([group([1, 2, 3], [1, 0, -1])], true)[1], [1, null, null]);
});

test('integers beyond 2^53 are drawn as the nearest double', () => {
  assert.deepEqual(toColumns([group([1], [9007199254740993n])])[1], [9007199254740992]);
});

test('a point between two breaks is alone', () => {
  assert.deepEqual(alone([1, 1, null, 5, null, undefined, 6, undefined, 7, null, undefined, 8]), [3, 11]);
  assert.deepEqual(alone([4]), [0]);
});

test('the cursor reads the nearest point of each line, and a break as one', () => {
  const times = [0, 1, 2, 3, 4];
  assert.equal(nearest(times, [1, undefined, undefined, undefined, 2], 1), 0);
  assert.equal(nearest(times, [1, undefined, undefined, undefined, 2], 3), 4);
  assert.equal(nearest(times, [undefined, undefined, undefined, undefined, 2], 0), 4);
  assert.equal(nearest(times, [1, null, undefined, undefined, undefined], 4), 1);
  assert.equal(nearest(times, new Array(5).fill(undefined), 2), 2);
});

test('a line keeps its look while others come and go', () => {
  const looks = new Looks();
  assert.deepEqual(looks.assign(['a', 'b', 'c']), [0, 1, 2]);
  assert.deepEqual(looks.assign(['b', 'c']), [1, 2]);
  assert.deepEqual(looks.assign(['x', 'b', 'c', 'y']), [0, 1, 2, 3]);
});

test('lines of two queries have two names', () => {
  const g = (letter, host) => ({ metric: 'm', tags: { host }, letter });
  assert.deepEqual(labels([g('A', 'a'), g('A', 'b'), g('B', 'a')]), ['A host=a', 'host=b', 'B host=a']);
});

test('lines are named by what tells them apart', () => {
  const g = (tags, metric = 'm') => ({ metric, tags });
  assert.deepEqual(labels([g({ host: 'a', dc: 'x' }), g({ host: 'b', dc: 'x' })]), ['host=a', 'host=b']);
  assert.deepEqual(labels([g({ host: 'a' })]), ['host=a']);
  assert.deepEqual(labels([g({})]), ['m']);
  assert.deepEqual(labels([g({}, 'm'), g({}, 'n')]), ['m', 'n']);
});

test('one line, or lines without a tag in which they differ, are named by what they were grouped by', () => {
  const g = (tags, grouped, metric = 'm') => ({ metric, tags, grouped });
  assert.deepEqual(labels([g({ host: 'a', dc: 'x' }, ['host'])]), ['host=a']);
  assert.deepEqual(labels([g({ host: 'a', dc: 'x' }, [])]), ['m']);
  assert.deepEqual(labels([g({ host: 'a' }, []), g({}, [], 'n')]), ['m', 'n'], 'their metrics differ');
  assert.deepEqual(labels([g({ host: 'a' }, ['host']), g({}, [], 'n')]), ['m host=a', 'n']);
  assert.deepEqual(labels([g({ host: 'a', dc: 'x' }, ['host', 'dc']), g({ host: 'b', dc: 'x' }, ['host', 'dc'])]), ['host=a', 'host=b']);
});

test('an alias names a line by its own, and lines that share one stay apart', () => {
  const g = (alias, tags, more = {}) => ({ metric: 'm', tags, grouped: [], alias, ...more });
  assert.deepEqual(labels([g('{host}', { host: 'a' }), g('{host}', { host: 'b' })]), ['a', 'b']);
  assert.deepEqual(labels([g('{metric} of {host} {no}', { host: '{metric}' })]), ['m of {metric}']);
  assert.deepEqual(labels([g('{no}', { host: 'a' })]), ['m']);
  assert.deepEqual(labels([g('cpu', { host: 'a' }), g('cpu', { host: 'b' })]), ['cpu host=a', 'cpu host=b']);
  assert.deepEqual(labels([g('{percentile}', {}, { percentile: 'p50' }), g('', {}, { percentile: 'p99' })]), ['p50', 'p99']);
  // What a pattern makes of one line is what another is called: still each has a name of its own.
  const clash = labels([g('host=b', { host: 'a' }, { letter: 'A' }), g('', { host: 'b' }, { letter: 'B' })]);
  assert.equal(new Set(clash).size, 2, clash.join());
});

test('a line of percentiles is named by its own', () => {
  const g = (metric, tags) => withPercentile({ metric, tags });
  assert.deepEqual(labels([g('m_pct_50.0', {}), g('m_pct_99.9', {})]), ['p50', 'p99.9']);
  assert.deepEqual(labels([g('m_pct_99.0', { host: 'a' }), g('m_pct_99.0', { host: 'b' })]), ['p99 host=a', 'p99 host=b']);
  assert.deepEqual(labels([g('m_pct_1.0E-4', { host: 'a' }), { metric: 'n', tags: { host: 'a' } }]), ['m p0.0001', 'n']);
  assert.deepEqual(withPercentile({ metric: 'a_pct_5.0_pct_50.0' }), { metric: 'a_pct_5.0', percentile: 'p50' });
  assert.deepEqual(withPercentile({ metric: 'm_pct_x' }), { metric: 'm_pct_x' });
});

test('numbers', () => {
  assert.deepEqual(format.ticks([7.804e9, 7.806e9], 2e6), ['7.804G', '7.806G']);
  assert.deepEqual(format.ticks([0, 100], 100), ['0', '100']);
  assert.equal(format.value(1234567), '1.235M');
  assert.equal(format.value(0), '0');
  assert.equal(format.value(undefined), '–');
});

