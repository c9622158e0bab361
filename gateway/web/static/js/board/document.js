// The document of a dashboard, as gateway/extra/dashboards/dashboard takes it. It may come from a link, so
// nothing in it is trusted to be what it should be.

import { buckets } from '../query.js';
import { defaults, formatM, parseM, toHash } from '../state.js';
import { faultOf as faultOfFields, isObject, isText, optional } from './fields.js';
import { columns, freePlace, highest, settle } from './places.js';
import { typeOf } from './types.js';
import { faultOfVariables, queryWith } from './variables.js';

export const form = 1;

const limits = { bytes: 1 << 20, panels: 500, title: 200, row: 10_000, description: 1000, tags: 10, tag: 40 };

// tagsOf reads what is written into the field of a dashboard's tags.
export const tagsOf = (text) => [...new Set(text.split(',').map((t) => [...t.trim()].slice(0, limits.tag).join('')).filter(Boolean))].slice(0, limits.tags);

export const empty = (title) => ({ form, title, range: { from: '1h-ago', to: '' }, panels: [] });

// read returns {document}, {fault}, or both of one that can be shown but not edited.
export function read(text) {
  if (new TextEncoder().encode(text).length > limits.bytes) return { fault: 'The document has more than 1 MiB.' };
  let document;
  try {
    document = JSON.parse(text);
  } catch {
    return { fault: 'The document is not JSON.' };
  }
  const fault = faultOf(document);
  return fault ? { fault } : { document, later: document.form > form };
}

// faultOf says what of a document is wrong, '' for nothing. A later form may be anything
// beside its panels: those are shown, and it is not edited.
function faultOf(d) {
  if (!isObject(d) || !Number.isInteger(d.form) || d.form < 1) return 'The document is no dashboard: it has no form.';
  if (!optional(d.title, (t) => isText(t, limits.title))) return 'The title is no text of at most 200 characters.';
  if (!optional(d.tags, (l) => Array.isArray(l) && l.length <= limits.tags && l.every((t) => isText(t, limits.tag) && t !== ''))) return `The tags are not up to ${limits.tags} texts of 1 to ${limits.tag} characters.`;
  if (!optional(d.range, (r) => isObject(r) && optional(r.from, (t) => isText(t, 64)) && optional(r.to, (t) => isText(t, 64)))) return 'The range is none.';
  if (!Array.isArray(d.panels)) return 'The document has no panels.';
  if (d.panels.length > limits.panels) return `The document has ${d.panels.length} panels: ${limits.panels} are the most.`;
  const ids = new Set();
  for (const [i, p] of d.panels.entries()) {
    const wrong = faultOfPanel(p) || (ids.has(p.id) ? 'its id is that of another' : '');
    if (wrong) return `Panel ${i + 1}: ${wrong}.`;
    ids.add(p.id);
  }
  return faultOfVariables(d);
}

function faultOfPanel(p) {
  if (!isObject(p) || typeof p.id !== 'string' || !/^[A-Za-z0-9_-]{1,32}$/.test(p.id)) return 'its id is none';
  if (typeof p.type !== 'string' || !p.type || p.type.length > 64) return 'its type is none';
  if (!optional(p.title, (t) => isText(t, limits.title))) return 'its title is none';
  if (!optional(p.description, (t) => isText(t, limits.description))) return 'its description is no text of at most 1000 characters';
  const { x, y, w, h } = isObject(p.place) ? p.place : {};
  if (![x, y, w, h].every(Number.isInteger) || x < 0 || w < 1 || x + w > columns || y < 0 || y > limits.row || h < 1 || h > highest) return 'its place is not on the grid';
  return faultOfFields(p, typeOf(p.type)?.fields ?? []);
}

// chartOf returns what the chart's state has of a panel, {queries, formulas, log}, or {fault}.
// With what is chosen for variables the filters have it in their place; fault is waiting if a
// value is still to come.
export function chartOf(panel, chosen) {
  const queries = [];
  for (const [i, q] of (panel.queries ?? []).entries()) {
    const read = queryOf(q);
    const { query, fault, waiting } = chosen && read.query ? queryWith(read.query, chosen) : read;
    if (fault) return { fault: `Query ${i + 1}: ${fault}`, waiting, queries: [], formulas: [], log: false };
    queries.push(query);
  }
  const formulas = (panel.formulas ?? []).map((f) => ({ expr: f.expr ?? '', name: f.name ?? '', right: f.right === true }));
  return { queries, formulas, log: panel.log === true };
}

