import assert from 'node:assert/strict';
import test from 'node:test';
import { LiveClient } from '../static/js/live.js';

// world is a clock and a server in the test's hands.
function world() {
  const w = { sockets: [], timers: [], states: [], now: 0 };
  class Socket {
    constructor(url, protocols) { Object.assign(this, { url, protocols, readyState: 0, sent: [] }); w.sockets.push(this); }
    open() { this.readyState = 1; this.onopen(); }
    send(text) { this.sent.push(JSON.parse(text)); }
    say(message) { this.onmessage({ data: JSON.stringify(message) }); }
    close(code = 1006, reason = '') { if (this.readyState < 3) { this.readyState = 3; this.onclose({ code, reason }); } }
  }
  const env = {
    WebSocket: Socket, random: () => 0.5,
    setTimeout: (f, ms) => { const timer = { f, at: w.now + ms }; w.timers.push(timer); return timer; },
    clearTimeout: (timer) => { w.timers = w.timers.filter((t) => t !== timer); },
  };
  w.pass = (ms) => {
    w.now += ms;
    for (const t of w.timers.filter((x) => x.at <= w.now)) { env.clearTimeout(t); t.f(); }
  };
  w.last = () => w.sockets[w.sockets.length - 1];
  w.client = new LiveClient('ws://h/api/ws', { env, token: () => w.token || '', onState: (s) => w.states.push(s) });
  return w;
}

const snapshot = (id, epoch, seq, dps) => ({ type: 'snapshot', id, epoch, seq, results: [{ queryIndex: 0, metric: 'm', tags: {}, aggregateTags: [], dps }] });
const delta = (id, seq, dps) => ({ type: 'delta', id, seq, groups: [], removed: [], upserts: [{ group: 0, dps }], deletes: [] });

test('subscribes when the socket opens, and keeps the answer up to date', () => {
  const w = world();
  let seen = 0;
  const sub = w.client.subscribe({ start: '1h-ago' }, { onData: () => seen++ });
  w.last().open();
  assert.deepEqual(w.last().protocols, ['downpour.v1']);
  assert.deepEqual(w.last().sent, [{ type: 'subscribe', id: '1', query: { start: '1h-ago' } }]);
  w.last().say(delta('1', 9, [[5, 5]])); // of an earlier subscription: not ours yet
  w.last().say(snapshot('1', 'e', 1, [[10, 1]]));
  w.last().say(delta('1', 2, [[20, 2]]));
  w.last().say({ type: 'heartbeat' });
  assert.equal(seen, 2);
  assert.deepEqual(sub.answer.groups.get(0).times, [10, 20]);
  sub.close();
  assert.deepEqual(w.last().sent[1], { type: 'unsubscribe', id: '1' });
});

test('after a break it resumes where it was', () => {
  const w = world();
  const sub = w.client.subscribe({}, {});
  w.last().open();
  w.last().say(snapshot('1', 'e', 1, [[10, 1]]));
  w.last().say(delta('1', 2, [[20, 2]]));
  w.last().close(1001, 'the server stops');
  assert.deepEqual(w.states.at(-1), { connected: false, retryIn: 375, attempts: 1, code: 1001, reason: 'the server stops' });
  w.pass(374);
  assert.equal(w.sockets.length, 1);
  w.pass(1);
  w.last().open();
  assert.deepEqual(w.last().sent[0].resume, { epoch: 'e', seq: 2 });
  w.last().say(delta('1', 5, [[30, 3]])); // the server knew the place
  assert.deepEqual(sub.answer.groups.get(0).times, [10, 20, 30]);
});

test('a restarted server sends everything, and no hole stays', () => {
  const w = world();
  const sub = w.client.subscribe({}, {});
  w.last().open();
  w.last().say(snapshot('1', 'e', 7, [[10, 1], [20, 2]]));
  w.last().close();
  w.pass(10_000);
  w.last().open();
  w.last().say(snapshot('1', 'of another', 1, [[20, 2], [30, 3], [40, 4]]));
  w.last().say(delta('1', 2, [[50, 5]]));
  assert.deepEqual(sub.answer.groups.get(0).times, [20, 30, 40, 50]);
  w.last().close();
  w.pass(10_000);
  w.last().open();
  assert.deepEqual(w.last().sent[0].resume, { epoch: 'of another', seq: 2 });
});

test('waits grow, are bounded, and start anew after a word from the server', () => {
  const w = world();
  w.client.subscribe({}, {});
  const waits = [];
  for (let i = 0; i < 10; i++) {
    w.last().close();
    waits.push(w.states.at(-1).retryIn);
    w.pass(60_000);
  }
  assert.deepEqual(waits, [375, 750, 1500, 3000, 6000, 12000, 22500, 22500, 22500, 22500]);
  w.last().open();
  w.last().say({ type: 'heartbeat' });
  w.last().close();
  assert.equal(w.states.at(-1).retryIn, 375);
});

