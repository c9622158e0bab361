// The types of panels, and what their drawings compute.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newPanel, read } from '../static/js/board/document.js';
import { asks, typeOf, types } from '../static/js/board/types.js';
import { drawingOf, drawings } from '../static/js/board/types/drawings.js';
import { spark } from '../static/js/board/types/number.js';
import { Unknown } from '../static/js/board/types/unknown.js';
import { newest, summary } from '../static/js/stats.js';

test('every type has a drawing, and a new panel of it is a sound document', () => {
  assert.deepEqual(Object.keys(drawings).sort(), Object.keys(types).sort());
  for (const type of Object.keys(types)) {
    const panel = newPanel({ panels: [] }, type);
    assert.equal(read(JSON.stringify({ form: 1, panels: [panel] })).fault, undefined, type);
    assert.deepEqual([panel.place.w, panel.place.h], types[type].size);
  }
  assert.deepEqual([asks('lines'), asks('text'), asks('of a later release')], [true, false, false]);
});

test('a type with the name of what every object has is unknown', () => {
  for (const type of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    assert.deepEqual([typeOf(type), drawingOf(type)], [null, Unknown]);
    assert.ok(read(`{"form":1,"panels":[{"id":"a","type":"${type}","queries":7,"place":{"x":0,"y":0,"w":1,"h":1}}]}`).document, type);
  }
});

test('a line is summed up by its numbers in the range', () => {
  const group = { times: [1, 2, 3, 4, 5, 6], values: [100, 4, NaN, null, 9007199254740993n, 2] };
  assert.deepEqual(summary(group, [2, 4]), { last: 4, least: 4, greatest: 4, mean: 4 });
  assert.deepEqual(summary(group, [2, 6]), { last: 2, least: 2, greatest: 9007199254740992, mean: (9007199254740992 + 6) / 3 });
  assert.deepEqual(summary(group, [7, 9]), { last: null, least: null, greatest: null, mean: null });
  assert.deepEqual(newest({ times: [1, 2, 3], values: [7n, null, NaN] }), [1, 7n]);
  assert.deepEqual(newest({ times: [], values: [] }), []);
});

test('a spark line breaks where there is no number', () => {
  assert.equal(spark({ times: [0, 5, 10], values: [0, 1, 2] }, [0, 10]), 'M0.00 28.00L50.00 15.00L100.00 2.00');
  assert.equal(spark({ times: [0, 2, 5, 10], values: [1, null, 1, 1] }, [0, 10]), 'M0.00 15.00M50.00 15.00L100.00 15.00');
  assert.equal(spark({ times: [-5, 0, 5, 10], values: [1, Infinity, NaN, 3] }, [0, 10]), 'M100.00 2.00');
});
