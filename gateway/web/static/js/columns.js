// Groups as the columns that uPlot draws: one row of times, one of values for
// each group. In a row of values, null breaks the line and undefined does not:
// the group just has no point at a time that another has.

// breakAfter is how many times a group's usual step may pass before the line
// breaks: one missing point is a hiccup, two are a gap. Where the step is
// known, from a downsample, one missing point is a gap.
const breakAfter = 2.5;
const breakAfterStep = 1.5;

// A group may have a step, in s; others are measured. With positive, only what
// has a place on a log axis is kept.
export function toColumns(groups, positive = false) {
  const marked = groups.map((g) => withBreaks(g, positive));
  const times = [...new Set(marked.flatMap((m) => m.times))].sort((a, b) => a - b);
  const place = new Map(times.map((t, i) => [t, i]));
  const rows = marked.map((m) => {
    const row = new Array(times.length).fill(undefined);
    m.times.forEach((t, i) => { row[place.get(t)] = m.values[i]; });
    // A break lasts until the next point, also where only others have points.
    for (let i = 1; i < row.length; i++) if (row[i] === undefined && row[i - 1] === null) row[i] = null;
    return row;
  });
  return [times, ...rows];
}

// withBreaks adds a null where a group's points stop coming for a while, and
// makes null of what cannot be drawn.
export function withBreaks({ times, values, step }, positive = false) {
  const usual = step || usualStep(times);
  const longest = usual * (step ? breakAfterStep : breakAfter);
  const out = { times: [], values: [] };
  times.forEach((t, i) => {
    if (i > 0 && t - times[i - 1] > longest) {
      out.times.push(times[i - 1] + usual);
      out.values.push(null);
    }
    const v = values[i] === null ? NaN : Number(values[i]);
    out.times.push(t);
    out.values.push(Number.isFinite(v) && (!positive || v > 0) ? v : null);
  });
  return out;
}

// usualStep is the median distance of neighbours.
export function usualStep(times) {
  const steps = [];
  for (let i = Math.max(1, times.length - 1000); i < times.length; i++) steps.push(times[i] - times[i - 1]);
  steps.sort((a, b) => a - b);
  return steps.length < 3 ? Infinity : steps[steps.length >> 1];
}

// alone lists the places of points between two breaks, which no line reaches.
export function alone(row) {
  const at = (i) => row[i] === undefined ? 'none' : row[i] === null ? 'break' : 'point';
  const neighbour = (i, by) => {
    do i += by; while (at(i) === 'none' && i >= 0 && i < row.length);
    return at(i);
  };
  return row.map((_, i) => i).filter((i) => at(i) === 'point' && neighbour(i, -1) !== 'point' && neighbour(i, 1) !== 'point');
}

// nearest is the place of a row's point that is closest to place i, so that one
// cursor reads lines whose points lie at different times. A break stays one.
export function nearest(times, row, i) {
  if (row[i] !== undefined) return i;
  let [left, right] = [i, i];
  while (left >= 0 && row[left] === undefined) left--;
  while (right < row.length && row[right] === undefined) right++;
  if (left < 0) return right < row.length ? right : i;
  if (right >= row.length) return left;
  return times[i] - times[left] <= times[right] - times[i] ? left : right;
}

// letter names the queries.
export const letter = (i) => String.fromCharCode(65 + i);

// withPercentile takes apart how the server names a line of percentiles, m_pct_99.9.
export function withPercentile(group) {
  const [, metric, percentile] = /^(.*)_pct_([\d.]+(?:E-?\d+)?)$/s.exec(group.metric) || [];
  return percentile === undefined ? group : { ...group, metric, percentile: `p${Number(percentile)}` };
}

// labels names each group by its percentile, by the tags in which it differs from the others of its metric, and by its query's
// letter where two queries would give the same name. One that has its metric for itself has the tags that were grouped
// by (grouped); a single one that does not say has all. One with an alias is named by that.
export function labels(groups) {
  const byMetric = new Map(groups.map((g) => [g.metric, []]));
  for (const g of groups) byMetric.get(g.metric).push(g);
  const varying = new Map([...byMetric].map(([metric, own]) => {
    const keys = [...new Set(own.flatMap((g) => Object.keys(g.tags)))].sort();
    return [metric, keys.filter((k) => new Set(own.map((g) => g.tags[k])).size > 1)];
  }));
  const metrics = byMetric.size > 1;
  const owns = groups.map((g) => {
    const alone = byMetric.get(g.metric).length === 1;
    const shown = alone ? Object.keys(g.tags).sort().filter((k) => g.grouped?.includes(k) ?? groups.length === 1) : varying.get(g.metric);
    const tags = shown.filter((k) => k in g.tags).map((k) => `${k}=${g.tags[k]}`).join(' ');
    return [g.percentile, tags].filter(Boolean).join(' ');
  });
  const natural = groups.map((g, i) => (metrics || !owns[i] ? `${g.metric} ${owns[i]}`.trim() : owns[i]));
  const aliases = groups.map((g, i) => (g.alias ? aliased(g) : natural[i]));
  // An alias that several lines share does not hide how these differ.
  const names = twice(aliases).map((more, i) => (more && groups[i].alias ? `${aliases[i]} ${owns[i]}`.trim() : aliases[i]));
  const lettered = twice(names).map((more, i) => (more && groups[i].letter ? `${groups[i].letter} ${names[i]}` : names[i]));
  return twice(lettered).map((more, i) => (more && groups[i].alias ? `${groups[i].letter ?? ''} ${natural[i]}`.trim() : lettered[i]));
}

// twice says of each name whether another one is equal.
function twice(names) {
  const times = new Map();
  for (const n of names) times.set(n, (times.get(n) ?? 0) + 1);
  return names.map((n) => times.get(n) > 1);
}

// aliased puts a group's own into an alias: {host} is its value of that tag, {metric} and {percentile} are those. What it
// does not have is nothing.
function aliased({ alias, metric, percentile = '', tags }) {
  const own = { metric, percentile };
  return alias.replace(/\{([^{}]+)\}/g, (_, key) => (Object.hasOwn(tags, key) ? tags[key] : Object.hasOwn(own, key) ? own[key] : '')).trim() || metric;
}

// Looks keeps the look of each line, a number, for as long as it is there: a
// group that comes or goes recolours no other.
export class Looks {
  #taken = new Map();

  assign(names) {
    const wanted = new Set(names);
    for (const n of this.#taken.keys()) if (!wanted.has(n)) this.#taken.delete(n);
    const used = new Set(this.#taken.values());
    let free = 0;
    return names.map((n) => {
      if (!this.#taken.has(n)) {
        while (used.has(free)) free++;
        used.add(free);
        this.#taken.set(n, free);
      }
      return this.#taken.get(n);
    });
  }
}
