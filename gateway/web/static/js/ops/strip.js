// Small pictures: points by second, stacked by source, and regions by the place where they are read.

import { drawn } from '../element.js';

const height = 56;

// stackOf returns, for lists of equal length that stand on each other, the path of each, in a box
// of their length by 1; top is the greatest sum.
export function stackOf(lists, top) {
  const base = lists[0].map(() => 0);
  return lists.map((list) => {
    let d = '';
    list.forEach((v, i) => {
      if (v > 0) d += `M${i} ${round(1 - base[i] / top)}h1V${round(1 - (base[i] + v) / top)}h-1z`;
      base[i] += v;
    });
    return d;
  });
}

const round = (v) => Number(v.toFixed(4));

// drawStack draws lists as bars by second; classes are how each looks, label says it in words.
export function drawStack(place, lists, classes, label) {
  const top = Math.max(1, ...lists[0].map((_, i) => lists.reduce((sum, l) => sum + l[i], 0)));
  const svg = drawn('svg', { viewBox: `0 0 ${lists[0].length || 1} 1`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label, height });
  stackOf(lists, top).forEach((d, i) => svg.append(drawn('path', { d, class: classes[i] })));
  place.replaceChildren(svg);
}

// drawRuns draws runs of regions, each as wide as it has regions.
export function drawRuns(place, runs, label) {
  const all = runs.reduce((sum, r) => sum + r.regions, 0);
  if (all === 0) return place.replaceChildren();
  const svg = drawn('svg', { viewBox: `0 0 ${all} 1`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label });
  let at = 0;
  for (const r of runs) {
    svg.append(drawn('rect', { x: at, y: 0, width: r.regions, height: 1, class: classOf(r.place) }));
    at += r.regions;
  }
  place.replaceChildren(svg);
}

// classOf is how a place looks; from the ninth on they share colours.
export const classOf = (place) => `p${place % 8}`;
