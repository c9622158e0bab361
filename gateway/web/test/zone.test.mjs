import assert from 'node:assert/strict';
import test from 'node:test';
import { clock, time } from '../static/js/format.js';
import { known, parse } from '../static/js/zone.js';

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
  for (const wrong of ['', 'yesterday', '2026-02-30', '10:00', '5x-ago']) assert.equal(utc(wrong), null, wrong);
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
