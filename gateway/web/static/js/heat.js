// A heat map: how many points lie in each cell of a grid of times and values. Its rows come from the
// values of many lines, or are the buckets of histograms, whose lines are counts already.

import { usualStep } from './columns.js';
import { stepsOf } from './units.js';

const columnsAtMost = 100;
const rowsWanted = 20;
const decadesOfFifths = 8; // a log scale over more decades has a row for each
const levels = 6;

// A Heat has times, the middle of each column, in s, and its width; rows from the lowest up,
// {low, high, label, counts}; bounds, the lowest and the highest value. A count is a number above 0;
// undefined where a column has points, but none in this cell, and null where it has none at all. lost
// is how many points have no place on a log scale.
class Heat {
  constructor(grid, rows, lost) {
    const seen = grid.times.map((_, k) => rows.some((r) => r.counts.has(k)));
    const used = rows.filter((r) => r.counts.size > 0 || !r.open);
    Object.assign(this, { times: grid.times, width: grid.width, lost });
    this.rows = used.map(({ low, high, label, counts }) => ({ low, high, label, counts: seen.map((any, k) => (any ? counts.get(k) || undefined : null)) }));
    this.bounds = used.length > 0 ? [used[0].low, used.at(-1).high] : [1, 10]; // a log scale has no zero
    this.levels = levelsOf(this.rows.flatMap((r) => r.counts.filter((c) => c > 0)));
  }

  // levelOf is the place of a count among the levels.
  levelOf(count) { return Math.max(0, this.levels.findLastIndex((least) => count >= least)); }
}

const evenUpTo = 36; // counts whose levels are equally wide

// levelsOf are the least counts of some levels, ascending: each count for itself, or equally wide, or
// growing by a factor where there are counts of very different sizes.
export function levelsOf(counts) {
  const most = counts.reduce((a, b) => Math.max(a, b), 0);
  if (most === 0) return [];
  if (!counts.every(Number.isInteger)) return Array.from({ length: levels }, (_, i) => (most * i) / levels);
  if (most <= levels) return Array.from({ length: most }, (_, i) => i + 1);
  if (most <= evenUpTo) return Array.from({ length: levels }, (_, i) => 1 + Math.round((i * most) / levels));
  const out = [1];
  for (let i = 1; i < levels; i++) out.push(Math.max(out.at(-1) + 1, Math.round(most ** (i / levels))));
  return out;
}

// stepOf is the usual distance of a group's points; of few, the least.
function stepOf({ step, times }) {
  if (step) return step;
  const usual = usualStep(times);
  return usual < Infinity ? usual : times.reduce((least, t, i) => (i > 0 ? Math.min(least, t - times[i - 1]) : least), Infinity);
}

// gridOf makes columns over a range, each a whole number of the lines' steps wide.
function gridOf(groups, [from, to]) {
  const steps = groups.map((g) => stepOf(g)).filter((s) => s > 0 && Number.isFinite(s));
  const least = Math.max((to - from) / columnsAtMost, 0.001);
  const step = steps.reduce((a, b) => Math.min(a, b), Infinity);
  const width = step < Infinity ? step * Math.ceil(least / step - 1e-9) : least;
  const first = Math.floor(from / width);
  const n = Math.max(1, Math.ceil(to / width - 1e-9) - first);
  const times = Array.from({ length: n }, (_, k) => (first + k + 0.5) * width);
  return { times, width, place: (t) => (t < from || t > to ? -1 : Math.min(n - 1, Math.floor(t / width) - first)) };
}

const add = (counts, k, n) => counts.set(k, (counts.get(k) ?? 0) + n);

// byValue counts the points of groups, {times, values, step}, in a range. text writes a bound.
export function byValue(groups, range, { log = false, unit = 'none', text = String } = {}) {
  const grid = gridOf(groups, range);
  const points = [];
  let lost = 0;
  for (const { times, values } of groups) {
    times.forEach((t, i) => {
      const v = values[i] === null ? NaN : Number(values[i]);
      const k = grid.place(t);
      if (k < 0 || !Number.isFinite(v)) return;
      if (log && v <= 0) lost++;
      else points.push([k, v]);
    });
  }
  const bounds = boundsOf(points, log, unit);
  const rows = bounds.slice(1).map((high, i) => ({ low: bounds[i], high, label: `${text(bounds[i])} to ${text(high)}`, counts: new Map() }));
  for (const [k, v] of points) add(rows[rowOf(bounds, v)].counts, k, 1);
  return new Heat(grid, rows, lost);
}

