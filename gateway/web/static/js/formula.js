// Formulas over the chart's queries: what is typed, as the body of a live request of
// POST /api/query/exp. Letters name the queries, in either case.

import { letter } from './columns.js';
import { effectiveDownsample, filterOf, meeting, times } from './query.js';

export const example = 'a / (a + b) * 100';

const output = 'formula'; // the id of the expression

// operators that are written as words, as the server reads them.
const words = new Set(['div', 'mod', 'eq', 'ne', 'lt', 'le', 'gt', 'ge', 'and', 'or', 'not']);

// A token is {text, at}. The letter behind a number, as in 0.1d, is part of it.
const tokens = (expr) => [...expr.matchAll(/\d+(?:\.\d+)?[A-Za-z]?|[A-Za-z_$@][\w$@]*|\S/g)].map((m) => ({ text: m[0], at: m.index }));

const isWord = (token) => /^[A-Za-z_$@]/.test(token.text) && !words.has(token.text);
const isLetter = (token) => isWord(token) && /^[A-Za-z]$/.test(token.text);
const place = (token) => token.text.toUpperCase().charCodeAt(0) - 65;

// rewrite replaces the letters of an expression, and leaves all else as it is.
function rewrite(expr, of) {
  let [out, from] = ['', 0];
  for (const t of tokens(expr).filter(isLetter)) {
    out += expr.slice(from, t.at) + of(t);
    from = t.at + t.text.length;
  }
  return out + expr.slice(from);
}

// withoutQuery keeps the meaning of an expression when query i is removed: the letters
// behind it move up. What was named by its own is said to be gone.
export const withoutQuery = (expr, i) => rewrite(expr, (t) => {
  if (place(t) === i) return 'removed';
  return place(t) > i ? String.fromCharCode(t.text.charCodeAt(0) - 1) : t.text;
});

// toFormula returns {exp, step, keys}: the request, the distance of its points (a
// downsample, '' for none), and the tags that its lines are told apart by, null for all.
// What a formula cannot be made of has {fault: {text, at}} instead; at is the place in
// the text, from 0, undefined where it has none.
export function toFormula(state, expr, now) {
  const fault = faultOfNames(state, expr);
  if (fault) return { fault };
  const used = [...new Set(tokens(expr).filter(isLetter).map(place))].sort((a, b) => a - b);
  const queries = used.map((i) => ({ ...state.queries[i], name: letter(i), id: letter(i).toLowerCase() }));
  const steps = queries.map((q) => effectiveDownsample(state, q, now));
  const text = faultOfQueries(queries, steps);
  if (text) return { fault: { text } };

  const downsample = common(queries, steps[0]);
  const [interval, by] = downsample.split('-');
  const span = times(state, now);
  const time = { ...span, aggregator: queries[0].aggregator, rate: queries[0].rate !== '' };
  if (downsample) time.downsampler = { interval, aggregator: by };
  if (downsample && span.end === undefined) time.rollupUsage = 'ROLLUP_RAW'; // what is kept up to date reads no rollups
  const single = queries.every((q) => q.aggregator === 'none');
  const keys = new Set(queries.flatMap((q) => q.tags.filter((t) => t.group).map((t) => t.key)));
  return {
    exp: {
      time,
      filters: queries.filter((q) => filters(q).length > 0).map((q) => ({ id: `filter${q.id}`, tags: filters(q) })),
      metrics: queries.map((q) => metric(q, steps[0])),
      expressions: [{ id: output, expr: rewrite(expr, (t) => t.text.toLowerCase()), join: { operator: 'intersection', includeAggTags: false, useGroupTags: !single } }],
      outputs: [{ id: output }],
    },
    step: downsample,
    keys: single ? null : keys,
  };
}

const filters = (q) => q.tags.filter((t) => t.key && t.value).map(filterOf);

// Where one of several lines has no point, a formula has none either, unless the query
// fills with zero.
function metric(q, step) {
  const out = { id: q.id, metric: q.metric, aggregator: q.aggregator, fillPolicy: { policy: /-zero$/.test(step) ? 'zero' : 'nan' } };
  return filters(q).length > 0 ? { ...out, filter: `filter${q.id}` } : out;
}

// common is the downsample of all queries. Points as stored lie at times of their own, so
// where the step is chosen for them, several queries get one in which they meet.
function common(queries, step) {
  return step === '' && queries.length > 1 && queries.every((q) => q.downsample === 'auto') ? meeting : step;
}

function faultOfNames(state, expr) {
  const names = tokens(expr).filter(isWord);
  for (const t of names) {
    if (t.text === 'removed') return { text: 'A query of this formula was removed.', at: t.at };
    if (!isLetter(t)) return { text: `“${t.text}” is no query: their letters are a, b, c and so on.`, at: t.at };
    const name = letter(place(t));
    if (!state.queries[place(t)]) return { text: `There is no query ${name}.`, at: t.at };
    if (!state.queries[place(t)].metric) return { text: `Query ${name} has no metric yet.`, at: t.at };
  }
  return names.length > 0 ? null : { text: `A formula names a query by its letter, as in ${example}.` };
}

// faultOfQueries says what of the queries an expression cannot have, '' for nothing.
function faultOfQueries(queries, steps) {
  for (const [i, q] of queries.entries()) {
    if (q.percentiles) return `Query ${q.name} asks for percentiles of histograms: a formula takes points alone.`;
    if (q.rate && q.rate !== 'rate') return `Query ${q.name} has a rate with options (${q.rate}): a formula has plain rates alone.`;
    if (steps[i] && !/^[1-9]\d*(ms|s|m|h|d|w|n|y)-/.test(steps[i])) return `Query ${q.name} is downsampled by ${steps[i].split('-')[0]}: a formula wants a fixed interval, as 5m.`;
  }
  const all = queries.map((q) => q.name).join(', ').replace(/, (\w)$/, ' and $1');
  const differ = (of) => new Set(queries.map(of)).size > 1;
  if (differ((q) => q.rate)) return `Of queries ${all} some are rates and some are not: a formula wants the same of all.`;
  if (new Set(steps).size > 1) return `Queries ${all} have different downsamples (${[...new Set(steps)].map((s) => s || 'as stored').join(', ')}): a formula wants the same of all.`;
  if (differ((q) => q.aggregator === 'none')) return `Of queries ${all} some are aggregated and some are not (none): a formula finds no lines that belong together.`;
  return '';
}

// named is a group as the chart names its line: by the formula, and by the tags that tell
// lines apart. Others are those of one of its queries.
export function named(group, name, keys) {
  const tags = Object.fromEntries(Object.entries(group.tags).filter(([k]) => !keys || keys.has(k)));
  return { ...group, metric: name, tags };
}
