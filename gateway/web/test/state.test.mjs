// Run: node --test gateway/web/test/
import assert from 'node:assert/strict';
import test from 'node:test';
import { autoDownsample, faultOf, noting, effectiveDownsample, stepOf, toQuery } from '../static/js/query.js';
import { defaults, emptyQuery, formatM, fromHash, parseM, toHash, windowOf } from '../static/js/state.js';

test('an empty address is the default state', () => {
  assert.deepEqual(fromHash(''), defaults());
});

test('the expression is taken apart', () => {
  assert.deepEqual(parseM('sum:1m-avg-none:rate{counter,65535,10}:proc.stat.cpu{host=web*,dc=lga|nyc}{type=regexp(u(se|x){2},r)}'), {
    aggregator: 'sum', downsample: '1m-avg-none', rate: 'rate{counter,65535,10}', percentiles: '', metric: 'proc.stat.cpu',
    tags: [{ key: 'host', value: 'web*', group: true }, { key: 'dc', value: 'lga|nyc', group: true },
      { key: 'type', value: 'regexp(u(se|x){2},r)', group: false }],
  });
  assert.equal(parseM('avg:m').metric, 'm');
  assert.equal(parseM('avg:m').downsample, '');
});

// A generator with a printed seed: each call picks one of a list.
function chance(seed) {
  let s = seed;
  const random = (n) => { s = (s * 1103515245 + 12345) % 2147483648; return Math.floor((s / 2147483648) * n); };
  return { random, pick: (list) => list[random(list.length)] };
}

test('every state survives its address', () => {
  const seed = Date.now() % 1e6;
  const { random, pick } = chance(seed);
  const query = () => ({
    aggregator: pick(['avg', 'sum', 'p99']), downsample: pick(['auto', '', '1m-avg', '10s-max-nan']), rate: pick(['', 'rate', 'rate{counter}']), percentiles: pick(['', '50', '50,99.9', '50, x', '150:[{', '50]']),
    metric: pick(['proc.stat.cpu', 'größe/x_y-z']), alias: pick(['', '{host} x&n=1']), right: pick([true, false]),
    tags: [{ key: 'host', value: pick(['*', 'a|b', 'regexp(a,b{2})', 'x y&z#+%']), group: pick([true, false]) }, { key: 'type', value: 'user', group: false }].slice(0, random(3)),
  });
  for (let n = 0; n < 1000; n++) {
    const state = {
      start: pick(['15m-ago', '7d-ago', '1700000000']), end: pick(['', '1700003600']), queries: Array.from({ length: 1 + random(3) }, query),
      formulas: Array.from({ length: random(3) }, () => ({ expr: pick(['a / (a + b) * 100', 'a>b?a:b', '100%a&b|c#"<']), name: pick(['', 'busy %', 'x&f=y']), right: pick([true, false]) })),
      zoom: pick([null, [1700000000, 1700000060]]), hide: pick([[], ['host=a', 'host=b&c dc=x|y']]), shift: pick(['', '1w']), legend: pick(['', 'list', 'table']), only: pick(['', 'web a&b']), most: pick([0, 5]), pins: pick([[], [1700000000.25, 1700000030]]), pause: pick([null, 1700000100]),
      log: pick([true, false]), notes: pick([true, false]), tz: pick(['', 'UTC', 'Asia/Kolkata']), theme: pick(['', 'dark', 'light']), open: pick([[], ['table', 'trace']]),
    };
    // Filters come after what is grouped by, as in the expression.
    state.queries.forEach((q) => q.tags.sort((a, b) => b.group - a.group));
    assert.deepEqual(fromHash(toHash(state)), state, `seed ${seed}: ${toHash(state)}`);
  }
});

