// The canvas: uPlot with our colours, clock and keys. It draws what it is given
// and reports what the hand does; it knows neither queries nor sockets.

import uPlot from '../vendor/uplot/uPlot.esm.js';
import { axes, scales } from './axes.js';
import { alone, nearest } from './columns.js';
import * as format from './format.js';
import { css, lineStyle, pale } from './look.js';
import { moves } from './pixels.js';
import { bandsOf, colours } from './thresholds.js';

const dragged = 5; // px that make a drag of a click

export class Chart {
  // events: onZoom(from, to), onReset(), which says whether there was a zoom, onCursor(cursor or null), onPin(time),
  // onRead(text), onDraw(plot), onPan(s), and onMark(from, to) of a drag with Ctrl or Alt
  // while mayMark() is true. A cursor is {plot, time, places}:
  // for each row of the data, the place that it reads. Charts of one group have one cross hair.
  constructor(element, events, group = null) {
    this.element = element;
    this.group = group;
    this.events = events;
    this.picture = { labels: [], looks: [], sides: [], data: [[]], range: [0, 1], hidden: new Set(), notes: [], pins: [], log: false, zone: '', units: [], thresholds: [], style: null };
    this.shape = '';
    this.reading = 1;  // the line that the keys read
    this.at = null;    // the time that they have come to
    this.from = null;  // the time at which they have begun a stretch
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(element);
    this.dark = matchMedia('(prefers-color-scheme: dark)');
    this.recolour = () => this.#build();
    this.dark.addEventListener('change', this.recolour);
    element.addEventListener('keydown', (e) => this.#key(e));
  }

  // draw shows a picture: data as of columns.js over range, in seconds, and a name, a look and a
  // side for each line. units are of the left and the right axis, thresholds of thresholds.js.
  // style is one of paint.js; without one each line is a line.
  draw(picture) {
    this.picture = Object.assign(picture, { units: picture.units ?? [], limits: picture.limits ?? [], thresholds: picture.thresholds ?? [], style: picture.style ?? null });
    const { labels, looks, sides, log, zone, theme, units, limits, style, range, hidden } = this.picture;
    const shape = JSON.stringify([labels, looks, sides, log, zone, theme, units, limits, style?.name]);
    if (shape !== this.shape) {
      this.shape = shape;
      return this.#build();
    }
    labels.forEach((l, i) => {
      const show = !hidden.has(l);
      if (this.plot.series[i + 1].show !== show) this.plot.setSeries(i + 1, { show }, false);
    });
    this.plot.batch(() => {
      this.plot.setData(this.#drawn(), false);
      if (!this.panning) this.plot.setScale('x', { min: range[0], max: range[1] });
    });
    this.#keepReading();
  }

  // move shifts the range without new data, once that can be seen: to draw 200 lines takes long. A hand
  // that is moving it goes first.
  move(range) {
    if (this.panning || (this.plot && !moves(range, this.plot.scales.x, this.plot.bbox.width))) return;
    this.#place(range);
  }

  #place(range) {
    this.picture.range = range;
    this.plot?.setScale('x', { min: range[0], max: range[1] });
    this.#keepReading();
  }

  // emphasise pales the other lines; null ends it.
  emphasise(label) {
    const i = this.picture.labels.indexOf(label);
    this.plot?.setSeries(i < 0 ? null : i + 1, { focus: i >= 0 });
  }

  // close frees what the page would hold on to.
  close() {
    this.resized.disconnect();
    this.dark.removeEventListener('change', this.recolour);
    this.plot?.destroy();
  }

  get canvas() { return this.plot.ctx.canvas; }

  // drawn are the columns that uPlot gets: a style may put the lines elsewhere than their values
  // say.
  #drawn() { return this.picture.style?.drawn ?? this.picture.data; }

  #size() {
    return { width: Math.max(200, this.element.clientWidth), height: Math.max(160, this.element.clientHeight) };
  }

  // fit draws the chart again if its place has another size: the first call of an observer tells what
  // is known.
  fit() {
    const { width, height } = this.#size();
    if (this.plot && (width !== this.plot.width || height !== this.plot.height)) this.plot.setSize({ width, height });
  }

