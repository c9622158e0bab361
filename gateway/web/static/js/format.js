// Numbers and times in words of a fixed width, 24-hour clock.

import { wall } from './zone.js';

const units = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];

const unitOf = (size) => units.find(([u]) => size >= u) || [1, ''];

// ticks writes all values of an axis in one unit, with as many decimals as
// their distance needs. null is a tick without a text.
export function ticks(values, step) {
  const [unit, sign] = unitOf(Math.max(...values.map(Math.abs)));
  const decimals = Math.min(9, Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9)));
  return values.map((v) => (v === 0 ? '0' : (v / unit).toFixed(decimals) + sign));
}

// value writes one value with four significant digits.
export function value(v) {
  if (v === null || v === undefined || Number.isNaN(v)) return '–';
  const [unit, sign] = unitOf(Math.abs(v));
  return String(Number((v / unit).toPrecision(4))) + sign;
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
