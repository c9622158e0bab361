// Variables of dashboards: the documents that are taken, what stands in filters and texts, the
// lists of values, repeated panels.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { chartOf, read } from '../static/js/board/document.js';
import { settle } from '../static/js/board/places.js';
import { repeated, repeatsAtMost } from '../static/js/board/repeat.js';
import { Values } from '../static/js/board/values.js';
import { chosenOf, depending, faultOfVariables, filterWith, questionOf, textWith, usedBy } from '../static/js/board/variables.js';
import { filterOf } from '../static/js/query.js';
import { formatM, parseM } from '../static/js/state.js';

test('the page and the gateway take the same documents', () => {
  const cases = JSON.parse(readFileSync(new URL('../../extra/dashboards/dashboard/testdata/variables.json', import.meta.url), 'utf8'));
  assert.ok(cases.length > 40);
  for (const { document, fault, said } of cases) {
    const got = faultOfVariables(document);
    assert.ok(fault === '' ? got === '' : said !== '' && got.startsWith(said), `${JSON.stringify(document)}: “${got}”, want “${said}”`);
    assert.equal(read(JSON.stringify(document)).fault ?? '', got);
  }
});

const asked = (text, chosen) => {
  const { value, fault } = filterWith(text, chosen);
  if (fault) return fault;
  const { type, filter } = filterOf({ key: 'host', value, group: true });
  return `${type} ${filter}`;
};

test('values stand in a filter as themselves', () => {
  const chosen = { host: ['web01', 'web02'], one: ['a'], any: ['*'], none: [], bar: ['a|b'], star: ['a*'], call: ['regexp(.*)'], close: ['x)|(.*'], dash: ['a-z]'] };
  for (const [text, want] of [
    ['plain|*', 'wildcard plain|*'],
    ['$host', 'literal_or web01|web02'],
    ['${one}', 'literal_or a'],
    ['$any', 'wildcard *'],
    ['db|$host', 'literal_or db|web01|web02'],
    ['${one}.$host', 'literal_or a.web01|a.web02'],
    ['$one*', 'wildcard a*'],
    ['x$any', 'wildcard x*'],
    ['$any*', 'wildcard *'],
    ['$host*', 'regexp ^(?:web01.*|web02.*)$'],
    ['wildcard(*$one)', 'wildcard *a'],
    ['iliteral_or($host)', 'iliteral_or web01|web02'],
    ['iwildcard($one*)', 'iwildcard a*'],
    ['not_literal_or($host)', 'not_literal_or web01|web02'],
    ['regexp(^$host-[0-9]+$)', 'regexp ^(?:web01|web02)-[0-9]+$'],
    ['regexp(^$any-x\\$one)', 'regexp ^.*-x\\$one'],
    // What would be more than a name stays a name.
    ['$bar', 'regexp ^(?:a\\|b)$'],
    ['iliteral_or($bar)', 'regexp (?i)^(?:a\\|b)$'],
    ['$star', 'literal_or a*'],
    ['$star*', 'regexp ^(?:a\\*.*)$'],
    ['$call', 'literal_or regexp(.*)'],
    ['$close', 'regexp ^(?:x\\)\\|\\(\\.\\*)$'],
    ['regexp([$dash])', 'regexp [(?:a\\-z\\])]'],
    ['regexp($close)', 'regexp (?:x\\)\\|\\(\\.\\*)'],
    // And what cannot be said is not asked.
    ['not_literal_or($any)', '“All” cannot be left out by a filter.'],
    ['not_iliteral_or($bar)', 'a value with | cannot be left out by a filter.'],
    ['$none', 'no value of “none” is known yet.'],
    ['$nobody|x', 'there is no variable “nobody”.'],
    ['regexp(\\Q$one\\E)', 'a variable cannot stand in a regular expression with \\Q or \\E.'],
    ['within($one)', '“within” is no filter.'],
  ]) assert.equal(asked(text, chosen), want, text);
  const many = { a: Array.from({ length: 40 }, (_, i) => `a${i}`), b: Array.from({ length: 40 }, (_, i) => `b${i}`) };
  assert.match(asked('$a-$b', many), /^its filter stands for 16\d\d values: 1000 are the most\.$/);
});

