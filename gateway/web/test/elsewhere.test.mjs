import assert from 'node:assert/strict';
import test from 'node:test';
import { panelOf, refusal, valued, wordsOf } from '../static/js/board/elsewhere.js';
import { Values } from '../static/js/board/values.js';

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
  assert.deepEqual(wordsOf('web', { status: 401, message: refusal(401, 'secret') }), { text: 'The dashboard cannot be read: the gateway does not know the panel’s token.', retry: false });
  assert.deepEqual(wordsOf('web', { status: 400, message: 'name: got "A"' }), { text: 'The dashboard cannot be read: name: got "A".', retry: false });
  assert.deepEqual(wordsOf('web', { status: 503, message: 'no store' }), { text: 'The dashboard cannot be read: no store. Trying again.', retry: true });
});

test('a refusal says what is missing', () => {
  for (const status of [401, 403]) assert.match(refusal(status, ''), /^the gateway wants a token, and the panel has none: .*data-token$/);
  assert.deepEqual([refusal(401, 'x'), refusal(403, 'x'), refusal(404, ''), refusal(undefined, '')], ['the gateway does not know the panel’s token', 'the panel’s token may not read', '', '']);
});

const variables = [
  { name: 'host', label: 'Host', metric: 'm', tagk: 'host', filter: { dc: '$dc' }, multi: true }, { name: 'dc', metric: 'm', tagk: 'dc' },
  { name: 'Rack', metric: 'm', tagk: 'rack', default: 'r1' }, { name: 'other', metric: 'm', tagk: 'other' },
];

const settled = () => new Promise((resolve) => { setImmediate(resolve); });

// shown is the panel as it is at last, and the requests for it.
async function shown(queries, { given = {}, title = '', lists = { host: ['web01', 'web02'], dc: ['eu', 'us'] }, fail = null } = {}) {
  const requests = [];
  const asking = {
    tagValues: async (metric, tagk, tags) => {
      requests.push(`${tagk}${tags.map((t) => ` ${t.key}=${t.value}`).join('')}`);
      if (fail) throw fail;
      return { values: lists[tagk] ?? [], more: false };
    },
    suggest: () => async () => [],
  };
  const values = new Values(() => {}, asking, () => 0);
  const found = panelOf(document({ variables, panels: [{ ...cpu, title, queries }] }), 'web', 'cpu');
  let got;
  for (let i = 0; i < 3; i++) {
    got = valued(found, given, values);
    await settled();
  }
  return { ...got, requests };
}

test('values are fetched for the variables that a panel needs, as on a dashboard', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { panel, chosen, said, requests } = await shown(['sum:m{host=$host}'], { title: 'CPU of $host in $dc, $no' });
  assert.equal(panel.title, 'CPU of web01 in eu, $no');
  assert.deepEqual([chosen, said, requests], [{ host: ['web01'] }, '', ['dc', 'host dc=eu']]);
  assert.deepEqual((await shown(['sum:m{rack=$Rack}'])).requests, [], 'what has a default needs no request');

  const none = await shown(['sum:m{host=$host}'], { lists: { dc: ['eu'] } });
  assert.deepEqual([none.chosen, none.said], [{ host: [] }, 'Host: no value is known yet.']);
  const refused = await shown(['sum:m{host=$host}'], { given: { dc: 'eu' }, fail: Object.assign(new Error(refusal(403, 'x')), { status: 403 }) });
  assert.equal(refused.said, 'Host: The values of host cannot be read: the panel’s token may not read.');
});

test('a value that the page gives is taken without a question, whatever capitals an attribute has lost', async () => {
  const { panel, chosen, said, requests } = await shown(['sum:m{host=$host}{rack=$Rack}'], { given: { host: 'db7', dc: 'us', rack: 'r9' }, title: '$host' });
  assert.deepEqual([panel.title, chosen, said, requests], ['db7', { host: ['db7'], Rack: ['r9'] }, '', []]);
  assert.deepEqual((await shown(['sum:m{host=$host}'], { given: { host: ['a', 'b'], dc: 'us' } })).chosen, { host: ['a', 'b'] });
  assert.equal((await shown(['sum:m'], { given: { hosts: 'a' } })).said, 'The dashboard has no variable “hosts”.');
});
