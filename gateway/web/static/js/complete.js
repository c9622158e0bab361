// What a tag may be called: first what the answer on screen and the metric's own
// series have, then what the server knows of any metric.

import { tagValues as valuesOf, suggest } from './api.js';

const shown = 40;
const listed = 2000;    // values of a key
const fresh = 30_000;   // ms for which they are remembered

// tagKeys suggests keys; known() are those of the answer.
export const tagKeys = (known) => async (q, signal) => union(match(known(), q), await suggest('tagk')(q, signal));

// tagValues suggests values of a key of a metric; of "a|b" the last is completed.
// about() is {metric, key}.
export function tagValues(about) {
  const remembered = { metric: '', key: '', at: 0, values: [], whole: false };
  const values = async (signal) => {
    const { metric, key } = about();
    if (remembered.metric !== metric || remembered.key !== key || Date.now() - remembered.at > fresh) {
      const found = metric && key ? await valuesOf(metric, key, [], listed, signal).catch((e) => nothing(e, signal)) : none;
      Object.assign(remembered, { metric, key, at: Date.now(), values: found.values, whole: found.values.length > 0 && !found.more });
    }
    return remembered;
  };
  return async (text, signal) => {
    const at = text.lastIndexOf('|') + 1;
    const [before, q] = [text.slice(0, at), text.slice(at)];
    const own = await values(signal);
    const found = own.whole ? first(match(own.values, q)) : union(match(own.values, q), await suggest('tagv')(q, signal));
    const offers = (before || q ? [] : ['*']).concat(found.map((v) => before + v));
    return Object.assign(offers, { more: found.more });
  };
}

const none = { values: [], more: false };

// Where none can be had, the names of all metrics have to do.
function nothing(error, signal) {
  if (signal.aborted) throw error;
  return none;
}

// match puts names that begin with q before those that hold it.
export function match(names, q) {
  const low = q.toLowerCase();
  const rank = (n) => { const i = n.toLowerCase().indexOf(low); return i < 0 ? 2 : Math.min(i, 1); };
  return names.filter((n) => rank(n) < 2).sort((a, b) => rank(a) - rank(b));
}

// first is the start of a list, with how many more there are.
const first = (names) => Object.assign(names.slice(0, shown), { more: Math.max(0, names.length - shown) });

// union puts names before those of a suggestion, which has more of its own.
function union(names, suggested) {
  const all = first([...new Set([...names, ...suggested])]);
  all.more += suggested.more;
  return all;
}
