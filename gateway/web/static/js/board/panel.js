// One panel of a dashboard: what it asks while it is in view, and how it is drawn. Whatever a
// document holds becomes text here, never markup.

import { merged } from '../about.js';
import { drawn, make } from '../element.js';
import { plural } from '../format.js';
import { describe, seriesLimit } from '../messages.js';
import { Questions } from '../questions.js';
import { windowOf } from '../state.js';
import { top, ways } from '../stats.js';
import { asChart, chartOf } from './document.js';
import { comparing } from './sharedfields.js';
import { Earlier, labelled } from '../shift.js';
import { asks, typeOf } from './types.js';
import { drawingOf } from './types/drawings.js';

const now = () => Date.now() / 1000;

const manyLines = 5000; // of a question, where they are not all drawn by themselves

export class Panel {
  // board has live, notes(), and what a hand does: zoom(from, to), reset(), pan(by), read(text),
  // full(id), and mark(from, to) while mayMark(). It may have about(query, onChange), which asks for
  // the annotations of a query's series.
  constructor(board) {
    this.board = board;
    this.element = make('section', 'panel');
    this.element.tabIndex = -1; // keys go from one to the next
    this.head = make('div', 'head');
    this.title = make('h2');
    this.tools = make('div', 'tools');
    this.said = make('p', 'said');
    this.body = make('div', 'body');
    this.full = make('button', 'full');
    this.full.append(corners());
    this.full.type = 'button';
    this.full.addEventListener('click', () => board.full(this.panel.id));
    this.about = make('button', 'full about');
    this.about.type = 'button';
    this.about.append('i');
    this.about.setAttribute('aria-expanded', 'false');
    this.about.addEventListener('click', () => this.#describe(this.description.hidden));
    this.description = make('p', 'description');
    this.asChart = make('a', 'as-chart');
    this.asChart.append(steps());
    this.asChart.title = 'Open as chart';
    this.head.append(this.title, this.about, this.tools, this.asChart, this.full);
    this.remarked = make('p', 'remark');
    this.remarks = new Map();
    this.element.append(this.head, this.description, this.body, this.remarked, this.said);
    this.questions = new Questions(board.live, (fresh) => this.#redraw(fresh), (e) => e.about?.close());
    this.earlier = new Earlier(board.live, (fresh) => this.#redraw(fresh));
    this.#describe(false);
    [this.seen, this.inView, this.held] = [false, false, false];
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
      this.chart = asks(panel.type) ? chartOf(panel, view.chosen) : { queries: [], formulas: [], log: false };
      this.#build();
    }
    this.panel = panel;
    this.#showAsChart();
    this.#ask();
    this.#redraw(true);
  }

  // describe shows the description, or ends that.
  #describe(shown) {
    this.description.hidden = !shown;
    this.about.setAttribute('aria-expanded', String(shown));
  }

  // showAsChart leads to the page of charts, with the values of variables and the range in view.
  #showAsChart() {
    const asks = this.chart.queries.some((q) => q.metric);
    this.asChart.hidden = !asks;
    if (asks) this.asChart.href = `/${asChart(this.chart, this.panel, this.view)}`;
  }

  // see says whether the panel is in view: only then it asks. One that is held does, too.
  see(inView) {
    this.inView = inView;
    const seen = this.inView || this.held;
    if (seen === this.seen) return;
    this.seen = seen;
    this.#ask();
    this.#redraw(true);
  }

  // hold draws the panel wherever it is, until it is held no more.
  hold(held) {
    this.held = held;
    this.see(this.inView);
  }

