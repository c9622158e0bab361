import assert from 'node:assert/strict';
import test from 'node:test';
import { clock, time } from '../static/js/format.js';
import { known, parse, written } from '../static/js/zone.js';

test('what people write for a time', () => {
  const now = 1795255200; // 2026-11-21 10:00:00 UTC
  const utc = (text) => parse(text, now, 'UTC');
  assert.equal(utc('2h-ago'), now - 7200);
  assert.equal(utc('now'), now);
  assert.equal(utc('1795255200'), now);
  assert.equal(utc('1795255200000'), now);
  assert.equal(utc('2026-11-21 10:00'), now);
  assert.equal(utc('2026-11-21T10:00:30'), now + 30);
  assert.equal(utc('2026/11/21-10:00:00'), now);
  assert.equal(utc('2026-11-21'), now - 36000);
  for (const wrong of ['', 'yesterday', '2026-02-30', '10:00', '5x-ago', '2026-11-21 25:00', '2026-11-21 10:61']) assert.equal(utc(wrong), null, wrong);
});

test('what people write into a field for a time', () => {
  const now = 1795255200; // 2026-11-21 10:00:00 UTC
  const f = (text, until = false, zone = 'UTC') => { const got = written(text, now, zone, until); return got.text ?? got.fault; };
  for (const [text, want] of [['6h', '6h-ago'], ['now-6h', '6h-ago'], ['now - 30 m', '30m-ago'], ['6h-ago', '6h-ago'], ['007D', '7d-ago'], ['now', String(now)], [' 2026-11-21 10:00 ', String(now)]]) assert.equal(f(text), want, text);
  assert.deepEqual([f('now', true), f('', true), f('1h', true)], ['', '', '1h-ago']);
  const start = Date.UTC(2026, 10, 20) / 1000;
  assert.deepEqual([f('yesterday'), f('Yesterday', true), f('today'), f('today', true)], [start, start + 86400, start + 86400, ''].map(String));
  // In Berlin the day began an hour before; one on which clocks change has 25 hours.
  assert.equal(f('yesterday', false, 'Europe/Berlin'), String(start - 3600));
  const changed = Date.UTC(2026, 9, 26, 9) / 1000; // the day after
  const [from, to] = [false, true].map((until) => Number(written('yesterday', changed, 'Europe/Berlin', until).text));
  assert.equal(to - from, 25 * 3600);
  assert.match(f('5x'), /^“x” is no unit of time: write s, m, h, d/);
  assert.match(f('now-5min'), /^“min” is no unit of time.*as in 5h\.$/);
  assert.equal(f('2026-02-30'), '2026-02-30 is not in the calendar, or on the clock.');
  assert.equal(f('0h'), '“0h” is no time ago: 1h is the least.');
  assert.match(f('soon'), /^“soon” is no time: write 6h/);
  assert.match(f(''), /^There is no start/);
});

test('zones, also around a change of the clock', () => {
  assert.equal(time(1795255200, 'Asia/Kolkata'), '2026-11-21 15:30:00');
  assert.equal(time(1795255200.25, 'UTC'), '2026-11-21 10:00:00.250');
  assert.equal(clock(1795219200, 'UTC'), '00:00:00');
  for (const zone of ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu']) {
    for (let t = 1772000000; t < 1772000000 + 366 * 86400; t += 36000) {
      const back = parse(time(t, zone), 0, zone);
      assert.ok(back === t || time(back, zone) === time(t, zone), `${zone} ${t}: ${time(t, zone)} is read as ${back}`); // an hour that comes twice
    }
  }
  assert.ok(known('Europe/Berlin') && known('') && !known('Nowhere/City'));
});
