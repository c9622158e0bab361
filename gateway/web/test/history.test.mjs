// The history of charts, and the list of dashboards.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tagsOf } from '../static/js/board/document.js';
import { fitting } from '../static/js/board/list.js';
import { historyAtMost, readHistory, remembered } from '../static/js/history.js';

test('a chart stands in the history once, with its last address, and the oldest go', () => {
  const entry = (n, hash = `#m=${n}`) => ({ text: `m${n}`, hash });
  let list = [];
  for (let n = 0; n < historyAtMost + 5; n++) list = remembered(list, entry(n));
  assert.deepEqual([list.length, list[0], list.at(-1)], [historyAtMost, entry(historyAtMost + 4), entry(5)]);
  list = remembered(list, entry(7, '#start=1h-ago&m=7'));
  assert.deepEqual([list.length, list[0].hash, list.filter((e) => e.text === 'm7').length], [historyAtMost, '#start=1h-ago&m=7', 1]);
});

test('what a browser has kept may be anything', () => {
  for (const bad of [null, '', '{', '{}', '7', '[null, 7, {"text": "a"}, {"text": "a", "hash": "javascript:alert(1)"}]']) assert.deepEqual(readHistory(bad), [], bad);
  assert.deepEqual(readHistory('[{"text": "a", "hash": "#m=a"}]'), [{ text: 'a', hash: '#m=a' }]);
});

test('dashboards are found by words of title, name and tags, and by all of the tags', () => {
  const all = [{ name: 'web', title: 'Web servers', tags: ['prod', 'eu'] }, { name: 'db', title: 'Data', tags: ['prod'] }, { name: 'lab' }];
  const f = (text, ...tags) => fitting(all, text, tags).map((d) => d.name).join();
  assert.equal(f(''), 'web,db,lab');
  assert.equal(f('PROD data'), 'db');
  assert.equal(f('lab'), 'lab');
  assert.equal(f('', 'prod'), 'web,db');
  assert.equal(f('', 'prod', 'eu'), 'web');
  assert.equal(f('data', 'eu'), '');
});

test('tags are what stands between commas, each once, as many and as long as a document may have', () => {
  assert.deepEqual(tagsOf(' prod, web ,,prod'), ['prod', 'web']);
  assert.equal(tagsOf('x'.repeat(50))[0].length, 40);
  assert.equal(tagsOf(Array.from({ length: 20 }, (_, i) => i).join()).length, 10);
});
