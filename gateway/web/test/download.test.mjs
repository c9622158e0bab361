import assert from 'node:assert/strict';
import test from 'node:test';
import { parse } from '../static/js/answer.js';
import { csv } from '../static/js/download.js';
import { traceOf } from '../static/js/inspect.js';

const line = (label, times, values) => ({ label, group: { times, values } });

test('a CSV line for each time in the range, a column for each line', () => {
  const lines = [line('host=a', [0, 10, 20], [1, 0.1, NaN]), line('say "x", y', [10.5, 20], [9007199254740993n, null])];
  assert.equal(csv(lines, [10, 30]), 'time,host=a,"say ""x"", y"\r\n1970-01-01T00:00:10Z,0.1,\r\n1970-01-01T00:00:10.500Z,,9007199254740993\r\n1970-01-01T00:00:20Z,NaN,\r\n');
});

test('a name is no formula, a negative number is one', () => {
  assert.equal(csv([line('=1+1', [0], [-5])], [0, 1]), "time,'=1+1\r\n1970-01-01T00:00:00Z,-5\r\n");
});

test('a message is read', () => {
  assert.deepEqual(parse('{"dps":[[1,2.5],[2,"NaN"],[3,1795255200000]]}'), { dps: [[1, 2.5], [2, 'NaN'], [3, 1795255200000]] });
  assert.equal(parse('{"host":"12345678901234567890"}').host, '12345678901234567890');
});

test('the trace is found beside the results and among them', () => {
  const tree = { name: 'query', ms: 1 };
  assert.deepEqual([traceOf([{ metric: 'm' }, { trace: tree }]), traceOf({ results: [], trace: tree }), traceOf([])], [tree, tree, null]);
});
