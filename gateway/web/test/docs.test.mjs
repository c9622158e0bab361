import assert from 'node:assert/strict';
import test from 'node:test';
import { excerpt, find, formsOf, prepare, said, wordsOf } from '../static/js/docs/search.js';
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

test('headings and titles count more than texts, and a title most for the beginning of its page', () => {
  const index = [section('A', '', 'about retention'), section('Retention', 'Else', 'x'), section('Retention', '', 'x'), section('B', 'Retention', 'x')];
  assert.deepEqual(titles(index, 'retention').slice(0, 2), ['B/Retention', 'Retention/']);
  assert.equal(titles(index, 'retention').length, 4);
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

test('words are whole; one that is being typed is the beginning of others', () => {
  const index = [section('A', '', 'put'), section('B', '', 'input, a computer'), section('C', '', 'DOWNPOUR_PUT_CELLS')];
  assert.deepEqual(titles(index, 'put'), ['A/', 'C/'], 'a part of a name is a word');
  assert.deepEqual(titles(index, 'pu'), ['A/', 'C/']);
  assert.deepEqual(titles(index, 'compu'), ['B/']);
  assert.deepEqual(titles([...index, section('D', '', 'log'), section('E', '', 'logarithm')], 'log'), ['D/']);
});

test('words are found in their other forms, and in those of no other word', () => {
  const all = ['delete', 'deletes', 'deleted', 'deleting', 'deletion', 'deletions', 'query', 'queries', 'rate', 'rates', 'rated', 'ratio', 'metric', 'metrics', 'metrical',
    'store', 'stores', 'storing', 'story', 'state', 'states', 'station', 'status', 'use', 'used', 'us', 'key', 'keys', 'series', 'class', 'classes', 'tls', 'compact', 'compaction'];
  const found = (word) => all.filter((w) => new RegExp(`^(?:${formsOf(word)})$`).test(w)).join(' ');
  for (const words of ['delete deletes deleted deleting deletion deletions', 'query queries', 'rate rates rated', 'metric metrics', 'store stores storing', 'key keys', 'series', 'class classes', 'tls', 'compact compaction', 'use used', 'state states', 'story', 'station']) {
    for (const word of words.split(' ')) assert.equal(found(word), words, word);
  }
});

test('single letters, and what is in every question, are not searched for', () => {
  assert.deepEqual(wordsOf('How do I delete a metric?'), ['delete', 'metric']);
  assert.deepEqual([wordsOf('a b c'), wordsOf('what is'), wordsOf('put PUT')], [[], ['what', 'is'], ['put']]);
  assert.deepEqual(titles([section('A', '', 'a b')], 'a b'), []);
});

test('the section that has most of the words comes first, rare words before usual ones', () => {
  const index = [section('A', '', 'data of rows'), section('B', '', 'data of disks'), section('C', '', 'data, and a keytab'), section('D', '', 'rows')];
  assert.deepEqual(titles(index, 'data keytab moon'), ['C/']);
  assert.equal(find(prepare(index), 'data keytab moon').all, false);
  assert.equal(find(prepare(index), 'rows of data').all, true);
  assert.deepEqual(titles(index, 'rows of data')[0], 'A/');
  assert.deepEqual(titles([section('Full disks', '', 'x'), section('Else', '', 'data on a full disk')], 'data full disk'), ['Else/', 'Full disks/'], 'also before titles that lack one');
  assert.equal(said(3, 'sun moon', false), '3 sections found for “sun moon”. None has all words.');
});

test('an excerpt is around the first word, and its pieces are the text', () => {
  const text = `${'before '.repeat(40)}the Needle is here ${'after '.repeat(60)}`;
  const pieces = excerpt(text, ['needle']);
  assert.deepEqual(pieces.filter((p) => p.hit), [{ text: 'Needle', hit: true }]);
  const whole = pieces.map((p) => p.text).join('');
  assert.ok(whole.startsWith('… ') && whole.endsWith(' …') && text.includes(whole.slice(2, -2)), whole);
  assert.ok(whole.length < 200, `${whole.length} letters`);
  assert.deepEqual(excerpt('an<b>an', ['an']), [{ text: 'an', hit: true }, { text: '<b>', hit: false }, { text: 'an', hit: true }]);
  assert.deepEqual(excerpt('a metric, and metrical', ['metrics']), [{ text: 'a ', hit: false }, { text: 'metric', hit: true }, { text: ', and metrical', hit: false }]);
});

test('an excerpt is where most of the words are', () => {
  const text = `delete ${'before '.repeat(60)}to delete a metric ${'after '.repeat(60)}`;
  assert.deepEqual(excerpt(text, ['delete', 'metric']).filter((p) => p.hit).map((p) => p.text), ['delete', 'metric']);
});

test('many results are cut, and told', () => {
  const index = Array.from({ length: 100 }, (_, i) => section(`Page ${i}`, '', 'same'));
  const { count, results } = find(prepare(index), 'same');
  assert.deepEqual([count, results.length], [100, 40]);
  assert.equal(said(count, 'same'), '100 sections found for “same”, the best 40 are shown.');
  assert.equal(said(1, 'put'), '1 section found for “put”.');
  assert.equal(said(0, 'put'), 'Nothing is found for “put”.');
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
  for (const [question, address] of Object.entries({
    'how do I delete a metric': '/docs/tools#deleting-a-metric-or-another-name', 'how do I back up the data': '/docs/first-day#back-up-and-restore', 'how do I secure it': '/docs/first-day#secure',
    'why is my query slow': '/docs/log#slow-queries', 'disk full': '/docs/retention#when-a-disk-will-be-full', 'embed a panel': '/docs/clients#a-panel-of-a-dashboard-in-a-page-of-your-own',
    'moving from OpenTSDB': '/docs/moving', DOWNPOUR_RETENTION: '/docs/settings#all-variables', 'dashboard variables': '/docs/dashboards#variables', downsample: '/docs/queries#downsampling',
  })) assert.equal(find(index, question).results[0].section.a, address, question);
});
