// What the lines are at the cursor's time, beside the cursor; and the same at
// pinned times, which stay until they are closed.

import { between, exact, time, value } from './format.js';
import { nearest } from './columns.js';
import { sample } from './look.js';

const rows = 12; // lines in a tooltip at most: those nearest to the cursor
const near = 8;  // px from an annotation at which it is told

export class Tooltip {
  // onUnpin(time)
  constructor(element, onUnpin) {
    this.element = element;
    this.onUnpin = onUnpin;
    this.pins = new Map(); // time -> box
    this.box = box('tooltip');
    this.box.setAttribute('aria-hidden', 'true'); // keys read the points aloud
    this.box.hidden = true;
    element.append(this.box);
  }

  // show follows the cursor, null hides it.
  show(cursor, picture) {
    const told = this.box.hidden ? '' : this.box.textContent;
    this.box.hidden = !cursor || picture.labels.length === 0 || cursor.time === undefined;
    if (this.box.hidden) return;
    const { plot, time: t, places, left, top } = cursor;
    const content = contents(plot, picture, t, (s) => places[s], top);
    if (content.text !== told) this.box.replaceChildren(...content.nodes());
    place(this.box, plot, left, top + 14);
  }

  // pin shows a box at each of the times.
  pin(times, plot, picture) {
    for (const [t, b] of this.pins) {
      if (times.includes(t)) continue;
      b.remove();
      this.pins.delete(t);
    }
    const taken = [];
    for (const t of times) this.#pinned(t, taken, plot, picture);
  }

  // pinned avoids the boxes that have been placed.
  #pinned(t, taken, plot, picture) {
    if (!this.pins.has(t)) this.#add(t, picture.zone);
    const b = this.pins.get(t);
    const left = plot.valToPos(t, 'x');
    b.hidden = left < 0 || left > plot.over.clientWidth || picture.data[0].length === 0;
    if (b.hidden) return;
    const i = plot.valToIdx(t);
    const content = contents(plot, picture, t, (s) => nearest(picture.data[0], picture.data[s], i), null);
    if (b.dataset.text !== content.text) {
      b.dataset.text = content.text;
      b.lastChild.replaceChildren(...content.nodes());
    }
    place(b, plot, left, 6);
    for (const other of taken) {
      const aside = b.offsetLeft > other.offsetLeft + other.offsetWidth || other.offsetLeft > b.offsetLeft + b.offsetWidth;
      if (!aside) place(b, plot, left, other.offsetTop - plot.over.offsetTop + other.offsetHeight + 4);
    }
    taken.push(b);
  }

  #add(t, zone) {
    const b = box('tooltip pinned');
    const close = document.createElement('button');
    close.type = 'button';
    close.textContent = '×';
    close.setAttribute('aria-label', `Unpin ${time(t, zone)}`);
    close.addEventListener('click', () => { this.onUnpin(t); this.element.focus(); });
    b.append(close, document.createElement('div'));
    this.element.append(b);
    this.pins.set(t, b);
  }
}

function box(className) {
  const b = document.createElement('div');
  b.className = className;
  return b;
}

// contents are the text, to see whether it has changed, and the nodes of it.
function contents(plot, { labels, looks, sides, data, hidden, notes, zone, units = [], style, sampleOf }, t, placeOf, top) {
  let lines = labels.map((label, i) => {
    const place = placeOf(i + 1);
    const v = data[i + 1][place];
    const far = v == null || top === null ? Infinity : Math.abs(plot.valToPos(plot.data[i + 1][place], sides[i] ? 'y2' : 'y') - top);
    const unit = style?.counts ? 'none' : units[Number(sides[i])] ?? 'none';
    return { label, look: looks[i], v, far, said: unit === 'none' ? exact(short(v)) : value(v, unit, 7), sampleOf };
  }).filter((l) => !hidden.has(l.label) && l.v !== undefined);
  const closest = Math.min(...lines.map((l) => l.far));
  const all = lines.length;
  if (all > rows) lines = lines.sort((a, b) => a.far - b.far).slice(0, rows);
  lines.sort((a, b) => (b.v ?? -Infinity) - (a.v ?? -Infinity));
  const x = plot.valToPos(t, 'x');
  const told = notes.filter((n) => Math.abs(plot.valToPos(n.time, 'x') - x) < near).map((n) => n.text);
  const more = all > rows ? `${all - rows} more` : '';
  const when = style?.span ? between(t, style.span, zone) : time(t, zone);
  const text = [when, ...lines.flatMap((l) => [l.label, l.said]), more, ...told].join('');
  return { text, nodes: () => [words('time', when), ...lines.map((l) => line(l, l.far === closest && closest < Infinity)), ...[more, ...told].filter(Boolean).map((s) => words('note', s))] };
}

const short = (v) => (typeof v === 'number' ? Number(v.toPrecision(7)) : v);

function line({ label, look, v, said, sampleOf = sample }, closest) {
  const row = document.createElement('div');
  row.className = closest ? 'row closest' : 'row';
  row.append(sampleOf(look, v), words('name', label), words('value', said));
  return row;
}

function words(className, text) {
  const s = document.createElement(className === 'name' || className === 'value' ? 'span' : 'div');
  s.className = className;
  s.textContent = text;
  return s;
}

// place puts a box right of a point of the plot, or left where there is no room.
function place(b, plot, left, top) {
  const { offsetLeft: x, offsetTop: y, clientWidth: width, clientHeight: height } = plot.over;
  const fits = left + b.offsetWidth + 16 < width;
  b.style.left = `${Math.max(0, x + (fits ? left + 12 : left - b.offsetWidth - 12))}px`;
  b.style.top = `${y + Math.max(0, Math.min(top, height - b.offsetHeight))}px`;
}
