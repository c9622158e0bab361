// Where panels lie on the grid, and what becomes of the others when one is put somewhere.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columns, freePlace, moved, put, settle, sized } from '../static/js/board/places.js';

// random is a generator of numbers below n, whose seed a failure shows.
function random(seed) {
  let s = seed;
  return (n) => {
    s = (Math.imul(s, 1664525) + 1013904223) >>> 0;
    return Math.floor((s / 2 ** 32) * n);
  };
}

const panelOf = (id, x, y, w, h) => ({ id, type: 'text', place: { x, y, w, h } });

const overlap = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

// sound says what is wrong with places, '' for nothing.
function wrong(panels) {
  for (const [i, { place: a, id }] of panels.entries()) {
    if (![a.x, a.y, a.w, a.h].every(Number.isInteger) || a.x < 0 || a.y < 0 || a.w < 1 || a.h < 1 || a.x + a.w > columns) return `${id} is at ${JSON.stringify(a)}`;
    for (const { place: b, id: other } of panels.slice(i + 1)) if (overlap(a, b)) return `${id} overlaps ${other}`;
    const held = a.y === 0 || panels.some(({ place: b, id: other }) => other !== id && b.y + b.h === a.y && a.x < b.x + b.w && b.x < a.x + a.w);
    if (!held) return `${id} hangs in the air`;
  }
  return '';
}

test('whatever moves, no panel overlaps another, and none hangs in the air', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const n = random(seed);
    let panels = settle(Array.from({ length: 1 + n(12) }, (_, i) => {
      const w = 1 + n(columns);
      return panelOf(`p${i}`, n(columns - w + 1), n(20), w, 1 + n(9));
    }));
    assert.equal(wrong(panels), '', `seed ${seed}`);
    assert.deepEqual(settle(panels), panels, `seed ${seed}: what needs no move stays`);
    for (let step = 0; step < 12; step++) {
      const { id, place } = panels[n(panels.length)];
      const before = JSON.stringify(panels);
      const change = [
        () => moved(panels, id, ['left', 'right', 'up', 'down'][n(4)]),
        () => sized(panels, id, n(7) - 3, n(7) - 3),
        () => put(panels, id, { ...place, x: n(columns - place.w + 1), y: n(200) / 10 }),
      ][n(3)];
      const after = change();
      assert.equal(JSON.stringify(panels), before, `seed ${seed}: the list given is not changed`);
      panels = after;
      assert.equal(wrong(panels), '', `seed ${seed}, step ${step}`);
    }
  }
});

test('up and down change places with the neighbour, and back', () => {
  const panels = [panelOf('a', 0, 0, 6, 3), panelOf('b', 0, 3, 6, 8), panelOf('c', 6, 0, 6, 4)];
  const y = (list) => list.map((p) => p.place.y);
  assert.deepEqual(y(moved(panels, 'a', 'down')), [8, 0, 0]);
  assert.deepEqual(y(moved(moved(panels, 'a', 'down'), 'a', 'up')), [0, 3, 0]);
  assert.deepEqual(y(moved(panels, 'a', 'up')), [0, 3, 0]);
  assert.deepEqual(y(sized(panels, 'a', 0, 20)), [0, 23, 0], 'a panel that grows stays where it is');
});

// at puts panels at [x, y, w, h], and shown has them back so.
const at = (places) => Object.entries(places).map(([id, place]) => panelOf(id, ...place));
const shown = (panels) => Object.fromEntries(panels.map(({ id, place: { x, y, w, h } }) => [id, [x, y, w, h]]));

test('left and right change places with the neighbour, and back', () => {
  const row = at({ a: [0, 0, 6, 8], b: [6, 0, 3, 8], c: [9, 0, 3, 8] });
  const once = moved(row, 'a', 'right');
  assert.deepEqual(shown(once), { b: [0, 0, 3, 8], a: [3, 0, 6, 8], c: [9, 0, 3, 8] });
  assert.deepEqual(shown(moved(once, 'a', 'right')), { b: [0, 0, 3, 8], c: [3, 0, 3, 8], a: [6, 0, 6, 8] });
  assert.deepEqual(shown(moved(once, 'a', 'left')), shown(row));
  assert.deepEqual(moved(row, 'a', 'left'), row, 'at the edge it stays');
  const alone = at({ a: [0, 0, 3, 4], b: [8, 0, 4, 4] });
  assert.deepEqual(shown(moved(alone, 'a', 'right')).a, [1, 0, 3, 4], 'where nobody is, a column is a step');
});

