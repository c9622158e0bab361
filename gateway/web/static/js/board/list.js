// The list of all dashboards: found by words of titles, names and tags; and the field for a new one.

import { make } from '../element.js';
import { plural, time } from '../format.js';
import { nameOf } from './names.js';

const $ = (id) => document.getElementById(id);

// fitting are the dashboards that have all words of a text in title, name or tags, and all of the tags.
export function fitting(all, text, tags) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((d) => {
    const of = [d.name, d.title ?? '', ...(d.tags ?? [])].join(' ').toLowerCase();
    return words.every((w) => of.includes(w)) && tags.every((t) => d.tags?.includes(t));
  });
}

// said is what the list says of one.
const said = (d) => `${d.name} · ${plural(d.panels, 'panel')} · ${d.version > 0 ? `version ${d.version} of ${time(Math.floor(Date.parse(d.saved) / 1000))}${d.by ? ` by ${d.by}` : ''}` : 'built in'}`;

export class BoardList {
  constructor() {
    this.all = [];
    this.tags = new Set();
    $('find-board').addEventListener('input', () => this.#draw());
    $('find-board').addEventListener('keydown', (e) => {
      const first = $('dashboards').querySelector('a');
      if (e.key === 'Enter' && $('find-board').value.trim() && first) location.assign(first.href);
    });
    $('new').addEventListener('submit', (e) => { e.preventDefault(); this.#make($('new-title').value.trim()); });
  }

  show(all) {
    this.all = all;
    const tags = [...new Set(all.flatMap((d) => d.tags ?? []))].sort((a, b) => a.localeCompare(b));
    $('board-tags-list').hidden = tags.length === 0;
    $('board-tags-list').replaceChildren(...tags.map((tag) => {
      const button = make('button', 'tag', tag);
      button.type = 'button';
      button.setAttribute('aria-pressed', String(this.tags.has(tag)));
      button.addEventListener('click', () => {
        if (!this.tags.delete(tag)) this.tags.add(tag);
        button.setAttribute('aria-pressed', String(this.tags.has(tag)));
        this.#draw();
      });
      return button;
    }));
    this.#draw();
  }

  #draw() {
    const found = fitting(this.all, $('find-board').value, [...this.tags]);
    $('dashboards').replaceChildren(...found.map((d) => {
      const item = make('li');
      const to = make('a', '', d.title || d.name);
      to.href = `/d/${d.name}`;
      item.append(to, ' ', make('span', 'when', said(d)), ...(d.tags ?? []).flatMap((t) => [' ', make('span', 'tag', t)]));
      return item;
    }));
    $('found').textContent = found.length < this.all.length ? `${found.length} of ${plural(this.all.length, 'dashboard')}` : '';
  }

  // make opens a dashboard that is not there yet, under a name of its title.
  #make(title) {
    if (title) location.assign(`/d/${nameOf(title, this.all.map((d) => d.name))}#${new URLSearchParams({ title })}`);
  }
}