test('a formula means the same queries after a reload, also behind one without a metric', () => {
  const q = (metric, right = false) => ({ ...emptyQuery(), metric, right });
  const state = { ...defaults(), queries: [q('cpu'), emptyQuery(), q('x', true), q('y'), q('z')], formulas: [{ expr: 'c / d', name: '', right: false }] };
  assert.deepEqual(fromHash(toHash(state)), state, toHash(state));
  state.queries = [emptyQuery(), q('x'), q('y')];
  assert.deepEqual(fromHash(toHash(state)), state, toHash(state));

  // Those behind the last metric go, and without a formula all that have none.
  assert.deepEqual(fromHash(toHash({ ...state, queries: [...state.queries, emptyQuery()] })), state);
  assert.deepEqual(fromHash(toHash({ ...state, formulas: [{ expr: '', name: 'n', right: false }] })), { ...state, queries: [q('x'), q('y')], formulas: [] });
  assert.deepEqual(fromHash('#m=&m=avg:auto:x&f=').queries, [q('x')]);
  assert.deepEqual(fromHash('#m=&f=a').queries, [emptyQuery()]);
});

test('what an address says wrong is left out', () => {
  assert.deepEqual(fromHash('#zoom=9,1&pin=x&pause=y&tz=Nowhere/City&theme=pink&m='), defaults());
});

test('the address stays legible', () => {
  const q = { ...emptyQuery(), metric: 'proc.stat.cpu', rate: 'rate', tags: [{ key: 'host', value: '*', group: true }, { key: 'type', value: 'user', group: false }] };
  assert.equal(toHash({ ...defaults(), queries: [q] }), '#start=15m-ago&m=avg:auto:rate:proc.stat.cpu{host=*}{type=user}');
  assert.equal(formatM({ ...q, tags: [q.tags[1]] }), 'avg:auto:rate:proc.stat.cpu{}{type=user}');
  assert.equal(toHash({ ...defaults(), queries: [q, { ...q, right: true }], log: true }).split('&m=')[2], 'avg:auto:rate:proc.stat.cpu{host=*}{type=user}&o=axis+x1y2&ylog');
});

test("an address of OpenTSDB's own page opens the same chart", () => {
  const state = fromHash('#start=2026/11/21-10:00:00&end=2026/11/21-11:00:00&m=sum:rate:tsd.rpc&o=&m=sum:tsd.conn&o=axis%20x1y2&yrange=%5B0:%5D&wxh=900x400&ylog&tz=UTC');
  assert.deepEqual([state.queries.map((q) => [q.metric, q.rate, q.right]), state.log], [[['tsd.rpc', 'rate', false], ['tsd.conn', '', true]], true]);
  assert.deepEqual(windowOf(state, 0), [1795255200, 1795258800]);
  const { start, end } = toQuery(state, state.queries[0], 0);
  assert.deepEqual([start, end], [1795255200, 1795258800]);
});

const body = (hash, now) => { const s = fromHash(hash); return toQuery(s, s.queries[0], now); };

test('the query is that of POST /api/query', () => {
  assert.deepEqual(body('#start=1d-ago&m=sum:auto:rate{dropcounter,100}:m{host=*,dc=a|b}{type=iwildcard(U*)}', 1700000000), {
    start: '1d-ago',
    queries: [{
      aggregator: 'sum', metric: 'm', downsample: '5m-avg', rate: true, rateOptions: { counter: true, dropResets: true, counterMax: 100 },
      filters: [{ type: 'wildcard', tagk: 'host', filter: '*', groupBy: true }, { type: 'literal_or', tagk: 'dc', filter: 'a|b', groupBy: true },
        { type: 'iwildcard', tagk: 'type', filter: 'U*', groupBy: false }],
      rollupUsage: 'ROLLUP_RAW',
    }],
  });
  assert.equal(body('#start=1700000000&end=1700006000&m=avg:1h-sum:m', 1800000000).queries[0].rollupUsage, undefined);
  assert.deepEqual(body('#start=1700000000&end=1700000600&m=avg:m', 1800000000),
    { start: 1700000000, end: 1700000600, msResolution: true, queries: [{ aggregator: 'avg', metric: 'm', filters: [] }] });
  assert.equal(body('#start=7d-ago&m=avg:1dc-sum:m&tz=Asia/Kolkata', 0).timezone, 'Asia/Kolkata');
});

test('a pause asks for the past', () => {
  assert.deepEqual(((q) => [q.start, q.end])(body('#start=15m-ago&m=avg:m&pause=1700000900', 1800000000)), [1700000000, 1700000900]);
});

