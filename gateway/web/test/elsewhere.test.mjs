import assert from 'node:assert/strict';
import test from 'node:test';
import { panelOf, wordsOf } from '../static/js/board/elsewhere.js';

const cpu = { id: 'cpu', type: 'lines', place: { x: 0, y: 0, w: 6, h: 8 }, queries: ['sum:m'] };
const document = (part) => JSON.stringify({ form: 1, range: { from: '6h-ago', to: '' }, panels: [cpu, { ...cpu, id: 'load' }], ...part });

test('a panel is found by its name, over its dashboard’s range', () => {
  const { panel, view } = panelOf(document(), 'web', 'cpu');
  assert.deepEqual([panel, view.start, view.end], [cpu, '6h-ago', '']);
  assert.equal(panelOf(document({ range: undefined }), 'web', 'cpu').view.start, '1h-ago');
  assert.equal(panelOf(document({ range: { from: '2d-ago', to: '1d-ago' } }), 'web', 'load').view.end, '1d-ago');
});

test('what is no panel is told with those that there are', () => {
  assert.equal(panelOf(document(), 'web', 'cpu2').fault, 'Dashboard “web” has no panel “cpu2”. It has cpu, load.');
  assert.equal(panelOf(document(), 'web', undefined).fault, 'Dashboard “web” has no panel “”. It has cpu, load.');
  assert.equal(panelOf(document({ panels: [] }), 'web', '<b>').fault, 'Dashboard “web” has no panel “<b>”. It has none.');
  assert.match(panelOf(document({ panels: Array.from({ length: 30 }, (_, i) => ({ ...cpu, id: `p${i}` })) }), 'web', 'x').fault, / p18, p19 …\.$/);
});

test('a document of a later form is shown as far as it is known', () => {
  assert.deepEqual(panelOf(document({ form: 2 }), 'web', 'cpu').panel, cpu);
  assert.equal(panelOf(document({ form: 2 }), 'web', 'x').fault, 'Dashboard “web” has no panel “x”. It has cpu, load. A later release made it.');
  assert.equal(panelOf('{"form":2,"panels":7}', 'web', 'cpu').fault, 'Dashboard “web”: The document has no panels.');
  assert.equal(panelOf('no JSON', 'web', 'cpu').fault, 'Dashboard “web”: The document is not JSON.');
});

test('why a document was not read, and whether to ask again', () => {
  assert.match(wordsOf('web').text, /^The gateway does not answer this page\. .*DOWNPOUR_ALLOW_ORIGINS/);
  assert.deepEqual(wordsOf('web', { status: 404, message: 'x' }), { text: 'There is no dashboard “web” yet. Asking again.', retry: true });
  assert.deepEqual(wordsOf('web', { status: 401, message: 'Unauthorized' }), { text: 'The gateway refuses the panel: Unauthorized. It may want a token that may read.', retry: false });
  assert.deepEqual(wordsOf('web', { status: 400, message: 'name: got "A"' }), { text: 'The dashboard cannot be read: name: got "A".', retry: false });
  assert.deepEqual(wordsOf('web', { status: 503, message: 'no store' }), { text: 'The dashboard cannot be read: no store. Trying again.', retry: true });
});

test('variables have their defaults', () => {
  const variables = [{ name: 'host', metric: 'm', tagk: 'host', default: 'web01' }, { name: 'dc', metric: 'm', tagk: 'dc', all: true }, { name: 'rack', metric: 'm', tagk: 'rack' }];
  const shown = (queries, title) => panelOf(document({ variables, panels: [{ ...cpu, title, queries }] }), 'web', 'cpu');
  const { panel, view } = shown(['sum:m{host=$host,dc=$dc}'], 'CPU of $host, $no');
  assert.equal(panel.title, 'CPU of web01, $no');
  assert.deepEqual(view.chosen, { host: ['web01'], dc: ['*'] });
  assert.deepEqual(shown(['sum:m{rack=$rack}']).view.chosen, { rack: [] }); // the panel says that none is known
});
