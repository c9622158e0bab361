// What a view shares: lines of some time before, a range that is moved, the address.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Looks } from '../static/js/columns.js';
import { putShared, sharedOf } from '../static/js/board/link.js';
import { faultOfNote } from '../static/js/notes.js';
import { Earlier, labelled, looksOf, secondsOf } from '../static/js/shift.js';
import { lineStyle } from '../static/js/look.js';
import { effectiveDownsample } from '../static/js/query.js';
import { defaults, emptyQuery, panned, windowOf } from '../static/js/state.js';

const now = 1_700_000_000;
const week = 7 * 86400;

// scripted is a live client that keeps what is subscribed.
function scripted() {
  const subs = [];
  return { subs, subscribe: (query, handlers, kind) => { const sub = { query, handlers, kind, open: true, close: () => { sub.open = false; } }; subs.push(sub); return sub; } };
}

const state = (rest = {}) => ({ ...defaults(), start: '1h-ago', queries: [{ ...emptyQuery(), metric: 'm', tags: [{ key: 'host', value: '*', group: true }] }], ...rest });

const answer = (sub, times) => sub.handlers.onData({ points: times.length, groups: new Map([[0, { metric: 'm', tags: { host: 'a' }, aggregateTags: [], times, values: times.map((_, i) => i) }]]) }, { type: 'snapshot' });

test('what was a week ago is asked once, ahead of the time, and is told when its time has come', () => {
  const live = scripted();
  const earlier = new Earlier(live, () => {});
  earlier.ask(state(), '1w', now);
  const [{ query }] = live.subs;
  assert.deepEqual([query.start, query.end, query.queries[0].downsample], [now - week - 3600, now - week + 900, undefined]);
  answer(live.subs[0], [now - week - 60, now - week, now - week + 30, now - week + 600]);
  assert.deepEqual(earlier.lines(now).map((l) => [l.earlier, l.group.times, l.group.values]), [['1w', [now - 60, now], [0, 1]]]);
  assert.deepEqual([earlier.due(now + 29), earlier.due(now + 30)], [false, true]);
  assert.deepEqual(earlier.lines(now + 30)[0].group.times, [now - 60, now, now + 30]);
  for (let t = now; t <= now + 900; t += 100) earlier.ask(state(), '1w', t);
  assert.equal(live.subs.length, 1, 'while it reaches far enough nothing is asked');
  earlier.ask(state(), '1w', now + 901);
  assert.deepEqual(live.subs.map((s) => [s.open, s.query.end]), [[false, now - week + 900], [true, now - week + 901 + 900]]);
  earlier.ask(state(), '', now + 902);
  assert.deepEqual([live.subs.some((s) => s.open), earlier.lines(now), earlier.due(Infinity)], [false, [], true]);
});

test('a shift asks for what is shown: a fixed range, a zoom, a pause, and never beyond now', () => {
  const asked = (rest, shift = '1w') => {
    const live = scripted();
    new Earlier(live, () => {}).ask(state(rest), shift, now);
    const { start, end, queries: [q] } = live.subs[0].query;
    return [start, end, q.downsample];
  };
  assert.deepEqual(asked({ start: String(now - 7200), end: String(now - 3600) }), [now - 7200 - week, now - 3600 - week, undefined]);
  assert.deepEqual(asked({ pause: now - 100 }), [now - 3700 - week, now - 100 - week, undefined]);
  assert.deepEqual(asked({ start: '7d-ago' }), [now - 2 * week, now - week + week / 4, '30m-avg'], 'with the same step as the present');
  assert.deepEqual(asked({ start: '7d-ago', zoom: [now - 7200, now - 3600] }), [now - 7200 - week, now - 3600 - week, undefined], 'a part of a long range by itself');
  assert.deepEqual(asked({}, '1m'), [now - 3660, now - 30, undefined]);
  assert.equal(effectiveDownsample(state({ start: '7d-ago' }), emptyQuery(), now), '30m-avg');
  assert.deepEqual(['1w', '2d', '3h', '5m'].map(secondsOf), [week, 2 * 86400, 3 * 3600, 300]);
});

test('an earlier line has the name and the colour of the present one', () => {
  const line = (host, rest = {}) => ({ letter: 'A', group: { metric: 'm', tags: { host } }, ...rest });
  const lines = [line('a'), line('b'), line('b', { earlier: '1w' }), line('c', { earlier: '1w' })];
  labelled(lines);
  assert.deepEqual(lines.map((l) => l.label), ['host=a', 'host=b', 'host=b (1w ago)', 'host=c (1w ago)']);
  const looks = looksOf(new Looks(), lines);
  const [a, b, earlier, alone] = looks.map(lineStyle);
  assert.equal(earlier.colour, b.colour);
  assert.notEqual(a.colour, b.colour);
  assert.ok(earlier.alpha < 1 && earlier.dash.length > 0 && alone.alpha < 1 && b.alpha === 1);
  assert.equal(new Set(looks).size, 4);
});

test('a range is moved, a zoom in it first, and nothing goes beyond now', () => {
  const window = windowOf(state(), now);
  assert.deepEqual(panned(state(), -900.4, now), { start: String(window[0] - 900), end: String(now - 900), pause: null });
  assert.equal(panned(state(), 900, now), null);
  assert.deepEqual(panned(state({ start: String(now - 7200), end: String(now - 3600) }), 9000, now), { start: String(now - 3600), end: String(now), pause: null });
  const zoom = [now - 1800, now - 1200];
  assert.deepEqual(panned(state({ zoom }), -600, now), { zoom: [now - 2400, now - 1800] });
  assert.deepEqual(panned(state({ zoom }), -3000, now), { zoom: [now - 4800, now - 4200], start: String(now - 6600), end: String(now - 3000), pause: null });
  assert.deepEqual(panned(state({ pause: now - 500 }), 400, now), { start: String(now - 3700), end: String(now - 100), pause: null });
});

test('an address has the values of variables and the shift, whatever they hold', () => {
  const shared = { given: { host: ['web01', 'a&b=c#d|*%'], dc: ['*'] }, shift: '1w' };
  const params = new URLSearchParams();
  putShared(params, shared);
  assert.equal(params.toString(), 'var-host=web01&var-host=a%26b%3Dc%23d%7C*%25&var-dc=*&shift=1w');
  const read = sharedOf(new URLSearchParams(params.toString()));
  assert.deepEqual([{ ...read.given }, read.shift], [shared.given, '1w']);
  assert.equal(sharedOf(new URLSearchParams('shift=<b>')).shift, '');
  const flood = new URLSearchParams(Array.from({ length: 5000 }, (_, i) => [`var-n${i % 100}`, `v${i}`]));
  flood.append('var-__proto__', 'x');
  assert.equal(Object.keys(sharedOf(flood).given).length, 20);
});

test('what a new annotation cannot be is said', () => {
  assert.equal(faultOfNote(now, 0, 'deployed'), '');
  assert.equal(faultOfNote(now, now + 60, 'deployed'), '');
  assert.match(faultOfNote(-1, 0, 'x'), /^From is no time/);
  assert.match(faultOfNote(now, -1, 'x'), /^To is no time/);
  assert.equal(faultOfNote(now, now - 1, 'x'), 'It ends before it begins.');
  assert.equal(faultOfNote(now, 0, ''), 'It has no text.');
  assert.match(faultOfNote(now, 0, 'x'.repeat(1001)), /more than 1000/);
});