test('a zoom asks anew where there is more to see, live at its open end', () => {
  const now = 1700000000;
  const zoomed = (from, to) => body(`#start=7d-ago&m=avg:auto:m&zoom=${from},${to}`, now);
  assert.equal(body('#start=7d-ago&m=avg:auto:m', now).queries[0].downsample, '30m-avg');
  assert.deepEqual([zoomed(now - 7200, now - 3600)].map((q) => [q.start, q.end, q.queries[0].downsample])[0], [now - 7200, now - 3600, undefined]);
  assert.deepEqual([zoomed(now - 86400, now + 60)].map((q) => [q.start, q.end, q.queries[0].downsample])[0], [now - 86400, undefined, '5m-avg']);
  assert.equal(body(`#start=15m-ago&m=avg:auto:m&zoom=${now - 60},${now - 30}`, now).start, '15m-ago');
  const state = fromHash(`#start=7d-ago&m=avg:auto:m&m=avg:1h-avg:m&zoom=${now - 7200},${now - 3600}`);
  assert.deepEqual(state.queries.map((q) => effectiveDownsample(state, q, now)), ['', '1h-avg']);
});

test('windows and steps', () => {
  assert.deepEqual(windowOf({ ...defaults(), start: '15m-ago' }, 10000), [9100, 10000]);
  assert.deepEqual(windowOf({ ...defaults(), start: '1700000000', end: '1700000060000' }, 1), [1700000000, 1700000060]);
  assert.equal(autoDownsample(900), '');
  assert.equal(autoDownsample(6 * 3600), '1m-avg');
  assert.equal(autoDownsample(7 * 86400), '30m-avg');
  assert.equal(autoDownsample(1e12), '1d-avg');
  assert.deepEqual(['5m-avg', '100ms-max-nan', '1n-avg', '0all-sum', ''].map(stepOf), [300, 0.1, 0, 0, 0]);
});

test('percentiles are of histograms, which only add up', () => {
  const of = (q) => toQuery({ ...defaults(), start: '6h-ago' }, { ...emptyQuery(), metric: 'm', ...q }, 1700000000).queries[0];
  assert.deepEqual(of({ aggregator: 'max', percentiles: '50, 99.9' }), { aggregator: 'sum', metric: 'm', filters: [], downsample: '1m-sum', percentiles: [50, 99.9] });
  assert.equal(of({ aggregator: 'none', percentiles: '50' }).aggregator, 'none');
  assert.equal(of({ downsample: '5m-p99-nan', percentiles: '50' }).downsample, '5m-sum');
  assert.deepEqual(of({ downsample: '', percentiles: 'x,101,-1,' }), { aggregator: 'avg', metric: 'm', filters: [] });
  assert.equal(formatM(parseM('sum:1m-sum:percentiles[50,99.9]:m{host=*}')), 'sum:1m-sum:percentiles[50,99.9]:m{host=*}');
  assert.deepEqual(of({ percentiles: '50,50.0, 99' }).percentiles, [50, 99]);
  const notes = noting(toQuery(defaults(), { ...emptyQuery(), metric: 'm', percentiles: '50,99' }, 1700000000)).queries[0];
  assert.deepEqual([notes.percentiles, notes.downsample], [[50], '0all-sum']);
});

test('what is no percentile is told, and stays in the address', () => {
  const of = (percentiles) => faultOf({ ...emptyQuery(), percentiles });
  for (const fine of ['', '50', ' 0 , 100,99.99, .5,', '7.']) assert.equal(of(fine), '', fine);
  for (const wrong of ['150', '-1', 'x', '1e1', '0x10', '50;99', 'NaN', '100.01', '5 0', '.']) {
    assert.equal(of(`50,${wrong}`), `Percentiles are numbers from 0 to 100, as in 50,99.9: “${wrong}” is none.`);
    assert.equal(fromHash(toHash({ ...defaults(), queries: [{ ...emptyQuery(), metric: 'm', percentiles: wrong }] })).queries[0].percentiles, wrong);
  }
});

test('noting reads the same and sends one point of each group', () => {
  const q = body('#start=1h-ago&m=sum:1m-avg:rate:m{host=*}', 0);
  assert.deepEqual(noting(q).queries, [{ aggregator: 'sum', metric: 'm', filters: q.queries[0].filters, downsample: '0all-count' }]);
});