  #build() {
    this.plot?.destroy();
    this.plot = new uPlot(this.#options(), this.#drawn(), this.element);
    this.plot.root.setAttribute('aria-hidden', 'true'); // the table beside it is for reading
    this.#keepReading();
  }

  #options() {
    const { range, log, labels, sides, zone, units, limits, style } = this.picture;
    return {
      ...this.#size(),
      legend: { show: false },
      focus: { alpha: 0.2 },
      tzDate: (t) => (zone ? uPlot.tzDate(new Date(t * 1000), zone) : new Date(t * 1000)),
      cursor: {
        drag: { x: true, y: false, setScale: false, dist: dragged },
        points: { size: 7, show: !style?.exact },
        ...(this.group ? { sync: { key: this.group, scales: ['x', null], filters: { pub: (type) => /^mouse(move|leave)$/.test(type), sub: () => true } } } : {}),
        bind: { dblclick: () => () => this.events.onReset(), mousedown: (u, target, select) => (e) => { if (e.button === 0 && e.target === target) this.#down(u, e, select); } },
        dataIdx: (u, s, i) => (s === 0 || i === null || !u.data[s] || style?.exact ? i : nearest(u.data[0], this.picture.data[s], i)),
      },
      scales: scales(range, { log, zero: style?.zero, fixed: style?.fixed && (() => this.picture.style.fixed), limits }),
      axes: axes({ text: css('--faint'), grid: css('--grid'), tick: css('--line') }, { log, right: sides.some(Boolean), units, limits }),
      series: [{}, ...labels.map((label, i) => this.#line(label, i))],
      hooks: {
        setSelect: [(u) => this.#selected(u)],
        setCursor: [(u) => this.events.onCursor(cursorOf(u))],
        ready: [(u) => this.#clicks(u)],
        drawAxes: [(u) => this.#under(u)],
        draw: [(u) => { this.#over(u); this.events.onDraw(u); }],
      },
    };
  }

  #line(label, i) {
    const { looks, sides, hidden, style } = this.picture;
    const { colour, dash, alpha } = lineStyle(looks[i]);
    const stroke = css(colour);
    return {
      label, stroke, dash, alpha, width: 1.5, scale: sides[i] ? 'y2' : 'y', show: !hidden.has(label),
      // Where points are too dense to mark, those that no line reaches still are.
      points: { size: 5, fill: stroke, filter: (u, s, show) => (show ? null : alone(u.data[s])) },
      ...(style ? { ...style.line(stroke), paths: (u, s) => this.picture.style.paths(u, s - 1) } : {}),
    };
  }

  #selected(u) {
    const { left, width } = u.select;
    if (width < dragged) return;
    const [from, to] = [u.posToVal(left, 'x'), u.posToVal(left + width, 'x')];
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    if (this.marking) this.events.onMark(Math.floor(from), Math.ceil(to));
    else this.events.onZoom(Math.floor(from), Math.ceil(to));
  }

  // down begins a drag: of the range with Shift, else of a selection, which is a mark with Ctrl or Alt.
  #down(u, e, select) {
    if (e.shiftKey && this.events.onPan) return this.#pan(u, e);
    this.marking = (e.ctrlKey || e.altKey) && Boolean(this.events.mayMark?.());
    select(e);
  }

  #pan(u, { clientX }) {
    const { min, max } = u.scales.x;
    let by = 0;
    const move = (e) => {
      by = (clientX - e.clientX) * ((max - min) / u.over.clientWidth);
      this.#place([min + by, max + by]);
    };
    const up = () => {
      document.removeEventListener('mousemove', move);
      document.removeEventListener('mouseup', up);
      this.panning = false;
      this.#place([min, max]); // until the page has the new range, which may be none beyond now
      if (by !== 0) this.events.onPan(by);
    };
    this.panning = true;
    document.addEventListener('mousemove', move);
    document.addEventListener('mouseup', up);
  }

  // clicks are where the button comes up where it went down.
  #clicks(u) {
    let down = 0;
    u.over.addEventListener('mousedown', (e) => { down = e.clientX; this.at = this.from = null; });
    u.over.addEventListener('click', (e) => {
      const t = u.data[0][u.cursor.idx];
      if (Math.abs(e.clientX - down) < dragged && t !== undefined) this.events.onPin(t); // twice, as in a double click, is nothing
    });
  }

  // under draws what lies under the lines: the bands of thresholds, what a style has there,
  // annotations and pinned times.
  #under(u) {
    const { notes, pins, thresholds, style } = this.picture;
    u.ctx.save();
    for (const side of sidesOf(u, thresholds)) band(u, side);
    style?.under?.(u);
    for (const { time, end } of notes) {
      if (end > time) shade(u, time, end, css('--note'));
      mark(u, time, css('--note'), true);
    }
    for (const time of pins) mark(u, time, css('--accent'), false);
    u.ctx.restore();
  }

  // over draws what must be seen whatever the lines do.
  #over(u) {
    const { thresholds, units } = this.picture;
    u.ctx.save();
    for (const side of sidesOf(u, thresholds)) limit(u, side, units[Number(side.right)]);
    u.ctx.restore();
  }

  #key(e) {
    if (e.target !== this.element) return; // a button in it
    if (e.key === 'Escape') {
      const reading = this.at !== null;
      this.at = null;
      this.#mark(null);
      this.plot?.setCursor({ left: -10, top: -10 });
      if (this.events.onReset() || reading) e.preventDefault();
      return;
    }
    if (e.key === 'Enter' && this.at !== null) return this.events.onPin(this.at);
    if (e.key === ' ' && this.at !== null) {
      e.preventDefault();
      return this.#stretch();
    }
    if (e.shiftKey && ['ArrowLeft', 'ArrowRight'].includes(e.key) && this.events.onPan) {
      e.preventDefault();
      const [from, to] = this.picture.range;
      return this.events.onPan((e.key === 'ArrowLeft' ? -1 : 1) * (to - from) / 4);
    }
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity, ArrowUp: 0, ArrowDown: 0 }[e.key];
    if (step === undefined || !this.plot || this.picture.labels.length === 0 || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    if (step === 0) this.#turn(e.key === 'ArrowDown' ? 1 : -1);
    this.#read(step);
  }

