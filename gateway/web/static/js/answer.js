// One live answer: the groups of a snapshot, kept up to date by deltas.
// A group's times, in seconds, ascend; a value is a number, NaN, null for "no
// value", or a BigInt where a double would not hold the integer.

export class Answer {
  constructor() {
    this.groups = new Map(); // index -> {metric, tags, aggregateTags, queryIndex, times, values}
  }

  apply(message) {
    if (message.type === 'snapshot') this.#snapshot(message);
    else this.#delta(message);
  }

  get points() {
    let n = 0;
    for (const g of this.groups.values()) n += g.times.length;
    return n;
  }

  #snapshot({ results }) {
    this.groups = new Map(results.map((r, i) => [i, describe(r, r.dps.map((p) => seconds(p[0])), r.dps.map((p) => number(p[1])))]));
  }

  #delta({ groups = [], removed = [], upserts = [], deletes = [] }) {
    for (const g of groups) {
      const old = this.groups.get(g.group);
      this.groups.set(g.group, describe(g, old ? old.times : [], old ? old.values : []));
    }
    for (const i of removed) this.groups.delete(i);
    for (const u of upserts) upsert(this.groups.get(u.group), u.dps);
    for (const d of deletes) drop(this.groups.get(d.group), d.ts);
  }
}

// An integer of so many digits may lie beyond 2^53. The digits of a fraction, of which averages
// have as many, are none.
const longInteger = /(?<![.\d])\d{16,}(?![.\deE])/;

// parse reads a message. An integer beyond 2^53 becomes a BigInt where the
// browser gives the digits; looking for one first keeps the usual case fast, several times.
export function parse(text) {
  if (!longInteger.test(text)) return JSON.parse(text);
  return JSON.parse(text, (key, v, context) => (typeof v === 'number' && !Number.isSafeInteger(v) && /^-?\d+$/.test(context?.source) ? BigInt(context.source) : v));
}

const describe = ({ queryIndex, metric, tags, aggregateTags }, times, values) => ({ queryIndex, metric, tags, aggregateTags, times, values });

const seconds = (t) => (t > 1e11 ? t / 1000 : t); // of msResolution

const number = (v) => (v === null || typeof v === 'bigint' ? v : Number(v)); // "NaN", "Infinity" too

// upsert appends what is newer, which most of it is, and merges the rest.
function upsert(group, dps) {
  if (!group) return;
  const { times, values } = group;
  const late = [];
  for (const [ts, v] of dps) {
    const t = seconds(ts);
    const n = times.length;
    if (n === 0 || t > times[n - 1]) {
      times.push(t);
      values.push(number(v));
    } else late.push([t, number(v)]);
  }
  if (late.length > 0) merge(group, new Map(late));
}

function merge(group, late) {
  const all = new Map(group.times.map((t, i) => [t, group.values[i]]));
  for (const [t, v] of late) all.set(t, v);
  group.times = [...all.keys()].sort((a, b) => a - b);
  group.values = group.times.map((t) => all.get(t));
}

function drop(group, ts) {
  if (!group) return;
  const gone = new Set(ts.map(seconds));
  const keep = group.times.map((t) => !gone.has(t));
  group.values = group.values.filter((_, i) => keep[i]);
  group.times = group.times.filter((_, i) => keep[i]);
}

// indexOf is the place of a time in a group, -1 where it has no point then.
export function indexOf({ times }, t) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < t) low = middle + 1;
    else high = middle;
  }
  return times[low] === t ? low : -1;
}
