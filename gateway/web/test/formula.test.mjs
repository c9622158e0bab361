import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { labels } from '../static/js/columns.js';
import { named, toFormula, withoutQuery } from '../static/js/formula.js';
import { ofFormula } from '../static/js/messages.js';
import { fromHash, toHash } from '../static/js/state.js';

const now = 1700000000;
const made = (hash, expr) => toFormula(fromHash(hash), expr, now);
const fault = (hash, expr) => made(hash, expr).fault;

test('a formula is a request for expressions over the queries that it names', () => {
  const { exp, step, keys } = made('#start=6h-ago&m=sum:1m-avg:rate:cpu{host=*}{type=user}&m=max:1m-avg:rate:mem&m=sum:1m-avg:rate:cpu{host=a|b}{type=wildcard(i*)}', 'A/(a + c) * 100');
  assert.deepEqual(exp, {
    time: { start: '6h-ago', aggregator: 'sum', rate: true, downsampler: { interval: '1m', aggregator: 'avg' }, rollupUsage: 'ROLLUP_RAW' },
    filters: [
      { id: 'filtera', tags: [{ type: 'wildcard', tagk: 'host', filter: '*', groupBy: true }, { type: 'literal_or', tagk: 'type', filter: 'user', groupBy: false }] },
      { id: 'filterc', tags: [{ type: 'literal_or', tagk: 'host', filter: 'a|b', groupBy: true }, { type: 'wildcard', tagk: 'type', filter: 'i*', groupBy: false }] },
    ],
    metrics: [
      { id: 'a', metric: 'cpu', aggregator: 'sum', fillPolicy: { policy: 'nan' }, filter: 'filtera' },
      { id: 'c', metric: 'cpu', aggregator: 'sum', fillPolicy: { policy: 'nan' }, filter: 'filterc' },
    ],
    expressions: [{ id: 'formula', expr: 'a/(a + c) * 100', join: { operator: 'intersection', includeAggTags: false, useGroupTags: true } }],
    outputs: [{ id: 'formula' }],
  });
  assert.deepEqual([step, [...keys]], ['1m-avg', ['host']]);
});

test('its time is that of the chart', () => {
  const { exp } = made('#start=1h-ago&pause=1700000900&m=sum:5m-max-zero:m', 'a * 2');
  assert.deepEqual(exp.time, { start: 1699997300, end: 1700000900, aggregator: 'sum', rate: false, downsampler: { interval: '5m', aggregator: 'max' } });
  assert.deepEqual(exp.metrics[0], { id: 'a', metric: 'm', aggregator: 'sum', fillPolicy: { policy: 'zero' } });
});

test('points of several queries meet in buckets where the step is chosen for them', () => {
  const step = (hash, expr) => made(hash, expr).step;
  assert.equal(step('#m=avg:auto:m&m=avg:auto:n', 'a'), '');
  assert.equal(step('#m=avg:auto:m&m=avg:auto:n', 'a + b'), '15s-avg');
  assert.equal(step('#start=1d-ago&m=avg:auto:m&m=avg:auto:n', 'a + b'), '5m-avg');
  assert.equal(step('#m=avg:m&m=avg:n', 'a + b'), ''); // as stored, because somebody says so
});

test('letters are queries; what follows a number is none', () => {
  const two = '#m=avg:m&m=avg:n&m=avg:o&m=avg:p';
  assert.equal(made(two, 'A * 0.5d + 2d > B and a != 1').exp.expressions[0].expr, 'a * 0.5d + 2d > b and a != 1');
  assert.deepEqual(made(two, 'a * 0.5d + 2d').exp.metrics.map((m) => m.id), ['a']);
  assert.deepEqual(fault(two, 'a + x'), { text: 'There is no query X.', at: 4 });
  assert.deepEqual(fault(two, 'rate + a'), { text: '“rate” is no query: their letters are a, b, c and so on.', at: 0 });
  assert.deepEqual(fault(two, '1 + 2'), { text: 'A formula names a query by its letter, as in a / (a + b) * 100.' });
  const state = fromHash(two);
  state.queries[1].metric = '';
  assert.deepEqual(toFormula(state, 'b', now).fault, { text: 'Query B has no metric yet.', at: 0 });
});

