// Axes and scales for uPlot: 24-hour clock, one unit an axis, linear or
// logarithmic, a second axis on the right.

import uPlot from '../vendor/uplot/uPlot.esm.js';
import * as format from './format.js';
import { stepsOf } from './units.js';

// Templates of the time axis: least distance in s, text, text where the day or
// year changes.
const day = '\n{YYYY}-{MM}-{DD}';
const times = [
  [86400 * 365, '{YYYY}', null, null, null, null, null, null, 1],
  [86400 * 28, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [86400, '{MM}-{DD}', '\n{YYYY}', null, null, null, null, null, 1],
  [3600, '{HH}:{mm}', day, null, day, null, null, null, 1],
  [60, '{HH}:{mm}', day, null, day, null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', day, null, day, null, null, null, 1],
  [0.001, ':{ss}.{fff}', day + ' {HH}:{mm}', null, day + ' {HH}:{mm}', null, '\n{HH}:{mm}', null, 1],
];

// axes returns them for colours {text, grid, tick}; right adds the second one. units are those
// of the left axis and of the right one, and limits {min, max, decimals} of each.
export function axes({ text, grid, tick }, { log = false, right = false, units = [], limits = [] } = {}) {
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: tick, width: 1, size: 5 }, font: '12px system-ui, sans-serif' };
  const vertical = (unit = 'none', { decimals } = {}) => ({
    ...axis, size: ['none', '%'].includes(unit) ? 60 : 84,
    ...(log ? {} : { incrs: stepsOf(unit) }),
    values: log
      ? (u, splits) => splits.map((v) => (v === null ? '' : format.value(v, unit)))
      : (u, splits, index, space, step) => format.ticks(splits, step, unit, decimals),
  });
  const list = [{ ...axis, values: times, space: 70 }, { ...vertical(units[0], limits[0]), scale: 'y' }];
  if (right) list.push({ ...vertical(units[1], limits[1]), scale: 'y2', side: 1, grid: { show: false } });
  return list;
}

// scales are those of a range of time. With zero, they reach to zero; fixed returns [from, to] of
// the values, where these do not come from the lines. limits are those of each axis: the lines say what they do not.
export function scales(range, { log = false, zero = false, fixed = null, limits = [] } = {}) {
  const free = zero ? (u, min, max) => padded(u, min === null ? null : Math.min(0, min), max === null ? null : Math.max(0, max)) : padded;
  const [y, y2] = [0, 1].map((i) => ({ ...(log ? { distr: 3 } : {}), range: limited(fixed ?? (log ? decades : free), limits[i], log) }));
  return { x: { time: true, auto: false, min: range[0], max: range[1] }, y, y2 };
}

// limited is a range between limits. Where the lines all lie beyond one of them, a range as wide as it is far from zero
// begins there. A log scale has no place for limits that are not above zero.
export function limited(range, limits, log = false) {
  const [min, max] = [limits?.min, limits?.max].map((v) => (log && v <= 0 ? undefined : v));
  if (min === undefined && max === undefined) return range;
  return (u, low, high) => {
    const [from, to] = range(u, low, high);
    const ends = [min ?? from, max ?? to];
    if (ends[0] < ends[1]) return ends;
    return min !== undefined ? [min, min + (Math.abs(min) || 1)] : [log ? max / 10 : max - (Math.abs(max) || 1), max];
  };
}

// padded leaves room above and below, also for a line that is flat.
function padded(u, min, max) {
  if (min === null || max === null) return [0, 1];
  if (min === max) return min === 0 ? [0, 1] : [min - Math.abs(min) * 0.1, max + Math.abs(max) * 0.1];
  return uPlot.rangeNum(min, max, 0.08, true);
}

function decades(u, min, max) {
  if (min === null || max === null) return [1, 10];
  return uPlot.rangeLog(min, max, 10, false);
}
