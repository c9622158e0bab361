// Units of values: the signs that each is written with, the largest first, and the steps in which
// an axis counts. Bytes go by 1024 (IEC 80000-13), times by 60 and 24, all else by 1000.

const thousands = (sign) => [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']].map(([size, prefix]) => [size, prefix + sign]);
const clockwork = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns']];

const decimals = (from, to) => Array.from({ length: to - from }, (_, i) => [1, 2, 2.5, 5].map((m) => Number(`${m}e${from + i}`))).flat();
const seconds = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, ...decimals(6, 15)];

const units = {
  none: { sizes: thousands(''), gap: '' },
  bytes: { sizes: [...['PiB', 'TiB', 'GiB', 'MiB', 'KiB'].map((sign, i) => [2 ** (50 - 10 * i), sign]), [1, 'B']], steps: [...decimals(-9, 0), ...Array.from({ length: 64 }, (_, i) => 2 ** i)] },
  'bits/s': { sizes: thousands('bit/s') },
  '%': { sizes: [[1, '%']], gap: '' },
  s: { sizes: clockwork, steps: [...decimals(-12, 0), ...seconds] },
  ms: { sizes: clockwork.map(([size, sign]) => [Number((size * 1000).toPrecision(3)), sign]), steps: [...decimals(-9, 3), ...seconds.map((s) => s * 1000)] },
  'ops/s': { sizes: thousands('ops/s') },
};

export const names = Object.keys(units);

// of returns what is known of a unit, for a name that is none what "none" is.
const of = (name) => (Object.hasOwn(units, name) ? units[name] : units.none);

// scaleOf returns [size, sign] for values up to a size: a value is written as value / size, with
// the sign behind it.
export function scaleOf(name, greatest) {
  const { sizes, gap = ' ' } = of(name);
  const [size, sign] = (greatest > 0 ? sizes.find(([s]) => greatest >= s) ?? sizes.at(-1) : sizes.find(([s]) => s === 1));
  return [size, sign && gap + sign];
}

// stepsOf are the distances that ticks of an axis may have, ascending; undefined stands for those
// of decimal numbers.
export const stepsOf = (name) => of(name).steps;
