// What a table and a legend tell of a line.

const isNumber = (v) => v !== null && !Number.isNaN(v);

// columns are what is told of a line, beside its name.
export const columns = [['last', 'Last'], ['least', 'Least'], ['greatest', 'Greatest'], ['mean', 'Mean']];

// newest is the last point of a group that is a number, [time, value] or nothing.
export function newest({ times, values }) {
  for (let i = values.length - 1; i >= 0; i--) if (isNumber(values[i])) return [times[i], values[i]];
  return [];
}

// summary returns {last, least, greatest, mean} of a group's numbers from one time to another, all
// null if there are none.
export function summary({ times, values }, [from, to]) {
  const numbers = values.filter((v, i) => isNumber(v) && times[i] >= from && times[i] <= to).map(Number);
  if (numbers.length === 0) return { last: null, least: null, greatest: null, mean: null };
  let [least, greatest, sum] = [Infinity, -Infinity, 0];
  for (const v of numbers) [least, greatest, sum] = [Math.min(least, v), Math.max(greatest, v), sum + v];
  return { last: numbers.at(-1), least, greatest, mean: sum / numbers.length };
}

// ways are those by which lines are ranked, as a document calls them: the field of summary, and its
// name.
export const ways = { last: { field: 'last', name: 'last value' }, max: { field: 'greatest', name: 'maximum' }, avg: { field: 'mean', name: 'mean' } };

// top returns the n lines that are the greatest by one of ways, in the order in which they came, and
// how many it leaves out. A line without a number in the range is behind all others.
export function top(lines, { n, by }, range) {
  if (lines.length <= n) return { lines, left: 0 };
  const rank = lines.map((l, i) => ({ i, v: summary(l.group, range)[ways[by].field] }));
  rank.sort((a, b) => (a.v === null) - (b.v === null) || b.v - a.v || a.i - b.i);
  const kept = new Set(rank.slice(0, n).map(({ i }) => i));
  return { lines: lines.filter((_, i) => kept.has(i)), left: lines.length - n };
}

// sorted is a list of rows, {label} with the fields of summary, by one of them; the rows without a
// number come last, whichever way it goes.
export function sorted(rows, { by, down }) {
  const way = down ? -1 : 1;
  const missing = (r) => r[by] === null;
  return [...rows].sort((a, b) => (by === 'label'
    ? way * a.label.localeCompare(b.label, 'en', { numeric: true })
    : missing(a) - missing(b) || (missing(a) ? 0 : way * (a[by] - b[by])) || a.label.localeCompare(b.label, 'en', { numeric: true })));
}

// chosen are the rows whose labels hold all words of a text, and of these the first n by an order, 0 for all. An order
// by names, or none, is one by the last value.
export function chosen(rows, { only = '', most = 0 }, order) {
  const words = only.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = rows.filter(({ label }) => words.every((w) => label.toLowerCase().includes(w)));
  if (most === 0 || fitting.length <= most) return fitting;
  const kept = new Set(sorted(fitting, order.by && order.by !== 'label' ? order : { by: 'last', down: true }).slice(0, most));
  return fitting.filter((r) => kept.has(r));
}
