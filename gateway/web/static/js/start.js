// The start page: the metrics that are stored, the newest first, each with its last hour as a small live chart, and
// found by any part of the name. A chart asks one query while it is on screen.

import { suggest } from './api.js';
import { drawn, make } from './element.js';
import { plural, value } from './format.js';
import { ofQuery } from './messages.js';
import { emptyQuery } from './state.js';
import { dotted, spark } from './spark.js';
import { newest } from './stats.js';

export const cardsAtMost = 48; // and so no more small charts
const boardsAtMost = 8;
const seconds = 3600;
const again = 5000; // ms between two looks for new metrics
const rest = 20;    // times as long as a look took is waited at least: where names are very many it takes long

// sketch is what a small chart asks: one line, by the minute, so that an answer is short whatever is stored.
export const sketch = (metric) => ({ start: '1h-ago', queries: [{ aggregator: emptyQuery().aggregator, metric, filters: [], downsample: '1m-avg', rollupUsage: 'ROLLUP_RAW' }] });

// heading says what is listed.
export function heading({ length, more, newest: inOrder }, text) {
  const all = plural(length + more, 'metric');
  if (text) return length === 0 ? `No metric’s name holds “${text}”.` : `${all} with “${text}” in the name${more > 0 ? `, ${length} of them here: type another part of the name` : ''}.`;
  return `${all}${inOrder ? ', the newest first' : ''}${more > 0 ? `. Here are ${length}: type a part of a name to find others` : ''}.`;
}

// links are the dashboards to which the page leads: those saved last first, then those that are built in.
export const links = (dashboards) => [...dashboards].sort((a, b) => (b.version > 0) - (a.version > 0) || (b.saved ?? '').localeCompare(a.saved ?? '')).slice(0, boardsAtMost);

export class Start {
  // address(metric) is that of a metric's chart.
  constructor(element, live, address) {
    Object.assign(this, { element, live, address, text: '', shown: false, cards: new Map() });
    this.list = element.querySelector('#cards');
    this.said = element.querySelector('#start-said');
    this.boards = element.querySelector('#start-boards');
    this.inView = new IntersectionObserver((entries) => {
      for (const e of entries) this.cards.get(e.target.dataset.metric)?.see(e.isIntersecting && !this.unseen);
    });
  }

  // offer shows links to dashboards.
  offer(dashboards) {
    this.boards.hidden = dashboards.length === 0;
    this.boards.replaceChildren('Dashboards: ', ...links(dashboards).flatMap(({ name, title }, i) => {
      const link = make('a', '', title || name);
      link.href = `/d/${name}`;
      return i > 0 ? [' · ', link] : [link];
    }));
  }

  show(text) {
    if (this.shown) return;
    this.shown = true;
    this.find(text);
  }

  close() {
    this.shown = false;
    this.request?.abort();
    clearTimeout(this.timer);
    for (const card of this.cards.values()) this.#drop(card);
  }

  // see says whether anybody sees the page.
  see(seen) {
    this.unseen = !seen;
    for (const card of this.cards.values()) {
      card.see(false);
      this.inView.unobserve(card.element);
      this.inView.observe(card.element); // says again which are in view
    }
    if (this.shown && seen) this.#ask();
  }

  // find lists the metrics whose names hold the words of a text.
  find(text) {
    this.text = text;
    this.#ask();
  }

  // drawn is what tests look at.
  drawn() { return [...this.list.children].map((c) => { const { metric, sub, points } = this.cards.get(c.dataset.metric); return { metric, asks: Boolean(sub), points }; }); }

  async #ask() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.request = new AbortController();
    const { signal } = this.request;
    const { text } = this;
    const began = performance.now();
    try {
      if (!this.unseen) {
        const names = await suggest('metrics', cardsAtMost, 'newest')(text, signal);
        if (signal.aborted || !this.shown) return;
        this.#list(names);
        const said = heading(names, text);
        if (this.said.textContent !== said) this.said.textContent = said;
      }
    } catch (error) {
      if (signal.aborted) return;
      this.said.textContent = `The metrics cannot be listed: ${error.message}.`;
    }
    if (this.shown) this.timer = setTimeout(() => this.#ask(), Math.max(again, rest * (performance.now() - began)));
  }

  // list keeps the cards that are there: what they have drawn stays.
  #list(names) {
    const wanted = new Set(names);
    for (const card of [...this.cards.values()]) if (!wanted.has(card.metric)) this.#drop(card);
    names.forEach((metric, i) => {
      let card = this.cards.get(metric);
      if (!card) {
        card = new Card(this.live, metric);
        this.cards.set(metric, card);
        this.inView.observe(card.element);
      }
      card.link.href = this.address(metric);
      if (this.list.children[i] !== card.element) this.list.insertBefore(card.element, this.list.children[i] ?? null);
    });
  }

  #drop(card) {
    this.inView.unobserve(card.element);
    card.see(false);
    card.element.remove();
    this.cards.delete(card.metric);
  }
}

// Card is one metric with its small chart.
class Card {
  constructor(live, metric) {
    Object.assign(this, { live, metric, sub: null, points: 0 });
    this.element = make('li');
    this.element.dataset.metric = metric;
    this.link = make('a');
    this.value = make('b');
    this.chart = drawn('svg', { class: 'spark', viewBox: '0 0 100 30', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    this.path = drawn('path', { d: '' });
    this.chart.append(this.path);
    this.note = make('span', 'note');
    this.link.append(make('span', 'name', metric), this.value, this.chart, this.note);
    this.element.append(this.link);
  }

  // see begins its query, or ends it. What is drawn stays.
  see(seen) {
    if (seen === Boolean(this.sub)) return;
    this.sub?.close();
    this.sub = null;
    if (!seen) return;
    const { metric } = this;
    this.sub = this.live.subscribe(sketch(metric), {
      onData: (answer) => this.#draw([...answer.groups.values()][0], answer.points),
      onError: (error) => { this.note.textContent = ofQuery({ metric, error }).text; },
    });
  }

  #draw(group, points) {
    this.points = points;
    const now = Date.now() / 1000;
    const last = group ? newest(group)[1] : undefined;
    this.value.textContent = last === undefined ? '' : value(last);
    this.path.setAttribute('d', group ? dotted(spark(group, [now - seconds, now])) : '');
    this.note.textContent = points > 0 ? '' : 'no points in the last hour';
  }
}