test('a silent connection is given up', () => {
  const w = world();
  w.client.subscribe({}, {});
  w.last().open();
  w.pass(60_000);
  w.last().say({ type: 'heartbeat' });
  w.pass(60_000);
  assert.equal(w.sockets.length, 1);
  w.pass(10_000);
  assert.equal(w.states.at(-1).connected, false);
  w.pass(1000);
  assert.equal(w.sockets.length, 2);
});

test('an error ends its subscription only, a temporary one none', () => {
  const w = world();
  const errors = [];
  const done = [];
  w.client.subscribe({ n: 1 }, { onError: (e) => errors.push(e.code), onComplete: () => done.push(1) });
  w.client.subscribe({ n: 2 }, { onError: (e) => errors.push(e.code) });
  w.client.subscribe({ n: 3 }, { onComplete: () => done.push(3) });
  w.last().open();
  w.last().say({ type: 'error', id: '1', error: { code: 413, message: 'x', temporary: false } });
  w.last().say({ type: 'error', id: '2', error: { code: 400, message: 'y', temporary: true } });
  w.last().say({ type: 'error', error: { code: 400, message: 'of no id', temporary: false } });
  w.last().say({ type: 'complete', id: '3' });
  assert.deepEqual([errors, done], [[413, 400], [3]]);
  w.last().close();
  w.pass(1000);
  w.last().open();
  assert.deepEqual(w.last().sent.map((m) => m.query.n), [2]);
});

test('the token goes along as second subprotocol', () => {
  const w = world();
  w.token = 'sesame';
  w.client.subscribe({}, {});
  assert.deepEqual(w.last().protocols, ['downpour.v1', 'bearer.sesame']);
});

test('without sockets it asks by HTTP, and a socket that opens starts anew', async () => {
  const w = world();
  const asked = [];
  w.client.env.fetch = async (path) => { asked.push(path); return { ok: true, status: 200, text: async () => '[{"metric":"m","tags":{},"aggregateTags":[],"dps":[[10,1],[20,2]]}]' }; };
  w.client.env.hidden = () => false;
  const sub = w.client.subscribe({}, {});
  w.last().close();
  assert.deepEqual([asked, w.states.at(-1).connected], [[], false]);
  w.pass(1000);
  w.last().close();
  await new Promise((resolve) => { setImmediate(resolve); });
  assert.deepEqual([asked, w.states.at(-1)], [['http://h/api/query?arrays=true'], { connected: true, polling: true }]);
  assert.deepEqual(sub.answer.groups.get(0).times, [10, 20]);
  w.pass(1000);
  w.last().open();
  assert.deepEqual(w.last().sent, [{ type: 'subscribe', id: '1', query: {} }]); // no resume: the server knows nothing of it
  assert.deepEqual(w.states.at(-1), { connected: true });
  w.pass(60_000);
  assert.equal(asked.length, 1);
});

test('a request for expressions is asked as such, again after a break', () => {
  const w = world();
  w.client.subscribe({ time: {} }, {}, 'exp');
  w.last().open();
  assert.deepEqual(w.last().sent, [{ type: 'subscribe', id: '1', exp: { time: {} } }]);
  w.last().say(snapshot('1', 'e', 4, [[10, 1]]));
  w.last().close();
  w.pass(1000);
  w.last().open();
  assert.deepEqual(w.last().sent, [{ type: 'subscribe', id: '1', exp: { time: {} }, resume: { epoch: 'e', seq: 4 } }]);
});

test('what is answered at once is answered by the socket, too', () => {
  const w = world();
  const seen = [];
  const first = w.client.subscribe({ start: 1 }, { onData: () => seen.push('first') });
  w.last().open();
  w.last().say(snapshot('1', 'e', 1, [[10, 1]]));
  const second = w.client.subscribe({ start: 2 }, { onData: () => seen.push('second') });
  const asked = [];
  w.client.poller.env.XMLHttpRequest = class {
    open() {}
    setRequestHeader() {}
    send(body) { asked.push(JSON.parse(body).start); [this.status, this.responseText] = [200, '[{"metric":"m","tags":{},"dps":[[10,7]]}]']; }
  };
  w.client.answerAtOnce(Date.now() + 60_000);
  assert.deepEqual([asked, seen, second.answer.groups.get(0).values], [[2], ['first', 'second'], [7]]);
  w.last().say(delta('2', 2, [[20, 2]])); // nobody knows to what it would belong
  assert.deepEqual(second.answer.groups.get(0).times, [10]);
  w.last().say(snapshot('2', 'e', 1, [[10, 8]]));
  w.last().say(delta('2', 2, [[20, 9]]));
  assert.deepEqual([first.answer.groups.get(0).values, second.answer.groups.get(0).values], [[1], [8, 9]]);
});
