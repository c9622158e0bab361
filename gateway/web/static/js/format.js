// Numbers and times in words of a fixed width, 24-hour clock.

import { scaleOf } from './units.js';
import { wall } from './zone.js';

// ticks writes all values of an axis in one size of the unit, with as many decimals as their
// distance needs, or as places says. null is a tick without a text.
export function ticks(values, step, unit = 'none', places = undefined) {
  const [size, sign] = scaleOf(unit, Math.max(...values.map(Math.abs)));
  const decimals = places ?? decimalsOf(step / size);
  return values.map((v) => (v === 0 && places === undefined ? '0' : (v / size).toFixed(decimals) + sign));
}

// decimalsOf is how many a step needs, of the two digits that a step may have, or three where it
// is none of decimal numbers.
function decimalsOf(step) {
  const first = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const whole = (d) => Math.abs(step * 10 ** d - Math.round(step * 10 ** d)) < 1e-9 * step * 10 ** d;
  return Math.min(9, [first, first + 1, first + 2].find(whole) ?? first + 2);
}

// value writes one value with four significant digits, or as many as are asked for.
export function value(v, unit = 'none', digits = 4) {
  if (v === null || v === undefined || Number.isNaN(v)) return '–';
  const number = Number(v); // a BigInt, too
  if (!Number.isFinite(number)) return String(number);
  const [size, sign] = scaleOf(unit, Math.abs(number));
  return String(Number((number / size).toPrecision(digits))) + sign;
}

export const exact = (v) => (v === null || v === undefined || Number.isNaN(v) ? '–' : String(v));

// time is 2026-11-21 10:30:00, with .250 where the time has a fraction.
export function time(seconds, zone = '') {
  const ms = Math.round((seconds - Math.floor(seconds)) * 1000);
  const w = wall(Math.floor(seconds), zone);
  return `${w.year}-${w.month}-${w.day} ${w.hour}:${w.minute}:${w.second}` + (ms ? '.' + String(ms).padStart(3, '0') : '');
}

export const clock = (seconds, zone = '') => time(seconds, zone).slice(11);

export const plural = (n, noun) => `${n.toLocaleString('en')} ${noun}${n === 1 || noun === 'series' ? '' : 's'}`;

// between is a stretch of time around a moment: 2026-11-21 10:30:00 – 10:30:40.
export function between(middle, width, zone = '') {
  const [from, to] = [time(middle - width / 2, zone), time(middle + width / 2, zone)];
  return `${from} – ${from.slice(0, 10) === to.slice(0, 10) ? to.slice(11) : to}`;
}
