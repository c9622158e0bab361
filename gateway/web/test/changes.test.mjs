import assert from 'node:assert/strict';
import test from 'node:test';
import { charting, heading, missing, moved, summary } from '../static/js/changes.js';

const stretches = { before: { start: 1763720100000, end: 1763721000000 }, after: { start: 1763721000000, end: 1763721900000 } };
const none = { all: 0, series: [] };
const looked = { metrics: 1, series: 1200, sparse: 0 };

test('the heading has both stretches, the date once', () => {
  assert.equal(heading(stretches, 'UTC'), '2025-11-21 10:30:00 – 10:45:00, compared with 2025-11-21 10:15:00 – 10:30:00');
});

test('the summary says how many there are, and of what', () => {
  assert.equal(summary({ changed: none, appeared: none, vanished: none, looked }), 'Nothing changed, of 1,200 series of 1 metric.');
  assert.equal(summary({ changed: { all: 1500 }, appeared: none, vanished: { all: 2 }, looked: { ...looked, sparse: 3 } }),
    '1,500 changed, 2 gone, of 1,200 series of 1 metric, 3 of them with too few points to say.');
});

test('metrics that were not looked at are said by reason', () => {
  assert.equal(missing({}), '');
  const listed = ['a', 'b', 'c', 'd'].map((metric) => ({ metric, why: 'no time' }));
  assert.equal(missing({ notLookedAt: { metrics: 1005, listed: [...listed, { metric: 'e', why: 'too large' }], more: 1000 } }),
    '1,005 metrics not looked at. a, b, c, …: no time. e: too large. 1,000 are beyond the first. A part of a name finds fewer.');
});

test('values are small, rates are by the second', () => {
  assert.equal(moved({ before: 1.23456, after: 2 }), '1.235 → 2');
  assert.equal(moved({ after: 2, rate: true }), 'none → 2/s');
});

test('a series is charted by its tags over both stretches, live if they reach now', () => {
  const part = charting({ metric: 'm', tags: { host: 'a' } }, stretches, 1763730000);
  assert.deepEqual([part.start, part.end, part.queries], ['1763720100', '1763721900', [{ metric: 'm', tags: [{ key: 'host', value: 'a', group: false }] }]]);
  assert.equal(charting({ metric: 'm', tags: {} }, stretches, 1763721900).end, '');
});
