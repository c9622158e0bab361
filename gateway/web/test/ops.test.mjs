import assert from 'node:assert/strict';
import test from 'node:test';
import { LiveClient } from '../static/js/live.js';
import { stackOf } from '../static/js/ops/strip.js';
import * as words from '../static/js/ops/words.js';
import { Poller } from '../static/js/poll.js';

test('points by second: the newest, the most, and what was refused', () => {
  const puts = { http: [0, 5000, 10], telnet: [1, 0, 5], own: [0, 0, 2], refused: [9, 0, 3] };
  assert.equal(words.puts(puts), '17 points in the last second (HTTP 10, telnet 5, this host’s own 2), 3 refused; at most 5k a second within 3 s');
  assert.match(words.puts({ http: [], telnet: [], own: [], refused: [] }), /^0 points in the last second/);
});

test('the result cache: a share of the asks, and nothing where it is off', () => {
  const c = { limit: 1024, bytes: 512, entries: 3, hits: 30, new: 5, changed: 4, unproven: 1, evictions: 0, savedRows: 1200, savedBytes: 2048, shared: 7 };
  assert.equal(words.cache(c), '75% of 40 asks answered from memory');
  assert.deepEqual(words.cacheRows(c)[1], { what: 'Not read again', text: '2 KiB, 1.2k rows' });
  assert.equal(words.cache({ ...c, limit: 0 }), 'It is off.');
  assert.deepEqual(words.cacheRows({ limit: 0 }), []);
});

test('UIDs: none left, a time, or not soon', () => {
  assert.equal(words.runsOut({ used: 7, most: 7 }), 'none is left');
  assert.equal(words.runsOut({ used: 1, most: 7 }), 'not soon');
  assert.match(words.runsOut({ used: 1, most: 7, runOut: 1356998400000 }), /^201[23]-\d\d-\d\d \d\d:\d\d:\d\d$/);
  assert.equal(words.grown({ grown: 120, within: 3600000 }), '120 in 1 h');
  assert.equal(words.grown({ grown: 0, within: 0 }), '–');
});

test('a place is slow beside the quickest, if both have read enough', () => {
  const quick = { parts: 50, mean: 10 };
  const late = { parts: 50, mean: 900 };
  assert.equal(words.slow(late, [quick, late]), true);
  assert.equal(words.slow(quick, [quick, late]), false);
  assert.equal(words.slow({ ...late, parts: 2 }, [quick, late]), false);
  assert.equal(words.slow(late, [late]), false);
});

test('places: their number, those away, and the regions', () => {
  assert.equal(words.places({ list: [{}], regions: [] }), 'No pushdown server is configured: this process reads all parts.');
  assert.equal(words.places({ list: [{ state: 'away' }, { state: 'healthy' }, {}], regions: [{ regions: 3 }, { regions: 1 }] }), '2 pushdown servers, 1 away. 4 regions of the data table, in the order of their keys:');
});

test('a stack stands on what is below it, and seconds without points have no bar', () => {
  assert.deepEqual(stackOf([[2, 0], [2, 4]], 4), ['M0 1h1V0.5h-1z', 'M0 0.5h1V0h-1zM1 1h1V0h-1z']);
});

test('over the socket, and by HTTP where sockets are blocked, a report comes to its subscription', async () => {
  const sent = [];
  const env = { random: () => 0.5, setTimeout: () => 0, clearTimeout() {}, hidden: () => false };
  let socket;
  env.WebSocket = class { constructor() { socket = this; this.readyState = 0; } send(text) { sent.push(JSON.parse(text)); } close() {} };
  const client = new LiveClient('ws://h/api/ws', { env });
  const seen = [];
  client.subscribe(true, { onData: (r) => seen.push(r) }, 'ops');
  socket.readyState = 1;
  socket.onopen();
  assert.deepEqual(sent, [{ type: 'subscribe', id: '1', ops: true }]);
  socket.onmessage({ data: '{"type":"ops","id":"1","ops":{"time":7}}' });
  assert.deepEqual(seen, [{ time: 7 }]);

  const asked = [];
  let status = 200;
  const fetch = async (path, { method = 'GET', headers }) => { asked.push([method, path, headers.Authorization]); return { status, ok: status === 200, text: async () => '{"time":8}' }; };
  const [said, rounds] = [[], []];
  const poller = new Poller({ ...env, fetch }, 'http://h/api/query', () => 'sesame', () => [{ id: 'o', kind: 'ops', query: true }], (sub, m) => said.push([sub.id, m.type, m.ops]), (r) => rounds.push(r));
  poller.start();
  await new Promise((done) => { setImmediate(done); });
  assert.deepEqual(asked, [['GET', 'http://h/api/ops', 'Bearer sesame']]);
  assert.deepEqual(said, [['o', 'ops', { time: 8 }]]);
  status = 401;
  poller.now();
  await new Promise((done) => { setImmediate(done); });
  assert.deepEqual(rounds.at(-1), { works: false, reason: 'the server wants a token' });
  poller.stop();
});

test('series: all of them, those that were read in time, and none', () => {
  assert.equal(words.series({ series: 12_000, complete: true, allMetrics: 30, allTagKeys: 4 }), '12k series of 30 metrics with 4 tag keys.');
  assert.equal(words.series({ series: 12_000, complete: false, allMetrics: 30, allTagKeys: 4 }), 'More than 12k series of 30 metrics with 4 tag keys: the time was over before all were read.');
  assert.match(words.series({ series: 0, complete: true, allMetrics: 0, allTagKeys: 0 }), /DOWNPOUR_META_TRACKING/);
});

test('queries are said in words: aggregator, metric, tags, downsample and range; what is cut stays as it is', () => {
  const of = (q, route = '/api/query') => words.asked({ route, query: JSON.stringify(q) });
  const filters = [{ tagk: 'host', filter: '*', type: 'wildcard', group_by: true }, { tagk: 'dc', filter: 'eu.*', type: 'regexp', group_by: false }];
  assert.equal(of({ start: '1d-ago', queries: [{ aggregator: 'sum', metric: 'cpu', downsample: '1m-avg-nan', rate: true, filters }] }),
    'sum of cpu{host=*}{dc=regexp(eu.*)}, rate, avg of each 1m, nan in gaps; last 1d');
  assert.match(of({ start: '1356998400', end: '1357002000000ms', queries: [{ aggregator: 'none', tsuids: ['01', '02'], downsample: '0all-max' }] }, '/q'),
    /^each series of 2 series, max of all; 201[23]-\d\d-\d\d [\d:]+ – 201[23]-\d\d-\d\d [\d:]+ \(\/q\)$/);
  assert.equal(of({ start: '1h-ago', end: 'now', queries: Array(5).fill({ aggregator: 'avg', metric: 'm', percentiles: [50, 99.9] }) }),
    'avg of m, p50 p99.9; avg of m, p50 p99.9; avg of m, p50 p99.9; 2 more; last 1h');
  assert.equal(of({ time: { start: '1h-ago' }, metrics: [{ metric: 'a' }, { metric: 'b' }], expressions: [{ expr: 'a / b' }] }, '/api/query/exp'), 'a / b over a, b; last 1h (/api/query/exp)');
  assert.equal(words.asked({ route: '/q', query: '{"start":"1h-a…' }), '/q {"start":"1h-a…');
  assert.equal(of({ start: '1h-ago', notListed: 'a query of 99 bytes', queries: [] }), '/api/query {"start":"1h-ago","notListed":"a query of 99 bytes","queries":[]}');
});
