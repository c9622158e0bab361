// One panel of a dashboard: what it asks while it is in view, and how it is drawn. Whatever a
// document holds becomes text here, never markup.

import { Chart } from '../chart.js';
import { Looks, toColumns } from '../columns.js';
import { clock, exact, plural, value } from '../format.js';
import { Legend } from '../legend.js';
import { css, lineStyle } from '../look.js';
import { describe } from '../messages.js';
import { Questions } from '../questions.js';
import { windowOf } from '../state.js';
import { Tooltip } from '../tooltip.js';
import { chartOf, types } from './document.js';
import { comparing } from './sharedfields.js';
import { Earlier, labelled, looksOf } from './shift.js';

const now = () => Date.now() / 1000;

// make returns an element with a class and a text.
export function make(tag, className = '', text = '') {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text) e.textContent = text;
  return e;
}

export class Panel {
  // board has live, notes(), and what a hand does: zoom(from, to), reset(), pause(), pan(by), read(text),
  // and mark(from, to) while mayMark().
  constructor(board) {
    this.board = board;
    this.element = make('section', 'panel');
    this.head = make('div', 'head');
    this.title = make('h2');
    this.tools = make('div', 'tools');
    this.said = make('p', 'said');
    this.body = make('div', 'body');
    this.head.append(this.title, this.tools);
    this.element.append(this.head, this.body, this.said);
    this.questions = new Questions(board.live, (fresh) => this.#redraw(fresh));
    this.earlier = new Earlier(board.live, (fresh) => this.#redraw(fresh));
    this.seen = false;
    this.lines = [];
    this.hide = new Set();
    this.fresh = true;
  }

  // show takes the panel's part of the document, and the state of the board: range, colours, and
  // what is chosen for the variables that its queries name.
  show(panel, view) {
    this.view = view;
    const text = JSON.stringify([{ ...panel, place: null }, view.chosen]);
    if (text !== this.text) {
      this.text = text;
      this.panel = panel;
      this.chart = panel.type in types && panel.type !== 'text' ? chartOf(panel, view.chosen) : { queries: [], formulas: [], log: false };
      this.#build();
    }
    this.panel = panel;
    this.#ask();
    this.#redraw(true);
  }

  // see says whether the panel is in view: only then it asks.
  see(seen) {
    if (seen === this.seen) return;
    this.seen = seen;
    this.#ask();
    this.#redraw(true);
  }

  close() {
    this.questions.close();
    this.earlier.close();
    this.drawing.close?.();
    this.element.remove();
    this.closed = true;
  }

  // move follows the time.
  move() {
    if (!this.seen || this.lines.length === 0) return;
    this.drawing.move?.(this.range());
    this.earlier.ask(this.#state(), this.#shift(), now());
    if (this.earlier.due(now())) this.#redraw(true);
  }

  // again draws what has changed beside the lines, as annotations do.
  again() { this.#redraw(true); }

  range() { return this.view.zoom || windowOf(this.view, now()); }

  #state() { return { ...this.view, queries: this.chart.queries, formulas: this.chart.formulas, log: this.chart.log }; }

  #ask() {
    if (!this.view) return;
    if (this.seen) {
      this.questions.ask(this.#state(), now());
      this.earlier.ask(this.#state(), this.#shift(), now());
    } else {
      this.questions.close();
      this.earlier.close();
    }
  }

  #shift() { return comparing.has(this.panel.type) ? this.panel.shift ?? this.view.shift : ''; }

  #build() {
    this.drawing?.close?.();
    this.body.replaceChildren();
    const title = this.panel.title || this.chart.queries.map((q) => q.metric).filter(Boolean).join(', ') || (this.panel.type === 'text' ? '' : this.panel.type);
    this.title.textContent = title;
    this.title.hidden = title === '';
    this.element.setAttribute('aria-label', title || 'Text');
    this.element.dataset.type = this.panel.type in types ? this.panel.type : 'unknown';
    const Drawing = { lines: Lines, number: Single, table: Table, text: Text }[this.panel.type] ?? Unknown;
    this.drawing = new Drawing(this);
  }

  // redraw draws in the next frame, however often it is called.
  #redraw(fresh) {
    this.fresh ||= fresh;
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => { this.due = false; if (!this.closed) this.draw(); });
  }

  draw() {
    // Out of view there is nothing to draw; what was drawn last stays.
    if (!this.seen || !this.view) return;
    const waiting = this.questions.everything().some((e) => !e.answered && !e.error);
    if (this.fresh) {
      const lines = [...this.questions.lines(this.#state()), ...this.earlier.lines(Math.min(now(), this.range()[1]))];
      if (!waiting || lines.length > 0) this.lines = lines;
      labelled(this.lines);
      this.drawing.draw(this.lines, this);
      this.fresh = false;
    }
    this.element.toggleAttribute('data-stale', waiting && this.lines.length > 0);
    this.say();
  }

  // say tells what is wrong with this panel, below it. That the connection is lost is told once,
  // at the top.
  say() {
    const said = this.#said();
    if (this.said.textContent !== said.text) this.said.textContent = said.text;
    this.said.dataset.kind = this.kind = said.kind;
  }

  #said() {
    if (this.panel.type === 'text' || !(this.panel.type in types)) return { kind: 'still', text: '' };
    if (this.chart.waiting) return { kind: 'idle', text: this.panel.short || this.chart.fault };
    if (this.chart.fault) return { kind: 'error', text: this.chart.fault };
    const told = describe({ connection: null, queries: this.questions.ofQueries(this.#state()), pause: null });
    if (told.kind === 'idle') return { kind: 'idle', text: 'No query yet.' };
    const formula = this.questions.ofFormulas().find((f) => ['error', 'unknown', 'toomany', 'nodata'].includes(f.kind));
    const worst = ['live', 'complete', 'connecting'].includes(told.kind) && formula ? formula : told;
    const fine = ['live', 'complete', 'connecting'].includes(worst.kind);
    return { kind: worst.kind, text: fine ? this.earlier.said() || (this.panel.short ?? '') : worst.text };
  }
}

// Lines are the chart of the page, with its legend.
class Lines {
  constructor(owner) {
    const { board, body } = owner;
    this.owner = owner;
    this.looks = new Looks();
    this.place = make('div', 'chart');
    this.place.tabIndex = 0;
    for (const [k, v] of [['role', 'group'], ['aria-roledescription', 'line chart'], ['aria-describedby', 'keys']]) this.place.setAttribute(k, v);
    const list = make('ul', 'legend');
    list.setAttribute('aria-label', 'Lines');
    body.append(this.place, list);
    this.tooltip = new Tooltip(this.place, () => {});
    this.chart = new Chart(this.place, {
      onZoom: (from, to) => board.zoom(from, to), onReset: () => board.reset(), onPause: () => board.pause(), onPin: () => {},
      onRead: (text) => board.read(text), onDraw: () => {},
      onPan: (by) => board.pan(by), onMark: (from, to) => board.mark(from, to), mayMark: () => board.mayMark(),
      onCursor: (c) => { this.cursor = c; this.#showCursor(); },
    }, 'board');
    this.legend = new Legend(list, (label, alone) => this.#toggle(label, alone), (label) => this.chart.emphasise(label));
    this.picture = null;
  }

  draw(lines, owner) {
    const names = lines.map((l) => l.label);
    const { log } = owner.chart;
    this.picture = {
      labels: names, looks: looksOf(this.looks, lines), sides: lines.map((l) => l.right), range: owner.range(), hidden: owner.hide, notes: owner.board.notes(), pins: [],
      data: toColumns(lines.map((l) => ({ times: l.group.times, values: l.group.values, step: l.step })), log), log, zone: owner.view.tz, theme: owner.view.theme,
    };
    this.place.setAttribute('aria-label', `${owner.title.textContent}, ${plural(names.length, 'line')}`);
    this.place.toggleAttribute('data-empty', this.picture.data[0].length === 0);
    this.chart.draw(this.picture);
    this.legend.draw(this.picture);
    this.#showCursor();
  }

  move(range) {
    if (this.picture) this.chart.move(range);
  }

  close() { this.chart.close(); }

  // showCursor tells the values at the one cross hair in every legend, and beside the hand only
  // where it is.
  #showCursor() {
    if (!this.picture) return;
    this.legend.values(this.picture.data, this.cursor);
    this.tooltip.show(this.place.matches(':hover, :focus') ? this.cursor : null, this.picture);
  }

  #toggle(label, alone) {
    const { hide } = this.owner;
    const others = this.picture.labels.filter((n) => n !== label);
    const isAlone = others.every((n) => hide.has(n)) && !hide.has(label);
    if (alone) {
      hide.clear();
      if (!isAlone) others.forEach((n) => hide.add(n));
    } else if (!hide.delete(label)) hide.add(label);
    this.draw(this.owner.lines, this.owner);
  }
}

// newest is the last point of a group that is a number, [time, value] or nothing.
function newest({ times, values }) {
  for (let i = values.length - 1; i >= 0; i--) if (isNumber(values[i])) return [times[i], values[i]];
  return [];
}

const isNumber = (v) => v !== null && !Number.isNaN(v);

const svg = 'http://www.w3.org/2000/svg';

// Single is the last value of the first line, over a spark line of it.
class Single {
  constructor(owner) {
    this.owner = owner;
    const { body } = owner;
    this.number = make('p', 'number', '–');
    this.name = make('p', 'name');
    this.picture = document.createElementNS(svg, 'svg');
    for (const [k, v] of [['class', 'spark'], ['viewBox', '0 0 100 30'], ['preserveAspectRatio', 'none'], ['aria-hidden', 'true']]) this.picture.setAttribute(k, v);
    body.append(this.number, this.name, this.picture);
  }

  draw(lines, owner) {
    const [first] = lines;
    const [at, last] = first ? newest(first.group) : [];
    this.number.textContent = last === undefined ? '–' : value(Number(last));
    this.number.title = last === undefined ? '' : exact(last);
    const which = lines.length > 1 ? `${first.label}, and ${plural(lines.length - 1, 'other line')}, ` : '';
    this.name.textContent = last === undefined ? '' : `${which}at ${clock(Math.floor(at), owner.view.tz)}`;
    const path = document.createElementNS(svg, 'path');
    path.setAttribute('d', first ? spark(first.group, owner.range()) : '');
    this.picture.replaceChildren(path);
  }

  // move follows the time: what was drawn would stand still otherwise.
  move() { this.draw(this.owner.lines, this.owner); }
}

// spark is the path of a line in a box of 100 by 30; it breaks where there is no number.
function spark({ times, values }, [from, to]) {
  const numbers = values.filter(isNumber).map(Number).filter(Number.isFinite);
  const [low, high] = numbers.reduce(([l, h], v) => [Math.min(l, v), Math.max(h, v)], [Infinity, -Infinity]);
  let [path, pen] = ['', 'M'];
  times.forEach((t, i) => {
    const v = isNumber(values[i]) ? Number(values[i]) : NaN;
    if (!Number.isFinite(v) || t < from) { pen = 'M'; return; }
    const y = high === low ? 15 : 28 - (26 * (v - low)) / (high - low);
    path += `${pen}${((100 * (t - from)) / (to - from)).toFixed(2)} ${y.toFixed(2)}`;
    pen = 'L';
  });
  return path;
}

// Table has a row for each line: its last, least, greatest and mean value.
class Table {
  constructor({ body, title }) {
    const box = make('div', 'scroll');
    box.tabIndex = 0;
    box.setAttribute('role', 'region');
    box.setAttribute('aria-label', `Table ${title.textContent}`);
    const table = make('table');
    const row = make('tr');
    for (const name of ['Line', 'Last', 'Least', 'Greatest', 'Mean']) {
      const cell = make('th', '', name);
      cell.scope = 'col';
      row.append(cell);
    }
    const head = make('thead');
    head.append(row);
    this.rows = make('tbody');
    table.append(head, this.rows);
    box.append(table);
    body.append(box);
  }

  draw(lines) {
    this.rows.replaceChildren(...lines.map((l) => {
      const numbers = l.group.values.filter(isNumber).map(Number);
      const [, last] = newest(l.group);
      const sum = numbers.reduce((a, b) => a + b, 0);
      const [least, greatest] = numbers.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
      const row = make('tr');
      row.append(make('td', '', l.label), ...(numbers.length > 0 ? [Number(last), least, greatest, sum / numbers.length] : [null, null, null, null]).map((v) => make('td', '', value(v))));
      return row;
    }));
  }
}

class Text {
  constructor({ body, panel }) {
    const text = make('p', 'text', panel.text ?? '');
    text.tabIndex = 0; // a long one is scrolled by keys
    body.append(text);
  }

  draw() {}
}

// Unknown stands for what a later release may draw. It stays in the document as it is.
class Unknown {
  constructor({ body, panel }) { body.append(make('p', 'text', `Unknown panel: this release does not draw “${panel.type}”. It is kept as it is.`)); }

  draw() {}
}
