import assert from 'node:assert/strict';
import test from 'node:test';
import { excerpt, find, prepare, said, wordsOf } from '../static/js/docs/search.js';
import { siteFile } from '../site.mjs';

const section = (p, h, t) => ({ a: `/docs/${p}#${h}`, p, h: h || undefined, t });
const titles = (index, question) => find(prepare(index), question).results.map(({ section: s }) => `${s.p}/${s.h ?? ''}`);

test('a section is found that has all words, in any of its fields and in any case', () => {
  const index = [section('Settings', '', 'DOWNPOUR_MEMORY is the budget'), section('Log', 'Slow queries', 'a query that takes long'), section('Queries', '', 'memory of queries')];
  assert.deepEqual(titles(index, 'memory'), ['Queries/', 'Settings/']);
  assert.deepEqual(titles(index, 'MEMORY budget'), ['Settings/']);
  assert.deepEqual(titles(index, 'log long'), ['Log/Slow queries']);
  assert.deepEqual(titles(index, 'nothing'), []);
  assert.deepEqual(titles(index, '  '), []);
});

test('titles count more than headings, headings more than texts, and beginnings of words more than their middles', () => {
  const index = [section('A', '', 'about retention'), section('B', 'Retention', 'x'), section('Retention', '', 'x'), section('C', '', 'nonretention')];
  assert.deepEqual(titles(index, 'retention'), ['Retention/', 'B/Retention', 'A/', 'C/']);
});

test('a heading that has the question as it is asked comes before words here and there', () => {
  const index = [section('Queries', 'When it is slow', 'x'), section('Log', 'Slow queries', 'x'), section('Faults', '', 'slow queries')];
  assert.deepEqual(titles(index, 'slow queries'), ['Log/Slow queries', 'Queries/When it is slow', 'Faults/']);
});

test('names of settings, routes and metrics are words', () => {
  assert.deepEqual(wordsOf('DOWNPOUR_TABLE_STATE, /api/query! sys.cpu.user. Größe'), ['downpour_table_state', 'api/query', 'sys.cpu.user', 'größe']);
  const index = [section('Api', 'GET /api/query/exp', ''), section('Api', 'GET /api/query', '')];
  assert.deepEqual(titles(index, '/api/query/exp'), ['Api/GET /api/query/exp']);
});

test('two letters are no middle of a word', () => {
  const index = [section('A', '', 'put'), section('B', '', 'input')];
  assert.deepEqual(titles(index, 'pu'), ['A/']);
  assert.deepEqual(titles(index, 'put'), ['A/', 'B/']);
});

test('an excerpt is around the first word, and its pieces are the text', () => {
  const text = `${'before '.repeat(40)}the Needle is here ${'after '.repeat(60)}`;
  const pieces = excerpt(text, ['needle']);
  assert.deepEqual(pieces.filter((p) => p.hit), [{ text: 'Needle', hit: true }]);
  const whole = pieces.map((p) => p.text).join('');
  assert.ok(whole.startsWith('… ') && whole.endsWith(' …') && text.includes(whole.slice(2, -2)), whole);
  assert.ok(whole.length < 200, `${whole.length} letters`);
  assert.deepEqual(excerpt('a<b>a', ['a']), [{ text: 'a', hit: true }, { text: '<b>', hit: false }, { text: 'a', hit: true }]);
});

test('many results are cut, and told', () => {
  const index = Array.from({ length: 100 }, (_, i) => section(`Page ${i}`, '', 'same'));
  const { count, results } = find(prepare(index), 'same');
  assert.deepEqual([count, results.length], [100, 40]);
  assert.equal(said(count, 'same'), '100 sections found for “same”, the best 40 are shown.');
  assert.equal(said(1, 'x'), '1 section found for “x”.');
  assert.equal(said(0, 'x'), 'Nothing is found for “x”.');
  assert.equal(said(0, ''), '');
});

test('the index of the site leads first to where one would look', () => {
  const index = prepare(JSON.parse(siteFile('search.json')));
  for (const [question, address] of Object.entries({
    DOWNPOUR_RETENTION: '/docs/settings', retention: '/docs/retention', 'kerberos keytab': '/docs/kerberos', glossary: '/docs/glossary',
    'GET /api/ops': '/docs/api#get-apiops', 'row key': '/docs/row-key', 'slow queries': '/docs/log#slow-queries', mkmetric: '/docs/tools',
  })) {
    const places = find(index, question).results.map(({ section: s }) => s.a);
    assert.ok(places.slice(0, 5).some((a) => a === address || a.startsWith(`${address}#`)), `${question}: ${places.slice(0, 5)}`);
  }
});