// queryOf reads a text as in the parameter m, {"m", "right"}, or one of OpenTSDB's sub-queries.
function queryOf(q) {
  if (typeof q === 'string') return { query: { ...parseM(q), alias: '', right: false } };
  if (typeof q.m === 'string') return { query: { ...parseM(q.m), alias: aliasOf(q), right: q.right === true } };
  return subQuery(q);
}

const known = new Set(['aggregator', 'metric', 'downsample', 'rate', 'rateOptions', 'filters', 'tags', 'percentiles', 'showHistogramBuckets', 'right', 'alias']);

const aliasOf = ({ alias }) => (isText(alias, limits.title) ? alias : '');

function subQuery(q) {
  const unknown = Object.keys(q).find((k) => !known.has(k));
  if (unknown) return { fault: `the panel does not draw a query with “${unknown}”.` };
  if (typeof q.metric !== 'string') return { fault: 'it has no metric.' };
  const [filters, tags, percentiles] = [q.filters ?? [], q.tags ?? {}, q.percentiles ?? []];
  if (!Array.isArray(filters) || !filters.every((f) => isObject(f) && ['type', 'tagk', 'filter'].every((k) => typeof f[k] === 'string'))) return { fault: 'its filters are none.' };
  if (!isObject(tags) || !Object.values(tags).every((v) => typeof v === 'string')) return { fault: 'its tags are none.' };
  if (!Array.isArray(percentiles) || !percentiles.every(Number.isFinite)) return { fault: 'its percentiles are none.' };
  const histograms = q.showHistogramBuckets === true;
  if (histograms && percentiles.length > 0) return { fault: 'it has percentiles and buckets: a panel draws one of them.' };
  return { query: {
    aggregator: String(q.aggregator ?? 'avg'), downsample: String(q.downsample ?? ''), rate: rateOf(q), percentiles: histograms ? buckets : percentiles.join(), metric: q.metric,
    tags: [...filters.map((f) => ({ key: f.tagk, value: valueOf(f), group: f.groupBy === true })), ...Object.entries(tags).map(([key, value]) => ({ key, value, group: true }))],
    alias: aliasOf(q), right: q.right === true,
  } };
}

const valueOf = ({ type, filter }) => (type === (filter.includes('*') ? 'wildcard' : 'literal_or') ? filter : `${type}(${filter})`);

function rateOf({ rate, rateOptions: o }) {
  if (!rate) return '';
  if (!isObject(o) || !o.counter) return 'rate';
  return `rate{${o.dropResets ? 'dropcounter' : 'counter'},${o.counterMax ?? ''},${o.resetValue ?? ''}}`.replace(/,+}$/, '}');
}

// withChart is a panel with another chart, in the form's words.
export function withChart(panel, { queries, formulas, log }) {
  const { queries: q, formulas: f, log: l, ...rest } = panel;
  const out = { ...rest, queries: queries.map((x) => (x.right || x.alias ? { m: formatM(x), ...(x.right ? { right: true } : {}), ...(x.alias ? { alias: x.alias } : {}) } : formatM(x))) };
  if (formulas.length > 0) out.formulas = formulas.map(({ expr, name, right }) => ({ expr, ...(name ? { name } : {}), ...(right ? { right } : {}) }));
  if (log) out.log = true;
  return out;
}

// asChart is the address of a panel's chart on the page of charts, which shows what a view of the dashboard does.
export function asChart({ queries, formulas, log }, { shift, legend = '', top }, view) {
  const { start, end, zoom, pause, tz, theme } = view;
  return toHash({ ...defaults(), start, end, zoom, pause, tz, theme, queries, formulas, log, shift: shift ?? view.shift ?? '', legend, most: top?.n ?? 0 });
}

// newPanel has the first free place of the grid for the size of its type.
export function newPanel({ panels }, type) {
  const { size, blank } = typeOf(type);
  return { id: freeId(panels), type, title: '', place: freePlace(panels, size), ...blank };
}

// retyped is a new panel whose type has been chosen: its size, and so its place, follow that.
export function retyped({ panels }, panel) {
  return { ...panel, place: freePlace(panels.filter((p) => p.id !== panel.id), typeOf(panel.type).size) };
}

// duplicated is a document's panel once more: next to it or below, where there is room.
export function duplicated({ panels }, id) {
  const panel = panels.find((p) => p.id === id);
  const { w, h, y } = panel.place;
  const copy = { ...panel, id: freeId(panels), place: freePlace(panels, [w, h], y) };
  return { panels: settle([...panels, copy]), id: copy.id };
}

function freeId(panels) {
  const taken = new Set(panels.map((p) => p.id));
  let n = panels.length + 1;
  while (taken.has(`p${n}`)) n++;
  return `p${n}`;
}
