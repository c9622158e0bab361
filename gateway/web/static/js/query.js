// The queries that a state stands for, as bodies of POST /api/query and of
// subscriptions.

import { isRelative, parse } from './zone.js';
import { windowOf } from './state.js';

const steps = [[15, '15s'], [30, '30s'], [60, '1m'], [120, '2m'], [300, '5m'], [600, '10m'], [900, '15m'], [1800, '30m'],
  [3600, '1h'], [7200, '2h'], [21600, '6h'], [43200, '12h'], [86400, '1d']];

// autoDownsample aims at some 400 points a line; short ranges are drawn as stored.
export function autoDownsample(seconds) {
  if (seconds <= 3600) return '';
  const step = steps.find(([s]) => s >= seconds / 400) || steps[steps.length - 1];
  return step[1] + '-avg';
}

// meeting puts points as stored, which lie at times of their own, at times that they have in common.
export const meeting = '15s-avg';

const width = ([from, to]) => to - from;

// magnified tells whether a zoom shows more than the whole range would: then it
// is asked for by itself, else the answer at hand serves.
function magnified(state, now) {
  return state.zoom !== null && state.queries.some((q) => q.downsample === 'auto')
    && autoDownsample(width(state.zoom)) !== autoDownsample(width(windowOf(state, now)));
}

export function effectiveDownsample(state, q, now) {
  if (q.downsample !== 'auto') return q.downsample;
  return autoDownsample(state.span ?? width(magnified(state, now) ? state.zoom : windowOf(state, now))) || (state.aligned ? meeting : '');
}

// earlier is a state whose queries ask for the same by so many seconds before, and a while beyond
// its end: what has happened already need not be asked again while time goes on.
export function earlier(state, by, beyond, now) {
  const { start, end = state.pause ?? now } = times(state, now);
  const from = isRelative(String(start)) ? parse(start, state.pause ?? now, state.tz) : start;
  const shown = magnified(state, now) ? state.zoom : windowOf(state, now);
  return { ...state, start: String(Math.floor(from - by)), end: String(Math.ceil(end - by + beyond)), zoom: null, pause: null, span: width(shown) };
}

// toQuery asks for one query of a state. Without a downsample, times come in ms,
// so that no point hides another of its second.
export function toQuery(state, q, now) {
  const sub = { aggregator: q.aggregator, metric: q.metric, filters: q.tags.filter((t) => t.key && t.value).map(filterOf) };
  const downsample = effectiveDownsample(state, q, now);
  if (downsample) sub.downsample = downsample;
  if (q.rate) Object.assign(sub, rateOf(q.rate));
  const percentiles = percentilesOf(q.percentiles);
  const histograms = percentiles.length > 0 || wantsBuckets(q.percentiles);
  if (histograms) {
    // Histograms add up, and nothing else can be done with them.
    if (sub.aggregator !== 'none') sub.aggregator = 'sum';
    if (downsample) sub.downsample = downsample.replace(/-.*/, '-sum');
    if (percentiles.length > 0) sub.percentiles = percentiles;
    else sub.showHistogramBuckets = true;
  }
  const query = { ...times(state, now), queries: [sub] };
  // A query that is kept up to date cannot read rollups. Histograms have none.
  if (downsample && query.end === undefined && !histograms) sub.rollupUsage = 'ROLLUP_RAW';
  if (!downsample || /^\d+ms/.test(downsample)) query.msResolution = true;
  if (/^\d+[a-z]+c-/.test(downsample) && state.tz) query.timezone = state.tz; // calendar days and months
  return query;
}

const words = (text) => text.split(',').map((p) => p.trim()).filter(Boolean);

const isPercentile = (word) => /^(\d+\.?\d*|\.\d+)$/.test(word) && Number(word) <= 100;

// percentilesOf takes numbers from 0 to 100 out of a text, each once.
export const percentilesOf = (text) => [...new Set(words(text).filter(isPercentile).map(Number))];

// wantsBuckets tells whether the same text asks for the counts of a histogram's buckets instead.
export const wantsBuckets = (text) => text.trim() === buckets;

export const buckets = 'buckets';

// faultOf says what of a query cannot be asked, '' for nothing.
export function faultOf(q) {
  if (wantsBuckets(q.percentiles)) return '';
  const wrong = words(q.percentiles).find((word) => !isPercentile(word));
  return wrong === undefined ? '' : `Percentiles are numbers from 0 to 100, as in 50,99.9: “${wrong}” is none.`;
}

// times are start and end; a query without an end is live.
export function times(state, now) {
  if (magnified(state, now)) {
    const [start, end] = state.zoom;
    return end < (state.pause ?? now) ? { start, end } : { start };
  }
  if (state.pause !== null) {
    const [from, to] = windowOf(state, now);
    return { start: Math.floor(from), end: Math.floor(to) };
  }
  const start = timeOf(state.start, state, now);
  return state.end ? { start, end: timeOf(state.end, state, now) } : { start };
}

const timeOf = (text, state, now) => (isRelative(text) ? text : Math.floor(parse(text, now, state.tz) ?? now - 900));

export function filterOf({ key, value, group }) {
  const call = /^([a-z_]+)\((.*)\)$/s.exec(value);
  if (call) return { type: call[1], tagk: key, filter: call[2], groupBy: group };
  return { type: value.includes('*') ? 'wildcard' : 'literal_or', tagk: key, filter: value, groupBy: group };
}

// rate{counter,max,reset} or rate{dropcounter,max,reset}
function rateOf(text) {
  const [kind, max, reset] = (/\{(.*)\}/.exec(text)?.[1] || '').split(',');
  if (!kind) return { rate: true };
  const options = { counter: true };
  if (kind === 'dropcounter') options.dropResets = true;
  if (max) options.counterMax = Number(max);
  if (reset) options.resetValue = Number(reset);
  return { rate: true, rateOptions: options };
}

const seconds = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400, w: 604800 };

// stepOf is the distance of a downsample's points in s, 0 if it has no fixed one.
export function stepOf(downsample) {
  const [, n, unit] = /^(\d+)(ms|s|m|h|d|w)-/.exec(downsample) || [];
  return unit ? n * seconds[unit] : 0;
}

// noting asks which annotations lie in the range of a query: for one number of
// each group instead of its points.
export function noting(query, start = query.start) {
  const { rate, rateOptions, rollupUsage, ...sub } = query.queries[0];
  if (sub.percentiles) Object.assign(sub, { percentiles: sub.percentiles.slice(0, 1), downsample: '0all-sum' });
  else if (sub.showHistogramBuckets) sub.downsample = '0all-sum';
  else sub.downsample = '0all-count';
  return { ...query, start, globalAnnotations: true, queries: [sub] };
}