// admits is what the server does with a filter.
function admits({ type, filter }, value) {
  if (type === 'literal_or') return filter.split('|').includes(value);
  if (type === 'wildcard') return new RegExp(`^${filter.split('*').map((t) => t.replace(/[^\w]/g, '\\$&')).join('.*')}$`, 's').test(value);
  assert.equal(type, 'regexp');
  return new RegExp(filter, 's').test(value);
}

test('whatever a value holds, a filter admits that value and no other', () => {
  let s = Date.now() % 1e6;
  const seed = s;
  const random = (n) => { s = (Math.imul(s, 1664525) + 1013904223) >>> 0; return Math.floor((s / 2 ** 32) * n); };
  const signs = ['a', 'b', '|', '*', '(', ')', '[', ']', '{', '}', '.', '\\', '$', '^', '?', '+', '-', ',', '=', ':', 'regexp(', '$x', '${y}', 'é', ' ', '&&', 'Q', 'E', '/'];
  const name = () => Array.from({ length: 1 + random(5) }, () => signs[random(signs.length)]).join('');
  for (let n = 0; n < 3000; n++) {
    const values = Array.from({ length: 1 + random(3) }, name).filter((v) => v !== '*');
    if (values.length === 0) continue;
    const chosen = { x: values, y: ['other'] };
    const others = [name(), name(), values[0] + 'a', values[0].slice(1), values.join('|')].filter((v) => !values.includes(v));
    for (const text of ['$x', 'literal_or(${x})', 'regexp(^$x$)']) {
      const { value, fault } = filterWith(text, chosen);
      assert.equal(fault, undefined);
      const filter = filterOf({ key: 'host', value, group: true });
      for (const v of values) assert.ok(admits(filter, v), `seed ${seed}: ${JSON.stringify([text, values, filter])} does not admit ${JSON.stringify(v)}`);
      for (const v of others) assert.ok(!admits(filter, v), `seed ${seed}: ${JSON.stringify([text, values, filter])} admits ${JSON.stringify(v)}`);
    }
    const query = chartOf({ queries: ['sum:1m-avg:m{host=$x}{dc=lit}'] }, chosen).queries[0];
    assert.deepEqual([query.metric, query.aggregator, query.downsample, query.tags.map((t) => t.key), query.tags[1].value], ['m', 'sum', '1m-avg', ['host', 'dc'], 'lit'], `seed ${seed}`);
  }
});

test('a variable in a metric takes one value, of which nothing is read again', () => {
  const metricOf = (text, chosen) => { const { fault, queries } = chartOf({ queries: [text] }, chosen); return fault ?? queries[0].metric; };
  assert.equal(metricOf('avg:1m-avg:m.$host', { host: ['a'] }), 'm.a');
  assert.equal(metricOf('avg:m.${host}.x{dc=*}', { host: ['a{b=c}:$host'] }), 'm.a{b=c}:$host.x');
  assert.deepEqual(chartOf({ queries: ['avg:m.${host}.x{dc=*}'] }, { host: ['a'] }).queries[0].tags, [{ key: 'dc', value: '*', group: true }]);
  for (const m of ['avg:m.${host}.x{dc=*}{host=${host}}', 'sum:${host}', 'avg:m$host{dc=*}']) assert.equal(formatM(parseM(m)), m);
  assert.equal(metricOf('avg:m.$hots', { host: ['a'] }), 'Query 1: there is no variable “hots”.');
  for (const several of [['a', 'b'], ['*']]) assert.equal(metricOf('avg:m.$host', { host: several }), 'Query 1: the metric “m.$host” takes one value of “host”: choose one, or repeat the panel for each.');
  assert.equal(chartOf({ queries: ['avg:m.$host'] }, { host: [] }).waiting, true);
  assert.equal(chartOf({ queries: [{ metric: 'm.$host', filters: [] }] }, { host: ['a'] }).queries[0].metric, 'm.a');
  assert.deepEqual(Object.keys(usedBy({ queries: ['avg:m.$host'] }, { host: ['a'], dc: ['b'] })), ['host']);
});