// rowOf is the place of the last bound that is not above a value; the highest value is in the last
// row.
function rowOf(bounds, v) {
  let [low, high] = [0, bounds.length - 2];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (bounds[middle] <= v) low = middle;
    else high = middle - 1;
  }
  return low;
}

// boundsOf are the bounds of rows, ascending, at even steps of the unit, or fifths of decades.
function boundsOf(points, log, unit) {
  if (points.length === 0) return [];
  const [least, most] = points.reduce(([a, b], [, v]) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  if (log) {
    const parts = Math.log10(most / least) > decadesOfFifths ? 1 : 5;
    const first = Math.floor(Math.log10(least) * parts + 1e-9);
    const last = Math.max(first + 1, Math.ceil(Math.log10(most) * parts - 1e-9));
    return Array.from({ length: last - first + 1 }, (_, i) => 10 ** ((first + i) / parts));
  }
  const wanted = (most - least) / rowsWanted || Math.abs(least) / 10 || 1;
  const step = stepsOf(unit)?.find((s) => s >= wanted) ?? decimal(wanted);
  const first = Math.floor(least / step);
  const last = Math.max(first + 1, Math.ceil(most / step));
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

// decimal is the next of 1, 2, 5, 10 … that is no smaller.
function decimal(wanted) {
  const power = 10 ** Math.floor(Math.log10(wanted));
  return [1, 2, 5, 10].find((m) => m * power >= wanted * (1 - 1e-9)) * power;
}

const bucket = /_(?:(-?[\d.]+(?:E-?\d+)?)_(-?[\d.]+(?:E-?\d+)?)|(UNDERFLOW|OVERFLOW))$/;

// isBucket tells whether a group is the counts of a histogram's bucket, which the server names
// by its bounds: latency_0.5_1.0, latency_UNDERFLOW.
export const isBucket = ({ metric }) => bucket.test(metric);

// ofBuckets adds up the counts of such groups in a range.
export function ofBuckets(groups, range, { log = false, text = String } = {}) {
  const grid = gridOf(groups, range);
  const rows = new Map();
  for (const group of groups) {
    const [, low, high, open] = bucket.exec(group.metric);
    const key = open ?? `${Number(low)} ${Number(high)}`;
    if (!rows.has(key)) rows.set(key, { low: Number(low), high: Number(high), open, counts: new Map() });
    group.times.forEach((t, i) => {
      const k = grid.place(t);
      const n = group.values[i] === null ? NaN : Number(group.values[i]);
      if (k >= 0 && Number.isFinite(n)) add(rows.get(key).counts, k, n);
    });
  }
  return new Heat(grid, closed([...rows.values()], log, text), 0);
}

// closed gives the buckets without an end one, beside the others, and each its label. On a log
// scale, what begins at 0 or below is drawn as a tenth of what it ends at.
function closed(rows, log, text) {
  const found = rows.filter((r) => !r.open).sort((a, b) => a.low - b.low);
  if (found.length === 0) return [];
  const out = found.filter((r) => !log || r.high > 0).map((r) => ({ ...r, label: `${text(r.low)} to ${text(r.high)}`, low: log && r.low <= 0 ? r.high / 10 : r.low }));
  const [lowest, highest] = [out[0], out.at(-1)];
  for (const r of rows) {
    const some = [...r.counts.values()].some((n) => n > 0);
    if (r.open === 'UNDERFLOW' && some) out.unshift({ ...r, label: `below ${text(found[0].low)}`, low: log ? lowest.low / 2 : lowest.low - (lowest.high - lowest.low), high: lowest.low });
    if (r.open === 'OVERFLOW' && some) out.push({ ...r, label: `${text(found.at(-1).high)} or more`, low: highest.high, high: log ? highest.high * 2 : highest.high + (highest.high - highest.low) });
  }
  return out;
}