  // waiting tells whether anything that is asked has no answer yet, or is not drawn.
  waiting() { return this.due || !this.view || this.#unanswered() || this.drawing.waiting?.(); }

  #unanswered() { return this.questions.everything().some((e) => !e.answered && !e.error); }

  // fill says whether the panel has the whole window.
  fill(full) {
    this.element.toggleAttribute('data-full', full);
    this.full.setAttribute('aria-pressed', String(full));
  }

  // focus goes to what of the panel one can do something with.
  focus() {
    (this.body.querySelector('[tabindex="0"]') ?? this.element).focus();
    this.element.scrollIntoView({ block: 'nearest' });
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

  #state() { return { ...this.view, queries: this.chart.queries, formulas: this.chart.formulas, log: this.chart.log, aligned: typeOf(this.panel.type)?.aligned }; }

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
    this.remarks.clear();
    this.remarked.textContent = '';
    this.questions.limit = this.earlier.questions.limit = this.#wanted() || typeOf(this.panel.type)?.all ? manyLines : seriesLimit;
    const title = this.panel.title || this.chart.queries.map((q) => q.metric).filter(Boolean).join(', ') || (this.panel.type === 'text' ? '' : this.panel.type);
    this.title.textContent = title;
    this.title.hidden = title === '';
    this.element.setAttribute('aria-label', title || 'Text');
    this.about.setAttribute('aria-label', `About ${title || 'text'}`);
    this.about.title = this.description.textContent = this.panel.description ?? '';
    this.about.hidden = !this.panel.description;
    if (this.about.hidden) this.#describe(false);
    this.asChart.setAttribute('aria-label', `Open as chart: ${title}`);
    this.full.setAttribute('aria-label', `Full screen: ${title || 'text'}`);
    this.element.dataset.type = typeOf(this.panel.type) ? this.panel.type : 'unknown';
    this.drawing = new (drawingOf(this.panel.type))(this);
  }

  // redraw draws in the next frame, however often it is called.
  #redraw(fresh) {
    this.fresh ||= fresh;
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => { this.due = false; if (!this.closed) this.draw(); });
  }

  // drawAtOnce draws all again, without waiting for a frame.
  drawAtOnce() {
    this.fresh = true;
    this.draw();
    this.drawing.fit?.();
  }

  draw() {
    // Out of view there is nothing to draw; what was drawn last stays.
    if (!this.seen || !this.view) return;
    const waiting = this.#unanswered();
    this.say(); // first: the words take room from the drawing
    if (this.fresh) {
      const lines = [...this.questions.lines(this.#state()), ...this.earlier.lines(Math.min(now(), this.range()[1]))];
      if (!waiting || lines.length > 0) this.lines = this.#best(lines);
      // A chart without lines would be drawn again with the first answer.
      if (!waiting || this.lines.length > 0) this.drawing.draw(this.lines, this);
      this.fresh = false;
    }
    this.element.toggleAttribute('data-stale', waiting && this.lines.length > 0);
  }

  // wanted is the top of lines that are drawn, undefined for all.
  #wanted() { return typeOf(this.panel.type)?.fields.includes('top') ? this.panel.top : undefined; }

  // best names the lines, and leaves out those that the panel does not want. Names do not depend on
  // which these are; an earlier line stays with its present one.
  #best(lines) {
    labelled(lines);
    const wanted = this.#wanted();
    if (!wanted) return lines;
    const best = top(lines.filter((l) => !l.earlier), wanted, this.range());
    const kept = new Set(best.lines.map((l) => l.present));
    this.remark('top', best.left > 0 ? `${plural(best.left, 'line')} not shown: these ${wanted.n} have the greatest ${ways[wanted.by].name}` : '');
    return lines.filter((l) => kept.has(l.present));
  }

  // remark tells what one may not see from the drawing; of each kind there is one, '' for none.
  remark(kind, text) {
    this.remarks.set(kind, text);
    const all = [...this.remarks.values()].filter(Boolean).map((t) => `${t}.`).join(' ');
    if (this.remarked.textContent !== all) this.remarked.textContent = all;
  }

  // ownNotes are the annotations of the panel's series, if it wants them. They are asked for once
  // the series are answered.
  ownNotes() {
    const wanted = this.board.about && asks(this.panel?.type) && this.panel.annotations === true;
    const answered = this.questions.entries().filter((e) => e.answered);
    for (const e of answered) {
      if (wanted) e.about ??= this.board.about(e.query, () => this.#redraw(true));
      else if (e.about) { e.about.close(); e.about = null; }
    }
    return wanted ? merged(answered.map((e) => e.about), this.range()).filter((n) => n.own) : [];
  }

  // say tells what is wrong with this panel, below it. That the connection is lost is told once,
  // at the top.
  say() {
    const said = this.#said();
    if (this.said.textContent !== said.text) this.said.textContent = said.text;
    this.said.dataset.kind = this.kind = said.kind;
  }

  #said() {
    if (!asks(this.panel.type)) return { kind: 'still', text: '' };
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

// steps is the picture of a chart.
function steps() {
  const picture = drawn('svg', { width: 12, height: 12, viewBox: '0 0 12 12', 'aria-hidden': 'true' });
  picture.append(drawn('path', { d: 'M1 1v10h10M3 8l2.5-3 2 2L11 2', fill: 'none', stroke: 'currentColor', 'stroke-width': 1.5 }));
  return picture;
}

// corners is the picture of a window that is filled.
function corners() {
  const picture = drawn('svg', { width: 12, height: 12, viewBox: '0 0 12 12', 'aria-hidden': 'true' });
  picture.append(drawn('path', { d: 'M1 4V1h3M8 1h3v3M11 8v3h-3M4 11H1v-3', fill: 'none', stroke: 'currentColor', 'stroke-width': 1.5 }));
  return picture;
}