test('a variable stands in filters; without choices a query stays as written', () => {
  assert.equal(chartOf({ queries: ['avg:m{host=$hots}'] }, { host: ['a'] }).fault, 'Query 1: there is no variable “hots”.');
  assert.equal(chartOf({ queries: ['avg:m{host=$host}'] }, { host: [] }).waiting, true);
  assert.equal(chartOf({ queries: ['avg:m{host=${host}}{dc=${dc}}'] }).queries[0].tags[1].value, '${dc}');
  assert.deepEqual(Object.keys(usedBy({ title: '$a', queries: ['avg:m{host=${b}}', { m: 'm{x=$c}' }] }, { a: ['1'], b: ['2'], c: ['3'], d: ['4'] })), ['b', 'c']);
});

test('titles and texts have the values; what is no variable stays', () => {
  const chosen = { host: ['a', '<b>'], all: ['*'], none: [], toString: ['x'] };
  assert.equal(textWith('CPU of $host, ${all} $none $cost $5 ${', chosen), 'CPU of a, <b>, All … $cost $5 ${');
  assert.equal(textWith('$a', { a: ['$b'], b: ['c'] }), '$b', 'a value is not read again');
  assert.equal(textWith('$constructor', chosen), '$constructor');
});

const variable = (name, rest = {}) => ({ name, metric: 'm', tagk: name, ...rest });

test('what is chosen: given, default, all, first; only what a variable takes', () => {
  const listed = (v, chosen) => (v.name === 'host' ? [`first of ${chosen.dc}`, 'second'] : ['eu']);
  const of = (v, given) => chosenOf([v, variable('dc', { all: true })], given, listed)[v.name];
  const host = variable('host', { filter: { dc: '$dc' } });
  assert.deepEqual(of(host, {}), ['first of *']);
  assert.deepEqual(of(host, { host: ['a', 'b'] }), ['a'], 'one of several');
  assert.deepEqual(of(host, { host: ['*'] }), ['first of *'], 'all is not for it');
  assert.deepEqual(of({ ...host, default: 'd' }, { host: [''] }), ['d']);
  assert.deepEqual(of({ ...host, all: true }, {}), ['*']);
  assert.deepEqual(of({ ...host, all: true, multi: true }, { host: ['a', '*'] }), ['*']);
  assert.deepEqual(of({ ...host, multi: true }, { host: ['a', 'b', 'a', '*'] }), ['a', 'b']);
  assert.equal(of({ ...host, multi: true }, { host: Array.from({ length: 5000 }, (_, i) => `h${i}`) }).length, 1000);
  assert.deepEqual(chosenOf([variable('constructor', { all: true })], {}, listed), { constructor: ['*'] });
  assert.deepEqual(depending([variable('a'), variable('c', { filter: { x: '$b' } }), variable('b', { filter: { x: 'y|$a' } }), variable('d')], 'a'), ['b', 'c']);
});

test('a question has the values of others as alternatives', () => {
  const v = variable('host', { filter: { dc: '$dc|xx', rack: '$rack' } });
  assert.deepEqual(questionOf(v, { dc: ['eu', 'us'], rack: ['*'] }), { metric: 'm', tagk: 'host', tags: [
    { key: 'dc', value: 'eu' }, { key: 'dc', value: 'us' }, { key: 'dc', value: 'xx' }, { key: 'rack', value: '*' }] });
  assert.equal(questionOf(v, { dc: ['eu'], rack: [] }), null);
});

