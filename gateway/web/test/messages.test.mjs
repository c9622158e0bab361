import assert from 'node:assert/strict';
import test from 'node:test';
import { describe, ofQuery } from '../static/js/messages.js';

const of = (change) => ofQuery({ metric: 'm', answered: true, groups: 1, points: 5, ...change });
const page = (queries, change = {}) => describe({ connection: { connected: true }, metricsExist: true, queries: queries.map((q, i) => ({ letter: 'ABC'[i], ...q })), ...change });

test('five situations, five messages', () => {
  const texts = [
    of({ points: 0, groups: 0 }),
    of({ error: { code: 400, message: "No such name for 'metrics': 'proc.x'", temporary: true } }),
    of({ error: { code: 400, message: 'Invalid interval', temporary: false } }),
    of({ groups: 201 }),
    page([of({})], { connection: { connected: false, retryIn: 4200, attempts: 1 } }),
  ];
  assert.deepEqual(texts, [
    { kind: 'nodata', text: 'No data: m has no points in this range with these tags.' },
    { kind: 'unknown', text: 'No metric is called “proc.x” yet. Asking again every second.' },
    { kind: 'error', text: 'The server says: Invalid interval.' },
    { kind: 'toomany', text: 'Too many series: the answer has 201 series, the first 200 are drawn. Filter by a tag, or group by fewer.' },
    { kind: 'disconnected', text: 'Disconnected. Trying again in 4 s.' },
  ]);
  assert.equal(of({ error: { code: 400, message: "No such name for 'tagv': 'web9'", temporary: true } }).text, 'No tag value is called “web9” yet. Asking again every second.');
  assert.equal(of({ error: { code: 400, message: "No such name for 'metrics': 'cpu'", suggestions: ['sys.cpu', 'cpu.user', 'gpu'] } }).text,
    'No metric is called “cpu” yet. Did you mean “sys.cpu”, “cpu.user” or “gpu”?');
  assert.equal(of({ error: { code: 503, message: 'missing', temporary: true } }).kind, 'error');
  assert.equal(of({ error: { code: 413, message: 'over budget', temporary: false } }).kind, 'toomany');
});

test('percentiles have words of their own', () => {
  assert.equal(of({ points: 0, histograms: [50] }).text, 'No data: m has no histograms in this range with these tags.');
  assert.deepEqual(of({ fault: 'Percentiles are numbers.', answered: false }), { kind: 'error', text: 'Percentiles are numbers.' });
});

test('of several queries, the one in trouble is named', () => {
  assert.equal(page([of({}), of({})]).kind, 'live');
  assert.deepEqual(page([of({}), of({ points: 0 })]), { kind: 'nodata', text: 'B: No data: m has no points in this range with these tags.' });
  assert.equal(page([of({ points: 0 }), of({ error: { code: 400, message: "No such name for 'metrics': 'x'" } }), of({ error: { code: 500, message: 'x' } })]).kind, 'error');
  assert.equal(page([of({ points: 0 }), of({ error: { code: 400, message: "No such name for 'metrics': 'x'" } })]).kind, 'unknown');
  assert.equal(page([of({ complete: true }), of({})]).kind, 'live');
  assert.equal(page([of({ complete: true })]).kind, 'complete');
});

test('paused, polling, nothing yet', () => {
  assert.deepEqual(page([of({ complete: true })], { pause: 1795255200, zone: 'UTC' }), { kind: 'paused', text: 'Paused at 10:00:00.' });
  assert.equal(page([of({})], { connection: { connected: true, polling: true } }).kind, 'polling');
  assert.equal(page([], { metricsExist: false }).kind, 'nometrics');
  assert.equal(page([]).kind, 'idle');
});

test('a refusal says why', () => {
  const gone = (change) => page([], { connection: { connected: false, retryIn: 9000, attempts: 5, ...change } }).text;
  assert.equal(gone({ reason: 'the server refuses this page: CORS domain not allowed' }), 'Disconnected: the server refuses this page: CORS domain not allowed. Trying again in 9 s.');
  assert.equal(gone({ code: 1008 }), 'Disconnected: the server refuses this token. Trying again in 9 s.');
  assert.match(gone({}), /is the server running/);
});