test('what a formula cannot have of its queries is said in words', () => {
  const text = (hash, expr = 'a + b') => fault(hash, expr).text;
  assert.match(text('#m=sum:1m-sum:percentiles[50]:m&m=sum:1m-sum:n'), /^Query A asks for percentiles of histograms/);
  assert.match(text('#m=sum:rate{counter,100}:m', 'a'), /^Query A has a rate with options \(rate\{counter,100\}\)/);
  assert.match(text('#m=sum:rate:m&m=sum:n'), /^Of queries A and B some are rates/);
  assert.match(text('#m=sum:1m-avg:m&m=sum:5m-avg:n&m=sum:n', 'a + b + c'), /^Queries A, B and C have different downsamples \(1m-avg, 5m-avg, as stored\)/);
  assert.match(text('#m=sum:1dc-avg:m', 'a'), /^Query A is downsampled by 1dc: a formula wants a fixed interval/);
  assert.match(text('#m=sum:0all-avg:m', 'a'), /^Query A is downsampled by 0all/);
  assert.match(text('#m=none:m&m=sum:n'), /^Of queries A and B some are aggregated/);
  assert.equal(fault('#m=sum:1m-avg:m&m=sum:rate:n', 'a'), undefined, 'a query that is not named does not matter');
  assert.equal(made('#m=none:m&m=none:n', 'a - b').exp.expressions[0].join.useGroupTags, false);
});

test('the letters move up when a query is removed', () => {
  assert.equal(withoutQuery('a / (B + c) * 0.5c', 0), 'removed / (A + b) * 0.5c');
  assert.equal(withoutQuery('a / (B + c)', 2), 'a / (B + removed)');
  assert.deepEqual(fault('#m=avg:m', 'a + removed'), { text: 'A query of this formula was removed.', at: 4 });
});

test('a line has the name of its formula, and the tags that tell it from others', () => {
  const group = (host) => ({ metric: 'formula', tags: { host, type: 'user' }, times: [1], values: [2] });
  assert.deepEqual(named(group('x'), 'busy', new Set(['host'])), { metric: 'busy', tags: { host: 'x' }, times: [1], values: [2] });
  assert.deepEqual(named(group('x'), 'busy', null).tags, { host: 'x', type: 'user' });
  assert.deepEqual(labels([named(group('x'), 'busy', new Set(['host'])), named(group('y'), 'busy', new Set(['host'])), { metric: 'cpu', tags: {} }]), ['busy host=x', 'busy host=y', 'cpu']);
});

test('formulas are in the address', () => {
  const state = fromHash('#start=1h-ago&m=avg:auto:m&f=a+%3E+5+%3F+a+:+0d&fn=&fo=&f=100*a&fn=%3Cb%3Ebusy+%25%3C/b%3E&fo=axis+x1y2');
  assert.deepEqual(state.formulas, [{ expr: 'a > 5 ? a : 0d', name: '', right: false }, { expr: '100*a', name: '<b>busy %</b>', right: true }]);
  assert.deepEqual(fromHash(toHash(state)), state);
  assert.equal(toHash(fromHash('#start=1h-ago&m=avg:auto:m&f=a*2&f=')), '#start=1h-ago&m=avg:auto:m&f=a*2');
  assert.equal(fromHash(`#m=avg:m${'&f=a'.repeat(30)}`).formulas.length, 8);
});

test('a row says what is wrong, and where', () => {
  const of = (change) => ofFormula({ answered: true, groups: 1, points: 5, ...change });
  const error = (message, temporary = false) => of({ error: { code: 400, message, temporary } });
  assert.deepEqual(of({}), { kind: 'live', text: '' });
  assert.deepEqual(of({ fault: { text: 'There is no query X.', at: 4 } }), { kind: 'error', text: 'Character 5: There is no query X.' });
  assert.deepEqual(error("1:9 parsing error in 'a / (a +': want a variable, a number or ("), { kind: 'error', text: 'Character 9: want a variable, a number or (.' });
  assert.deepEqual(error('No intersections found: a has 2 series, b has 0 series', true),
    { kind: 'nodata', text: 'No line of one query belongs to one of another: they want equal values of the tags with a line each. A has 2 series, B has 0 series.' });
  assert.equal(error("Expression returned a result of type: java.lang.Integer for expression 'a > 1 ? a : 0': write …", true).text, 'A number by itself cannot be a result: write 0d for 0.');
  assert.equal(error("No such name for 'metrics': 'x'", true).kind, 'unknown');
  assert.equal(of({ answered: false }).kind, 'connecting');
  assert.equal(of({ points: 0 }).kind, 'nodata');
  assert.match(of({ blank: true }).text, /no points at the same times/);
  assert.equal(of({ groups: 201 }).kind, 'toomany');
});

test('what is typed reaches the page as text alone', () => {
  for (const file of ['formularow.js', 'main.js', 'legend.js', 'tooltip.js', 'datatable.js']) {
    assert.doesNotMatch(readFileSync(new URL(`../static/js/${file}`, import.meta.url), 'utf8'), /innerHTML|outerHTML|insertAdjacentHTML|document\.write/);
  }
});
