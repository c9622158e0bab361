// What changed in a stretch of time: the series that differ most from as much time before, each a link to its chart.

import * as api from './api.js';
import { make } from './element.js';
import { plural, time, value } from './format.js';

const listed = 20; // series of each list

// kinds are the lists, as the answer has them and as the page calls them.
export const kinds = [['changed', 'Changed'], ['appeared', 'New'], ['vanished', 'Gone']];

// span is a stretch in words, as 2026-11-21 10:30:00 – 10:45:00.
const span = ({ start, end }, zone) => {
  const [from, to] = [start, end].map((t) => time(t / 1000, zone));
  return `${from} – ${from.slice(0, 10) === to.slice(0, 10) ? to.slice(11) : to}`;
};

// heading says what is compared.
export const heading = ({ before, after }, zone) => `${span(after, zone)}, compared with ${span(before, zone)}`;

// summary says what was found among what.
export function summary({ looked, ...answer }) {
  const found = kinds.filter(([kind]) => answer[kind].all > 0).map(([kind, name]) => `${answer[kind].all.toLocaleString('en')} ${name.toLowerCase()}`);
  const among = `of ${plural(looked.series, 'series')} of ${plural(looked.metrics, 'metric')}`;
  const sparse = looked.sparse > 0 ? `, ${looked.sparse.toLocaleString('en')} of them with too few points to say` : '';
  return `${found.length > 0 ? found.join(', ') : 'Nothing changed'}, ${among}${sparse}.`;
}

// missing says what was not looked at, '' if that is nothing.
export function missing({ notLookedAt: left }) {
  if (!left) return '';
  const why = new Map();
  for (const { metric, why: reason } of left.listed) why.set(reason, [...(why.get(reason) ?? []), metric]);
  const parts = [...why].map(([reason, names]) => `${names.slice(0, 3).join(', ')}${names.length > 3 ? ', …' : ''}: ${reason}`);
  if (left.more > 0) parts.push(`${left.more.toLocaleString('en')} are beyond the first`);
  return `${plural(left.metrics, 'metric')} not looked at. ${parts.join('. ')}. A part of a name finds fewer.`;
}

// moved is a series' values in words.
export const moved = ({ before, after, rate }) => {
  const [b, a] = [before, after].map((v) => (v === undefined ? 'none' : value(v) + (rate ? '/s' : '')));
  return `${b} → ${a}`;
};

// charting is what a series' chart has of a page's state: both stretches, live if the second one reaches now.
export const charting = ({ metric, tags }, { before, after }, now) => ({
  start: String(before.start / 1000), end: after.end / 1000 >= now ? '' : String(after.end / 1000), zoom: null, pause: null, shift: '', pins: [], hide: [], only: '', most: 0,
  queries: [{ metric, tags: Object.entries(tags).map(([key, tag]) => ({ key, value: tag, group: false })) }],
});

export class Changes {
  // address(part) is that of the page with a part of its state.
  constructor(element, address) {
    Object.assign(this, { element, address, text: '' });
    this.heading = element.querySelector('h2');
    this.said = element.querySelector('#changes-said');
    this.missing = element.querySelector('#changes-missing');
    this.lists = element.querySelector('#changes-lists');
    this.field = element.querySelector('#changes-with');
    this.field.addEventListener('change', () => this.#look());
    element.querySelector('#changes-close').addEventListener('click', () => this.close());
  }

  // ask looks at a stretch, in seconds.
  ask([from, to], zone) {
    Object.assign(this, { from: Math.floor(from), to: Math.ceil(to), zone });
    this.element.hidden = false;
    this.heading.focus();
    return this.#look();
  }

  close() {
    this.request?.abort();
    this.element.hidden = true;
    document.getElementById('what-changed').focus();
  }

  async #look() {
    this.request?.abort();
    this.request = new AbortController();
    const { signal } = this.request;
    this.said.textContent = 'Looking at all series…';
    this.missing.textContent = '';
    this.lists.replaceChildren();
    try {
      const answer = await api.changes({ start: this.from, end: this.to, limit: listed, metric: this.field.value.trim() }, signal);
      if (!signal.aborted) this.#draw(answer);
    } catch (error) {
      if (!signal.aborted) this.said.textContent = `What changed cannot be said: ${error.message}.`;
    }
  }

  #draw(answer) {
    this.heading.textContent = `What changed: ${heading(answer, this.zone)}`;
    this.said.textContent = summary(answer);
    this.missing.textContent = missing(answer);
    this.lists.replaceChildren(...kinds.filter(([kind]) => answer[kind].all > 0).flatMap(([kind, name]) => {
      const { all, series } = answer[kind];
      const list = make('ul');
      list.append(...series.map((s) => this.#row(s, answer)));
      return [make('h3', '', `${name}${all > series.length ? `, the first ${series.length} of ${all.toLocaleString('en')}` : ''}`), list];
    }));
  }

  #row(series, answer) {
    const row = make('li');
    const link = make('a', '', series.metric);
    link.href = `/${this.address(charting(series, answer, Date.now() / 1000))}`;
    const tags = Object.entries(series.tags).map(([k, v]) => `${k}=${v}`).join(' ');
    row.append(link, make('span', 'tags-of', tags), make('b', '', moved(series)));
    return row;
  }
}
