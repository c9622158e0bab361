import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

// The socket that the module finds, in the test's hands.
const sockets = [];
globalThis.WebSocket = class {
  constructor(url, protocols) { Object.assign(this, { url, protocols, readyState: 0, sent: [] }); sockets.push(this); }
  open() { this.readyState = 1; this.onopen(); }
  send(text) { this.sent.push(JSON.parse(text)); }
  say(message) { this.onmessage({ data: JSON.stringify(message) }); }
  close() { if (this.readyState < 3) { this.readyState = 3; this.onclose({ code: 1006, reason: '' }); } }
};
globalThis.devicePixelRatio ??= 1;
const { subscribe } = await import('../static/embed.js');

const query = { start: '1h-ago', queries: [{ metric: 'm', aggregator: 'sum', tags: { host: '*' } }] };
const result = (host, ...dps) => ({ queryIndex: 0, metric: 'm', tags: { host }, aggregateTags: [], dps });

test('lines, words and one socket for all that is asked with one token', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const [seen, said] = [[], []];
  const first = subscribe(query, (lines) => seen.push(structuredClone(lines)), { token: 'secret', onStatus: ({ kind }) => said.push(kind) });
  const second = subscribe(query, () => {}, { token: 'secret' });
  assert.equal(sockets.length, 1);
  const [socket] = sockets;
  assert.match(socket.url, /\/api\/ws$/);
  assert.deepEqual(socket.protocols, ['downpour.v1', 'bearer.secret']);
  socket.open();
  assert.deepEqual(socket.sent.map((m) => [m.type, m.id, m.query]), [['subscribe', '1', query], ['subscribe', '2', query]]);
  socket.say({ type: 'error', id: '1', error: { code: 400, message: "No such name for 'metrics': 'm'", temporary: true } });
  socket.say({ type: 'snapshot', id: '1', epoch: 'e', seq: 1, results: [result('a', [10, 1]), result('b', [10, 'NaN'])] });
  socket.say({ type: 'delta', id: '1', seq: 2, groups: [], removed: [1], upserts: [{ group: 0, dps: [[20, 2.5]] }], deletes: [] });
  socket.say({ type: 'delta', id: '1', seq: 3, groups: [], removed: [0], upserts: [], deletes: [] });
  assert.deepEqual(seen, [
    [{ name: 'host=a', metric: 'm', tags: { host: 'a' }, times: [10], values: [1] }, { name: 'host=b', metric: 'm', tags: { host: 'b' }, times: [10], values: [NaN] }],
    [{ name: 'host=a', metric: 'm', tags: { host: 'a' }, times: [10, 20], values: [1, 2.5] }],
    [],
  ]);
  first.close();
  assert.deepEqual(socket.sent.at(-1), { type: 'unsubscribe', id: '1' });
  const words = said.length;
  socket.say({ type: 'error', id: '1', error: { code: 500, message: 'x', temporary: false } });
  assert.equal(said.length, words, 'words after its end');
  assert.deepEqual(said, ['connecting', 'unknown', 'live', 'live', 'nodata']);
  second.close();
});

test('the colours are those of the page', () => {
  const css = readFileSync(new URL('../static/app.css', import.meta.url), 'utf8');
  const colours = [...css.matchAll(/--c(\d): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)].map(([, , light, dark]) => [light, dark]);
  const module = readFileSync(new URL('../static/embed.js', import.meta.url), 'utf8');
  assert.deepEqual([...module.matchAll(/\['(#[0-9a-f]{6})', '(#[0-9a-f]{6})'\]/g)].map(([, light, dark]) => [light, dark]), colours);
});