  // stretch begins one at the point that is read, or ends it there and zooms into it.
  #stretch() {
    const [from, to] = [Math.min(this.from, this.at), Math.max(this.from, this.at)];
    if (this.from === null) {
      this.#mark(this.at);
      this.events.onRead(`From ${format.time(this.at, this.picture.zone)}`);
    } else if (to > from) {
      this.#mark(null);
      this.at = null;
      this.events.onZoom(Math.floor(from), Math.ceil(to));
    }
  }

  // mark shows the stretch that begins at a time, none for null.
  #mark(from) {
    const shown = this.from !== null;
    this.from = from;
    if (!this.plot || (from === null && !shown)) return;
    const [left, right] = from === null ? [0, 0] : [from, this.at].map((t) => this.plot.valToPos(t, 'x')).sort((a, b) => a - b);
    this.plot.setSelect({ left, width: right - left, top: 0, height: from === null ? 0 : this.plot.over.clientHeight }, false);
  }

  #turn(by) {
    const n = this.picture.labels.length;
    for (let i = 0; i < n; i++) {
      this.reading = ((this.reading - 1 + by + n) % n) + 1;
      if (this.plot.series[this.reading].show) return;
    }
  }

  // read moves the cursor to a neighbouring point of the line and says it.
  #read(step) {
    const { labels, data, range, zone, sides, units, style } = this.picture;
    if (this.reading > labels.length) this.reading = 1;
    if (!this.plot.series[this.reading].show) this.#turn(1);
    const [times, row] = [data[0], data[this.reading]];
    const here = times.map((_, i) => i).filter((i) => row[i] != null && times[i] >= range[0] && times[i] <= range[1]);
    if (here.length === 0) return;
    const place = this.at === null ? here.length : here.findIndex((i) => times[i] >= this.at);
    const from = place < 0 ? here.length : place;
    const i = here[Math.min(here.length - 1, Math.max(0, from + step))];
    this.at = times[i];
    this.#keepReading();
    const said = format.value(row[i], style?.counts ? 'none' : units[Number(sides[this.reading - 1])]);
    this.events.onRead(`${labels[this.reading - 1]}: ${said} at ${style?.span ? format.between(times[i], style.span, zone) : format.time(times[i], zone)}`);
  }

  // keepReading holds the cursor on its point while the chart moves on.
  #keepReading() {
    if (this.at === null || !this.plot) return;
    const i = this.picture.data[0].indexOf(this.at);
    const v = this.picture.data[this.reading]?.[i];
    const left = this.plot.valToPos(this.at, 'x');
    if (v == null || left < 0) {
      this.at = null;
      this.#mark(null);
      return this.plot.setCursor({ left: -10, top: -10 });
    }
    this.plot.setCursor({ left, top: this.plot.valToPos(this.#drawn()[this.reading][i], this.picture.sides[this.reading - 1] ? 'y2' : 'y') });
    if (this.from !== null) this.#mark(this.from);
  }
}

// shade is a stretch of time.
function shade({ ctx, bbox, valToPos }, from, to, colour) {
  const [left, right] = [from, to].map((t) => Math.min(bbox.left + bbox.width, Math.max(bbox.left, valToPos(t, 'x', true))));
  ctx.fillStyle = colour;
  ctx.globalAlpha = 0.1;
  ctx.fillRect(left, bbox.top, right - left, bbox.height);
  ctx.globalAlpha = 1;
}

// mark is a vertical line; an annotation's is dashed and has a flag.
function mark({ ctx, bbox, valToPos }, time, colour, flag) {
  const ratio = devicePixelRatio;
  const x = Math.round(valToPos(time, 'x', true));
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.lineWidth = ratio;
  ctx.setLineDash(flag ? [4 * ratio, 3 * ratio] : []);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  if (!flag) return;
  ctx.beginPath();
  ctx.moveTo(x - 5 * ratio, bbox.top);
  ctx.lineTo(x + 5 * ratio, bbox.top);
  ctx.lineTo(x, bbox.top + 7 * ratio);
  ctx.fill();
}

// sidesOf are the axes that have thresholds in view, {right, bands, y, key, shared}: where both have
// some they share the ground, each has the half at which its values are written.
function sidesOf({ scales }, thresholds) {
  const sides = [false, true].map((right) => {
    const key = right ? 'y2' : 'y';
    const y = scales[key];
    return { right, key, y, bands: bandsOf(thresholds, right).filter(({ from, to }) => y.min != null && to > y.min && from < y.max) };
  }).filter(({ bands }) => bands.length > 0);
  return sides.map((side) => ({ ...side, shared: sides.length > 1 }));
}

// band tints the ground between thresholds of an axis, each in its own colour.
function band({ ctx, bbox, valToPos }, { right, bands, y, key, shared }) {
  const [left, width] = shared ? [bbox.left + (right ? bbox.width / 2 : 0), bbox.width / 2] : [bbox.left, bbox.width];
  for (const { from, to, colour } of bands) {
    const [low, high] = [Math.max(from, y.min), Math.min(to, y.max)].map((v) => valToPos(v, key, true));
    ctx.fillStyle = pale(css(colours[colour]), 0.1);
    ctx.fillRect(left, high, width, low - high);
  }
}

// limit draws the line of each threshold of an axis, with its value: no colour says it alone.
function limit({ ctx, bbox, valToPos }, { right, bands, y, key, shared }, unit) {
  const ratio = devicePixelRatio;
  const left = shared && !right;
  for (const { from, colour } of bands) {
    if (from <= y.min) continue;
    const at = Math.round(valToPos(from, key, true));
    ctx.strokeStyle = ctx.fillStyle = css(colours[colour]);
    ctx.lineWidth = ratio;
    ctx.setLineDash([6 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, at);
    ctx.lineTo(bbox.left + bbox.width, at);
    ctx.stroke();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    [ctx.textAlign, ctx.textBaseline] = [left ? 'left' : 'right', 'bottom'];
    const text = [`≥ ${format.value(from, unit)}`, bbox.left + (left ? 4 * ratio : bbox.width - 4 * ratio), at - 3 * ratio];
    ctx.setLineDash([]); // a rim in the colour of the ground: what lies below may be of any
    [ctx.strokeStyle, ctx.lineWidth, ctx.lineJoin] = [css('--panel'), 3 * ratio, 'round'];
    ctx.strokeText(...text);
    ctx.fillText(...text);
  }
}

function cursorOf(u) {
  const { idx, idxs, left, top } = u.cursor;
  if (idx === null || idx === undefined || left < 0) return null;
  return { plot: u, time: u.data[0][idx], places: idxs, left, top };
}