// asking is a server with series; it returns as many of them as are requested.
function server(hosts, tracked = true) {
  const requests = [];
  return {
    requests,
    tagValues: async (metric, tagk, tags, limit) => {
      requests.push({ metric, tags, limit });
      const wanted = (key) => tags.filter((t) => t.key === key).map((t) => t.value);
      const admitted = (h) => ['host', 'dc'].every((key) => wanted(key).length === 0 || wanted(key).includes(h[key]));
      const values = tracked ? [...new Set(hosts.filter(admitted).map((h) => h[tagk]))] : [];
      return { values: values.slice(0, limit), more: values.length > limit };
    },
    suggest: (type, max) => async (q) => {
      requests.push({ type, q, max });
      return [...new Set(hosts.map((h) => h.host)), 'rack-1', 'web-elsewhere'].filter((n) => n.startsWith(q)).sort().slice(0, max);
    },
  };
}

const settled = () => new Promise((resolve) => { setImmediate(resolve); });

test('a list of values is asked for once, in order of numbers, and is whole', async () => {
  const asking = server([10, 9, 1].map((n) => ({ host: `web${n}`, dc: n === 9 ? 'us' : 'eu' })));
  let changes = 0;
  const values = new Values(() => changes++, asking, () => 0);
  const host = variable('host', { filter: { dc: '$dc' } });
  assert.deepEqual(values.of(host, { dc: ['eu'] }).values, []);
  values.of(host, { dc: ['eu'] });
  await settled();
  assert.deepEqual([values.of(host, { dc: ['eu'] }).values, values.of(host, { dc: ['eu'] }).whole, changes, asking.requests.length], [['web1', 'web10'], true, 1, 1]);
  assert.equal(values.of(host, { dc: [] }).loading, true);
  assert.deepEqual(await values.search(host, { dc: ['eu'] }, '10'), ['web10']);
  assert.equal(asking.requests.length, 1, 'a whole list is searched here');
});

test('of a million values few are asked for, and the others are found as one types', async () => {
  const hosts = Array.from({ length: 1_000_000 }, (_, i) => ({ host: `web-${i}`, dc: i % 2 ? 'eu' : 'us' }));
  const asking = server(hosts);
  const values = new Values(() => {}, asking, () => 0);
  const host = variable('host', { filter: { dc: '$dc' } });
  values.of(host, { dc: ['eu'] });
  await settled();
  const list = values.of(host, { dc: ['eu'] });
  assert.deepEqual([list.whole, list.values.length], [false, 5000]);
  assert.deepEqual(await values.search(host, { dc: ['eu'] }, 'web-99999'), ['web-99999', 'web-999991', 'web-999993', 'web-999995', 'web-999997', 'web-999999']);
  assert.deepEqual(await values.search(host, { dc: ['us'] }, 'web-else'), [], 'a name of another metric is no value');
  for (const r of asking.requests) assert.ok((r.limit ?? r.max) <= 5000 && (r.tags?.length ?? 0) <= 202, JSON.stringify(r).slice(0, 200));
});

test('without tracked series the names of all have to do, and that is said; a fault is said and asked again', async () => {
  const values = new Values(() => {}, server([{ host: 'a' }], false), () => 0);
  values.of(variable('host'), {});
  await settled();
  await settled();
  assert.deepEqual(values.of(variable('host'), {}), { values: ['a', 'rack-1', 'web-elsewhere'], whole: false, fault: '', others: true, since: 0, loading: false, at: 0 });

  let now = 0;
  let fail = { status: 404, message: 'x' };
  const asking = { tagValues: async () => { if (fail) throw Object.assign(new Error(fail.message), fail); return { values: ['a'], more: false }; } };
  const failing = new Values(() => {}, asking, () => now);
  failing.of(variable('host'), {});
  await settled();
  assert.equal(failing.of(variable('host'), {}).fault, 'There is no metric m, or no tag host, or no such value of a filter yet.');
  fail = null;
  now = 6000;
  failing.of(variable('host'), {});
  await settled();
  assert.deepEqual(failing.of(variable('host'), {}).values, ['a']);
});

const at = (id, x, y, w, h, rest = {}) => ({ id, type: 'lines', place: { x, y, w, h }, ...rest });
const places = (panels) => Object.fromEntries(panels.map((p) => [p.id, Object.values(p.place).slice(0, 2).join()]));

