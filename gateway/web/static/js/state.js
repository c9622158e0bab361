// The page's whole state and its form in the address, after the "#":
//
//   #start=15m-ago&m=avg:auto:rate:proc.stat.cpu{host=*}{type=user}
//
// m is OpenTSDB's expression (aggregator:downsample:rate:percentiles[50,99]:metric
// {group by}{filter}), once for each query; its downsample may also be "auto". start and end are
// OpenTSDB times: 15m-ago, or seconds since 1970. f is a formula, which names queries by their
// places: with one, a query that has no metric is an empty m. The other names are listed in
// README.md.

import { isShift, known, parse } from './zone.js';

export const formulasAtMost = 8;

export const emptyQuery = () => ({ aggregator: 'avg', downsample: 'auto', rate: '', percentiles: '', metric: '', tags: [], alias: '', right: false });

export const emptyFormula = () => ({ expr: '', name: '', right: false });

export const defaults = () => ({
  start: '15m-ago', end: '', queries: [emptyQuery()],
  formulas: [], // over the queries
  zoom: null,  // [from, to]: the part of the range in view
  hide: [],    // names of lines that are not drawn
  legend: '',  // of the names of lines: list or table; '' is a list of few, and a table of many
  only: '',    // words of the names of lines: others are not drawn
  most: 0,     // lines that are drawn, the greatest; 0 is all
  pins: [],    // times with a tooltip that stays
  pause: null, // the time at which the chart stands still
  log: false,
  notes: true, // annotations are drawn
  shift: '',   // the time before with which it is compared, as 1d
  tz: '',      // '' is the browser's zone
  theme: '',   // '' is the system's
  open: [],    // of table, notes-list, explain, trace
});

