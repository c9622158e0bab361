// How lines look: the colours of app.css first, then dashes. Look 9 is the first
// colour again, dashed; no two of 32 lines are told apart by colour alone.

import { drawn } from './element.js';

const colours = 8;
const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

export function lineStyle(look) {
  const whole = Math.floor(look);
  const dash = dashes[Math.floor(whole / colours) % dashes.length];
  return look === whole ? { colour: `--c${whole % colours}`, dash, alpha: 1 } : { colour: `--c${whole % colours}`, dash: [3, 4], alpha: 0.6 };
}

// ofEarlier is the look of the same line at an earlier time: paler, and dashed.
export const ofEarlier = (look) => look + 0.5;

let probe = null; // an element under app.css

// known are the colours that css has found in this task: to look one up has the browser work out
// all styles that have changed.
const known = new Map();
let dark = null;

// colouredBy says which element css asks: in a page of ours it is that called probe.
export const colouredBy = (element) => { probe = element; known.clear(); };

// css is a colour of app.css as the canvas takes it: light-dark() is resolved
// only where a property is used.
export function css(name) {
  probe ??= document.getElementById('probe');
  dark ??= matchMedia('(prefers-color-scheme: dark)');
  const key = `${document.documentElement.dataset.theme ?? ''} ${dark.matches} ${name}`;
  if (known.size === 0) setTimeout(() => known.clear());
  if (!known.has(key)) {
    probe.style.color = `var(${name})`;
    known.set(key, getComputedStyle(probe).color);
  }
  return known.get(key);
}

// pale is a colour that css returned, as clear as alpha says.
export const pale = (colour, alpha) => colour.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);

// sample is a short piece of the line.
export function sample(look) {
  const { colour, dash, alpha } = lineStyle(look);
  const picture = drawn('svg', { width: 22, height: 8, 'aria-hidden': 'true' });
  picture.append(drawn('line', { x1: 0, x2: 22, y1: 4, y2: 4, stroke: `var(${colour})`, 'stroke-width': 2.5, 'stroke-dasharray': dash.join(' '), 'stroke-opacity': alpha }));
  return picture;
}