test('a panel is repeated across, or down beside others; those below make room', () => {
  const list = () => ({ values: ['a', 'b', 'c'], whole: true });
  const chosen = { host: ['a', 'b', 'c'], all: ['*'] };
  assert.deepEqual(places(repeated([at('p', 0, 0, 6, 4, { repeat: 'host' }), at('q', 0, 4, 12, 2)], chosen, list)), { p: '0,0', 'p/b': '6,0', 'p/c': '0,4', q: '0,8' });
  assert.deepEqual(places(repeated([at('p', 0, 0, 6, 4, { repeat: 'host' }), at('o', 6, 0, 6, 4, { repeat: 'all' }), at('q', 0, 4, 12, 2)], chosen, list)), {
    p: '0,0', 'p/b': '0,4', 'p/c': '0,8', o: '6,0', 'o/b': '6,4', 'o/c': '6,8', q: '0,12' });
  const plain = [at('p', 0, 3, 6, 4), at('q', 6, 9, 6, 2)];
  assert.deepEqual(repeated(plain, chosen, list), plain.map((p) => ({ ...p, own: {} })), 'a dashboard without one stays as it is');
  const [, second] = repeated([at('p', 0, 0, 6, 4, { repeat: 'host' })], chosen, list);
  assert.deepEqual([second.own, second.repeat, second.short], [{ host: ['b'] }, 'host', '']);
});

test('repeated panels are bounded, and it is said', () => {
  const values = Array.from({ length: 2000 }, (_, i) => `h${i}`);
  const out = repeated([at('p', 0, 0, 3, 4, { repeat: 'all' }), at('q', 0, 4, 12, 2)], { all: ['*'] }, () => ({ values, whole: false }));
  assert.equal(out.length, repeatsAtMost + 1);
  assert.equal(out.find((p) => p.short)?.short, 'This panel is repeated for the first 50 of more than 2,000 values: choose the others by themselves.');
  const many = Array.from({ length: 500 }, (_, i) => at(`p${i}`, 0, i, 12, 1, { repeat: 'host' }));
  assert.ok(repeated(many, { host: values.slice(0, 1000) }, () => null).length <= 600);
  const none = repeated([at('p', 0, 0, 6, 4, { repeat: 'all' })], { all: ['*'] }, () => ({ values: [], whole: true, fault: 'why' }));
  assert.deepEqual([none.length, none[0].own, none[0].short], [1, { all: [] }, 'why']);
  const [other] = repeated([at('p', 0, 0, 6, 4, { repeat: 'all' })], { all: ['*'] }, () => ({ values: ['of any tag'], whole: true, others: true }));
  assert.deepEqual([other.own, other.short], [{ all: [] }, 'No series of the variable’s metric is known here: choose values by themselves.']);
});

test('repeated panels never overlap', () => {
  for (let seed = 1; seed <= 200; seed++) {
    let s = seed;
    const n = (k) => { s = (Math.imul(s, 1664525) + 1013904223) >>> 0; return Math.floor((s / 2 ** 32) * k); };
    const panels = settle(Array.from({ length: 1 + n(8) }, (_, i) => { const w = 1 + n(12); return at(`p${i}`, n(13 - w), n(20), w, 1 + n(8), n(3) === 0 ? { repeat: 'host' } : {}); }));
    const out = repeated(panels, { host: ['a', 'b', 'c', 'd', 'e'].slice(0, 1 + n(5)) }, () => null);
    assert.equal(new Set(out.map((p) => p.id)).size, out.length);
    for (const [i, { id, place: a }] of out.entries()) {
      assert.ok(a.x >= 0 && a.x + a.w <= 12, `seed ${seed}: ${id} is at ${JSON.stringify(a)}`);
      for (const { id: other, place: b } of out.slice(i + 1)) assert.ok(a.x >= b.x + b.w || b.x >= a.x + a.w || a.y >= b.y + b.h || b.y >= a.y + a.h, `seed ${seed}: ${id} lies on ${other}`);
    }
  }
});