export function fromHash(hash) {
  const params = new URLSearchParams(hash.replace(/^#/, ''));
  const state = defaults();
  const sides = params.getAll('o');
  const aliases = params.getAll('n');
  const ms = params.getAll('m').map((m, i) => ({ ...parseM(m), alias: aliases[i] || '', right: /x1y2/.test(sides[i] || '') }));
  const [names, axes] = [params.getAll('fn'), params.getAll('fo')];
  state.formulas = params.getAll('f').map((expr, i) => ({ expr, name: names[i] || '', right: /x1y2/.test(axes[i] || '') })).filter((f) => f.expr).slice(0, formulasAtMost);
  if (ms.some((q) => q.metric)) state.queries = placed(ms, state.formulas);
  state.start = params.get('start') || state.start;
  state.end = params.get('end') || '';
  const zoom = numbers(params.get('zoom'));
  if (zoom.length === 2 && zoom[0] < zoom[1]) state.zoom = zoom;
  state.hide = params.getAll('hide');
  if (['list', 'table'].includes(params.get('legend'))) state.legend = params.get('legend');
  state.only = params.get('only') || '';
  const [most] = numbers(params.get('most'));
  if (Number.isInteger(most) && most > 0) state.most = most;
  state.pins = numbers(params.get('pin'));
  state.pause = numbers(params.get('pause'))[0] ?? null;
  state.log = params.has('ylog');
  if (isShift(params.get('shift') ?? '')) state.shift = params.get('shift');
  state.notes = params.get('notes') !== 'off';
  if (known(params.get('tz') || '')) state.tz = params.get('tz') || '';
  if (['light', 'dark'].includes(params.get('theme'))) state.theme = params.get('theme');
  state.open = (params.get('open') || '').split(',').filter(Boolean);
  return state;
}

// placed leaves out queries without a metric, but for those that give later ones the places by
// which formulas name them.
const placed = (queries, formulas) => formulas.length > 0 ? queries.slice(0, queries.findLastIndex((q) => q.metric) + 1) : queries.filter((q) => q.metric);

export function toHash(state) {
  const parts = ['start=' + encode(state.start)];
  const add = (name, value) => parts.push(value === true ? name : `${name}=${encode(value)}`);
  if (state.end) add('end', state.end);
  const formulas = state.formulas.filter((f) => f.expr);
  const asked = placed(state.queries, formulas);
  const [sides, aliases] = [asked.some((q) => q.right), asked.some((q) => q.alias)];
  for (const q of asked) {
    add('m', q.metric && formatM(q));
    if (sides) add('o', q.right ? 'axis x1y2' : '');
    if (aliases) add('n', q.alias);
  }
  const [named, right] = [formulas.some((f) => f.name), formulas.some((f) => f.right)];
  for (const f of formulas) {
    add('f', f.expr);
    if (named) add('fn', f.name);
    if (right) add('fo', f.right ? 'axis x1y2' : '');
  }
  if (state.zoom) add('zoom', state.zoom.join(','));
  for (const name of state.hide) add('hide', name);
  if (state.legend) add('legend', state.legend);
  if (state.only) add('only', state.only);
  if (state.most) add('most', state.most);
  if (state.pins.length > 0) add('pin', state.pins.join(','));
  if (state.pause !== null) add('pause', state.pause);
  if (state.log) add('ylog', true);
  if (!state.notes) add('notes', 'off');
  if (state.shift) add('shift', state.shift);
  if (state.tz) add('tz', state.tz);
  if (state.theme) add('theme', state.theme);
  if (state.open.length > 0) add('open', state.open.join(','));
  return '#' + parts.join('&');
}

// encode leaves legible what an address may hold.
const encode = (text) => encodeURIComponent(String(text)).replace(/%(3A|2F|2C|3D|7B|7D|7C|40)/g, decodeURIComponent)
  .replace(/%20/g, '+');

const numbers = (text) => (text || '').split(',').filter(Boolean).map(Number).filter(Number.isFinite);

export function formatM(q) {
  const braces = (group) => q.tags.filter((t) => t.key && t.group === group).map((t) => `${t.key}=${t.value}`).join(',');
  const grouped = braces(true);
  const filtered = braces(false);
  let tail = '';
  if (grouped || filtered) tail = `{${grouped}}`;
  if (filtered) tail += `{${filtered}}`;
  const percentiles = q.percentiles && (q.percentiles === 'buckets' ? 'show-histogram-buckets' : `percentiles[${q.percentiles}]`);
  return [q.aggregator, q.downsample, q.rate, percentiles, q.metric + tail].filter(Boolean).join(':');
}

export function parseM(m) {
  const out = { aggregator: 'avg', downsample: '', rate: '', percentiles: '', metric: '', tags: [] };
  if (!m) return { ...out, downsample: 'auto' };
  // Taken out first, because what somebody has typed by mistake may hold a colon.
  const [, front, list, back] = /^((?:[^{:]*(?:\{[^{}]*\})?:)+?)percentiles\[(.*?)\]:(.*)$/s.exec(m) || [];
  if (list !== undefined) return { ...parseM(front + back), percentiles: list };
  const parts = split(m, ':');
  out.aggregator = parts.shift() || 'avg';
  const last = parts.pop() || '';
  for (const p of parts) {
    if (p.startsWith('rate')) out.rate = p;
    else if (p === 'show-histogram-buckets') out.percentiles = 'buckets';
    else out.downsample = p;
  }
  // A metric may have ${name} in it, which begins no filter.
  const [, metric, first, second] = /^((?:\$\{\w+\}|[^{])*)(?:\{(.*?)\})?(?:\{(.*)\})?$/s.exec(last) || [null, last];
  out.metric = metric;
  out.tags = [...tagsOf(first, true), ...tagsOf(second, false)];
  return out;
}

function tagsOf(text, group) {
  return split(text || '', ',').filter(Boolean).map((pair) => {
    const at = pair.indexOf('=');
    return { key: pair.slice(0, at), value: pair.slice(at + 1), group };
  });
}

// split cuts at a sign, but not within ( ) or { }.
function split(text, sign) {
  const out = [''];
  let depth = 0;
  for (const c of text) {
    if ('({'.includes(c)) depth++;
    if (')}'.includes(c)) depth--;
    if (c === sign && depth === 0) out.push('');
    else out[out.length - 1] += c;
  }
  return out;
}

// windowOf returns [from, to] in seconds, to being now for a live query.
export function windowOf(state, now) {
  const clock = state.pause ?? now;
  const to = (state.end && parse(state.end, clock, state.tz)) || clock;
  return [parse(state.start, clock, state.tz) ?? to - 900, to];
}

// panned is what changes of a state when what it shows moves by so many seconds, null for nothing:
// it is not moved beyond now.
export function panned(state, by, now) {
  const window = windowOf(state, now).map(Math.floor);
  const shown = state.zoom ?? window;
  const step = Math.round(Math.min(by, Math.floor(now) - shown[1]));
  if (step === 0) return null;
  const [all, part] = [window.map((t) => t + step), shown.map((t) => t + step)];
  if (!state.zoom) return { start: String(all[0]), end: String(all[1]), pause: null };
  if (part[0] >= window[0] && part[1] <= window[1]) return { zoom: part };
  return { zoom: part, start: String(all[0]), end: String(all[1]), pause: null };
}
