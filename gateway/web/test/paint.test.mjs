// What is drawn, and when.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Areas } from '../static/js/paint.js';
import { moves } from '../static/js/pixels.js';

// The browser's paths, which keep what is called.
globalThis.Path2D = class {
  calls = [];
  moveTo(x, y) { this.calls.push(`M${x},${y}`); }
  lineTo(x, y) { this.calls.push(`L${x},${y}`); }
  closePath() { this.calls.push('Z'); }
  get text() { return this.calls.join(' '); }
};

// One second is ten pixels, and so is one of the values.
const plot = (min, max) => ({ bbox: { left: 0, top: 0, width: 100, height: 100 }, scales: { x: { min, max }, y: { min: 0, max: 10 } }, valToPos: (v) => 10 * v });
const [none, gap] = [undefined, null];
const drawn = (columns, view = plot(0, 10)) => {
  const areas = new Areas(columns, columns.slice(1).map(() => false), []);
  return columns.slice(1).map((_, i) => areas.paths(view, i)).map((p) => (p ? [p.fill.text, p.stroke.text] : null));
};

test('an area is one shape from gap to gap', () => {
  assert.deepEqual(drawn([[0, 1, 2, 3], [1, 2, none, 2]]), [['M0,10 L10,20 L20,20 L30,20 L30,0 L20,0 L10,0 L0,0 Z', 'M0,10 L10,20 L20,20 L30,20']]);
  assert.deepEqual(drawn([[0, 1, 2, 3, 4], [1, 2, gap, 3, 1]]), [['M0,10 L10,20 L10,0 L0,0 Z M30,30 L40,10 L40,0 L30,0 Z', 'M0,10 L10,20 M30,30 L40,10']]);
  assert.deepEqual(drawn([[0, 1], [gap, gap]]), [null]);
});

test('where those below have a gap an area comes down at once, and its line has no wall there', () => {
  const [, above] = drawn([[0, 1, 2, 3, 4], [2, 2, gap, 2, 2], [1, 1, 1, 1, 1]]);
  assert.deepEqual(above, [
    'M0,30 L10,30 L10,10 L20,10 L30,10 L30,30 L40,30 L40,20 L30,20 L30,0 L20,0 L10,0 L10,20 L0,20 Z',
    'M0,30 L10,30 M10,10 L20,10 L30,10 M30,30 L40,30',
  ]);
});

test('of what is out of view nothing is drawn but the stretch that reaches in', () => {
  assert.deepEqual(drawn([[0, 1, 2, 3, 4], [1, 1, 1, 1, 1]], plot(1.5, 2.5))[0][1], 'M10,10 L20,10 L30,10');
});

test('two hundred lines are two hundred shapes', () => {
  const times = Array.from({ length: 240 }, (_, k) => k / 24);
  const fills = drawn([times, ...Array.from({ length: 200 }, (_, i) => times.map((t) => 1 + ((t * 7 + i) % 3)))]).map(([fill]) => fill);
  assert.deepEqual([fills.length, fills.filter((f) => f.match(/M/g).length === 1 && f.match(/Z/g).length === 1).length], [200, 200]);
});

test('a range that moves with the time is drawn when it has moved by a pixel', () => {
  // draws counts them over some seconds of a range that is so long, on so many pixels.
  const draws = (seconds, length, pixels) => {
    let [n, shown] = [0, { min: 0, max: length }];
    for (let t = 1; t <= seconds; t++) {
      if (!moves([t, t + length], shown, pixels)) continue;
      n++;
      shown = { min: t, max: t + length };
    }
    return n;
  };
  assert.equal(draws(600, 3600, 1200), 200, 'an hour, three seconds a pixel');
  assert.equal(draws(600, 86400, 1200), 8);
  assert.equal(draws(600, 900, 1200), 600, 'more than a pixel a second');
});

test('a range of another length is another picture, from a pixel on', () => {
  assert.equal(moves([0, 100.4], { min: 0, max: 100 }, 100), false);
  assert.equal(moves([0, 101], { min: 0, max: 100 }, 100), true);
  assert.equal(moves([-1, 100], { min: 0, max: 100 }, 100), true);
  assert.equal(moves([0, 1], { min: null, max: null }, 100), true, 'nothing is shown yet');
});