test('two in a column change places with a high neighbour', () => {
  const panels = at({ a: [0, 0, 4, 8], b: [4, 0, 8, 4], c: [4, 4, 8, 4] });
  assert.deepEqual(shown(moved(panels, 'a', 'right')), { a: [8, 0, 4, 8], b: [0, 0, 8, 4], c: [0, 4, 8, 4] });
  // One of the two has no room where the high one would come to lie: they go below each other.
  assert.deepEqual(shown(moved(panels, 'b', 'left')), { b: [0, 0, 8, 4], a: [0, 4, 4, 8], c: [4, 4, 8, 4] });
});

test('one that is dragged stops at a neighbour, and passes it from its half on', () => {
  const row = at({ a: [0, 0, 6, 8], b: [6, 0, 6, 8] });
  const dragged = (x, y = 0) => shown(put(row, 'a', { ...row[0].place, x, y }));
  for (const x of [1, 2]) assert.deepEqual(dragged(x), shown(row), `column ${x}`);
  for (const x of [3, 4, 6]) assert.deepEqual(dragged(x, 1.4), { a: [6, 0, 6, 8], b: [0, 0, 6, 8] }, `column ${x}`);
  assert.deepEqual(dragged(6, 7), { a: [6, 8, 6, 8], b: [6, 0, 6, 8] }, 'below it, not in its row');
  const gap = at({ a: [0, 0, 3, 8], b: [4, 0, 3, 8] });
  assert.deepEqual(shown(put(gap, 'a', { ...gap[0].place, x: 2 })).a, [1, 0, 3, 8]);
  assert.deepEqual(shown(put(gap, 'a', { ...gap[0].place, x: 8 })), { a: [8, 0, 3, 8], b: [4, 0, 3, 8] }, 'where there is room nobody moves');
});

test('one that grows pushes those right of it, while there is room for all', () => {
  const row = at({ a: [0, 0, 3, 4], b: [3, 0, 3, 4], c: [6, 0, 3, 4], d: [0, 4, 12, 4] });
  assert.deepEqual(shown(sized(row, 'a', 2, 0)), { a: [0, 0, 5, 4], b: [5, 0, 3, 4], c: [8, 0, 3, 4], d: [0, 4, 12, 4] });
  assert.deepEqual(shown(sized(row, 'b', 3, 0)), { a: [0, 0, 3, 4], b: [3, 0, 6, 4], c: [9, 0, 3, 4], d: [0, 4, 12, 4] });
  assert.deepEqual(shown(sized(row, 'a', 4, 0)), { a: [0, 0, 7, 4], b: [3, 4, 3, 4], c: [6, 4, 3, 4], d: [0, 8, 12, 4] }, 'no room: below');
  assert.deepEqual(shown(sized(row, 'c', -1, 2)), { a: [0, 0, 3, 4], b: [3, 0, 3, 4], c: [6, 0, 2, 6], d: [0, 6, 12, 4] });
});

test('the first free place is found by rows, whatever is there', () => {
  assert.deepEqual(freePlace([], [6, 8]), { x: 0, y: 0, w: 6, h: 8 });
  for (let seed = 1; seed <= 200; seed++) {
    const n = random(seed);
    const panels = settle(Array.from({ length: n(14) }, (_, i) => { const w = 1 + n(columns); return panelOf(`p${i}`, n(columns - w + 1), n(20), w, 1 + n(9)); }));
    const size = [1 + n(columns), 1 + n(9)];
    const from = n(3) === 0 ? n(12) : 0;
    const free = freePlace(panels, size, from);
    const taken = (place) => panels.some((p) => overlap(place, p.place));
    assert.ok(!taken(free) && free.x + free.w <= columns && free.y >= from, `seed ${seed}`);
    for (let y = from; y <= free.y; y++) {
      for (let x = 0; x + free.w <= columns && (y < free.y || x < free.x); x++) assert.ok(taken({ ...free, x, y }), `seed ${seed}: [${x}, ${y}] is free before ${JSON.stringify(free)}`);
    }
  }
});
