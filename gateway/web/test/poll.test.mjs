import assert from 'node:assert/strict';
import test from 'node:test';
import { Poller, ofTables } from '../static/js/poll.js';

const settled = () => new Promise((resolve) => { setImmediate(resolve); });

// world is a clock and an HTTP server in the test's hands.
function world(answers) {
  const w = { asked: [], said: [], rounds: [], timer: null, hidden: false, subs: [] };
  const env = {
    hidden: () => w.hidden,
    fetch: async (path, { body, headers }) => {
      w.asked.push([path, JSON.parse(body), headers.Authorization]);
      const [status, text] = answers(JSON.parse(body));
      return { status, ok: status === 200, text: async () => text };
    },
    setTimeout: (f, ms) => { w.timer = { f, ms }; return w.timer; }, clearTimeout: () => { w.timer = null; },
  };
  w.poller = new Poller(env, 'http://h/api/query', () => 'sesame', () => w.subs, (sub, m) => { w.said.push([sub.id, m.type, m.results?.length ?? m.error]); w.rows = m.rows ?? w.rows; }, (r) => w.rounds.push(r));
  return w;
}

test('each round asks every subscription, as snapshots', async () => {
  const w = world(() => [200, '[{"dps":[[1,2]]},{"statsSummary":{"rowsPreFilter":7}}]']);
  w.subs = [{ id: 'a', query: { start: '1h-ago' } }, { id: 'b', query: { start: 1, end: 2 } }];
  w.poller.start();
  await settled();
  assert.deepEqual(w.said, [['a', 'snapshot', 1], ['b', 'snapshot', 1], ['b', 'complete', undefined]]);
  assert.deepEqual(w.asked[0], ['http://h/api/query?arrays=true', { start: '1h-ago', showSummary: true }, 'Bearer sesame']);
  assert.equal(w.rows, 7);
  assert.deepEqual([w.rounds, w.timer.ms], [[{ works: true }], 5000]);
  w.hidden = true;
  w.timer.f();
  await settled();
  assert.equal(w.asked.length, 2, 'nobody looks, nothing is asked');
  assert.equal(w.poller.stop(), true);
  assert.equal(w.timer, null);
});

test('an error is of its query; an unknown name may come', async () => {
  const w = world(({ start }) => [start, JSON.stringify({ error: { code: start, message: start === 400 ? "No such name for 'metrics': 'x'" : 'too much' } })]);
  w.subs = [{ id: 'a', query: { start: 400 } }, { id: 'b', query: { start: 413 } }];
  w.poller.start();
  await settled();
  assert.deepEqual(w.said, [['a', 'error', { code: 400, message: "No such name for 'metrics': 'x'", temporary: true }], ['b', 'error', { code: 413, message: 'too much', temporary: false }]]);
});

test('a refused page and a server that is gone do not work', async () => {
  const w = world(() => [403, '{"error":{"message":"CORS domain not allowed","details":"The domain [http://x] is not permitted access"}}']);
  w.subs = [{ id: 'a', query: {} }];
  w.poller.start();
  await settled();
  assert.deepEqual(w.rounds, [{ works: false, reason: 'the server refuses this page: CORS domain not allowed. The domain [http://x] is not permitted access' }]);
  const gone = world(() => { throw new TypeError('Failed to fetch'); });
  gone.subs = w.subs;
  gone.poller.start();
  await settled();
  assert.deepEqual(gone.rounds, [{ works: false }]);
});

test('what was asked before a stop is not delivered after it', async () => {
  const w = world(() => [200, '[]']);
  w.subs = [{ id: 'a', query: {} }];
  w.poller.start();
  w.poller.stop();
  await settled();
  assert.deepEqual([w.said, w.rounds], [[], []]);
});

test('expressions are asked below, and their tables become results', async () => {
  const table = { id: 'e', dps: [[1000, 1.5, 'NaN'], [2000, 2, 3]], dpsMeta: {}, meta: [{ index: 0, metrics: ['timestamp'] },
    { index: 1, metrics: ['m'], commonTags: { host: 'a' }, aggregatedTags: [] }, { index: 2, metrics: ['m'], commonTags: {}, aggregatedTags: ['host'] }] };
  assert.deepEqual(ofTables([{ id: 'none', dps: [] }, table]), [
    { queryIndex: 1, metric: 'e', tags: { host: 'a' }, aggregateTags: [], dps: [[1000, 1.5], [2000, 2]] },
    { queryIndex: 1, metric: 'e', tags: {}, aggregateTags: ['host'], dps: [[1000, 'NaN'], [2000, 3]] }]);
  const w = world(({ time }) => (time.start ? [200, JSON.stringify({ outputs: [table] })] : [400, '{"error":{"message":"No intersections found: a has 1 series"}}']));
  w.subs = [{ id: 'a', kind: 'exp', query: { time: { start: 1 } } }, { id: 'b', kind: 'exp', query: { time: { start: 1, end: 2 } } }, { id: 'c', kind: 'exp', query: { time: {} } }];
  w.poller.start();
  await settled();
  assert.deepEqual(w.asked.map(([path, body]) => [path, body]).slice(0, 1), [['http://h/api/query/exp', { time: { start: 1 } }]]);
  assert.deepEqual(w.said, [['a', 'snapshot', 2], ['b', 'snapshot', 2], ['b', 'complete', undefined], ['c', 'error', { code: 400, message: 'No intersections found: a has 1 series', temporary: true }]]);
});

// Request is an XMLHttpRequest that waits for its answer; answers() may throw, as a network does.
const requestsOf = (asked, answers) => class Request {
  open(method, path, later) { Object.assign(this, { method, path, later, headers: {} }); }
  setRequestHeader(k, v) { this.headers[k] = v; }
  send(body) { asked.push([this.method, this.path, this.later, this.headers.Authorization, JSON.parse(body)]); [this.status, this.responseText] = answers(JSON.parse(body)); }
};

test('at once it asks while the page waits, up to a time', () => {
  const w = world(() => [500, '']);
  const asked = [];
  w.poller.env.XMLHttpRequest = requestsOf(asked, ({ start }) => (start === 'bad' ? [400, '{"error":{"message":"no"}}'] : [200, '[{"dps":[[1,2]]}]']));
  w.poller.atOnce([{ id: 'a', query: { start: '1h-ago' } }, { id: 'b', query: { start: 'bad' } }, { id: 'c', query: { start: 1, end: 2 } }], Date.now() + 60_000);
  assert.deepEqual(asked[0], ['POST', 'http://h/api/query?arrays=true', false, 'Bearer sesame', { start: '1h-ago', showSummary: true }]);
  assert.deepEqual(w.said, [['a', 'snapshot', 1], ['b', 'error', { code: 400, message: 'no', temporary: false }], ['c', 'snapshot', 1], ['c', 'complete', undefined]]);
  w.poller.atOnce([{ id: 'd', query: {} }], Date.now() - 1);
  assert.equal(asked.length, 3, 'the time is over');
  w.poller.env.XMLHttpRequest = requestsOf(asked, () => { throw new Error('the network'); });
  w.poller.atOnce([{ id: 'e', query: {} }, { id: 'f', query: {} }], Date.now() + 60_000);
  assert.equal(asked.length, 4, 'what does not get through is not tried for each');
});
