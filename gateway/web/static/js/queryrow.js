// The row of one query above the chart: shows it, and turns what one changes in
// it into the next one.

import { suggest } from './api.js';
import { combobox } from './combobox.js';
import { tagKeys, tagValues } from './complete.js';
import { emptyQuery } from './state.js';

const intervals = ['10s', '30s', '1m', '5m', '10m', '30m', '1h', '6h', '1d'];
const functions = ['avg', 'sum', 'min', 'max', 'count', 'last', 'p95', 'p99'];

export class QueryRow {
  // onChange(part) gets what changed of the query, onRemove() its end.
  constructor(index, onChange, onRemove) {
    this.onChange = onChange;
    this.query = emptyQuery();
    this.known = []; // tag keys of the answer
    this.element = document.getElementById('query-row').content.firstElementChild.cloneNode(true);
    this.#name(index);
    options(this.step, [['auto', 'auto'], ['', 'as stored'], ...intervals.map((i) => [i, i])]);
    options(this.by, functions.map((f) => [f, f]));
    this.percentiles.setAttribute('aria-describedby', this.said.id);
    // On the start page what is typed finds metrics, and charts none before it is taken.
    combobox(this.metric, suggest('metrics'), (metric) => onChange({ metric, tags: [] }), () => document.body.hasAttribute('data-start'));
    this.aggregator.addEventListener('change', () => onChange({ aggregator: this.aggregator.value }));
    for (const s of [this.step, this.by]) s.addEventListener('change', () => this.#downsampled());
    this.rate.addEventListener('change', () => onChange({ rate: this.rate.checked ? 'rate' : '' }));
    this.percentiles.addEventListener('change', () => onChange({ percentiles: this.percentiles.value.trim() }));
    this.right.addEventListener('change', () => onChange({ right: this.right.checked }));
    this.alias.addEventListener('change', () => onChange({ alias: this.alias.value.trim() }));
    this.add.addEventListener('click', () => this.#addTag());
    this.remove.addEventListener('click', onRemove);
  }

  // name gives each field the id that its label is for; the first row's are plain.
  #name(index) {
    const suffix = index === 0 ? '' : `-${index + 1}`;
    for (const e of this.element.querySelectorAll('[data-id]')) {
      e.id = e.dataset.id + suffix;
      e.dataset.testid = e.id;
      const label = e.parentElement.closest('.field')?.querySelector('label');
      if (label && e.matches('input, select')) label.htmlFor = e.id;
    }
    const find = (id) => this.element.querySelector(`[data-id=${id}]`);
    this.suffix = suffix;
    [this.metric, this.aggregator, this.step, this.by, this.rate, this.percentiles, this.right, this.alias, this.tags, this.add, this.split, this.remove, this.said, this.near] = [
      'metric', 'aggregator', 'step', 'step-function', 'rate', 'percentiles', 'right', 'alias', 'tags', 'add-tag', 'split', 'remove', 'said', 'near'].map(find);
  }

  aggregators(names) {
    this.names = [...names].sort();
    this.#choose(this.query.aggregator);
  }

  // show takes a query, its letter, and whether it is the only one.
  show(query, letter, alone) {
    this.query = query;
    this.element.setAttribute('aria-label', `Query ${letter}`);
    this.element.querySelector('.badge').textContent = letter;
    this.element.classList.toggle('alone', alone);
    this.remove.setAttribute('aria-label', `Remove query ${letter}`);
    if (this.metric !== document.activeElement || query.metric) this.metric.value = query.metric;
    this.#choose(query.aggregator);
    const [step, ...by] = query.downsample.split('-');
    choose(this.step, step);
    choose(this.by, by[0] || 'avg');
    this.by.disabled = by.length === 0;
    this.rate.checked = query.rate !== '';
    if (this.percentiles !== document.activeElement) this.percentiles.value = query.percentiles;
    this.right.checked = query.right;
    if (this.alias !== document.activeElement) this.alias.value = query.alias;
    this.#showTags(query.tags);
  }

  // tell shows what is wrong with this query, '' for nothing. fault says whether it is
  // what was written into it.
  tell(text, kind, fault) {
    if (this.said.textContent !== text) this.said.textContent = text;
    this.said.dataset.kind = kind;
    if (fault) this.percentiles.setAttribute('aria-invalid', 'true');
    else this.percentiles.removeAttribute('aria-invalid');
  }

  // offer shows metrics that may be meant; a click takes one.
  offer(names) {
    if (this.near.dataset.names === names.join('\n')) return;
    this.near.dataset.names = names.join('\n');
    this.near.hidden = names.length === 0;
    this.near.replaceChildren('Did you mean', ...names.map((metric) => button(metric, '', () => this.onChange({ metric }))));
  }

  // answered takes the tag keys of the answer, and those that it sums up: it
  // offers to draw a line for each value of these.
  answered(keys, summed) {
    this.known = keys;
    const offered = summed.filter((k) => !this.query.tags.some((t) => t.key === k && t.group)).slice(0, 8);
    if (this.split.dataset.keys === offered.join()) return;
    this.split.dataset.keys = offered.join();
    this.split.hidden = offered.length === 0;
    this.split.replaceChildren('Split by', ...offered.map((key) => button(key, '', () =>
      this.onChange({ tags: [...this.query.tags.filter((t) => t.key !== key), { key, value: '*', group: true }] }))));
  }

  #choose(aggregator) {
    options(this.aggregator, (this.names || ['avg', 'sum', 'min', 'max']).map((n) => [n, n]));
    choose(this.aggregator, aggregator);
  }

  #downsampled() {
    const rest = this.query.downsample.split('-').slice(2); // a fill policy stays
    const plain = this.step.value === '' || this.step.value === 'auto';
    this.onChange({ downsample: plain ? this.step.value : [this.step.value, this.by.value || 'avg', ...rest].join('-') });
  }

  // showTags leaves the rows alone where they show these tags already: one may
  // be about to move on from one field to the next.
  #showTags(tags) {
    const list = this.tags.querySelector('ul');
    const shown = [...list.children].map((row) => {
      const [key, value, group] = row.querySelectorAll('input');
      return { key: key.value, value: value.value, group: group.checked };
    }).filter((t) => t.key && t.value);
    if (JSON.stringify(shown) === JSON.stringify(tags)) return;
    list.replaceChildren(...tags.map((t, i) => this.#tagRow(t, i)));
  }

  #addTag() {
    const row = this.#tagRow({ key: '', value: '', group: false }, this.query.tags.length);
    this.tags.querySelector('ul').append(row);
    row.querySelector('input').focus();
  }

  #tagRow(tag, i) {
    const change = (part) => {
      const tags = this.query.tags.slice();
      tags[i] = { ...tag, ...part };
      tag = tags[i];
      if (tag.key && tag.value) this.onChange({ tags });
    };
    const item = document.createElement('li');
    const key = tagField(item, `tag-key${this.suffix}-${i}`, 'Tag key', tag.key);
    item.append('=');
    const value = tagField(item, `tag-value${this.suffix}-${i}`, 'Tag value', tag.value);
    combobox(key, tagKeys(() => this.known), (k) => change({ key: k }));
    const group = document.createElement('input');
    group.type = 'checkbox';
    group.checked = tag.group;
    group.addEventListener('change', () => change({ group: group.checked }));
    combobox(value, tagValues(() => ({ metric: this.query.metric, key: key.value })), (v) => {
      group.checked ||= v.includes('*') || v.includes('|');
      change({ value: v, group: group.checked });
    });
    const label = document.createElement('label');
    label.append(group, 'a line each');
    const remove = button('×', `Remove tag ${tag.key}`, () => {
      if (i < this.query.tags.length) this.onChange({ tags: this.query.tags.filter((_, n) => n !== i) });
      item.remove();
      this.add.focus();
    });
    remove.className = 'remove';
    item.append(label, remove);
    return item;
  }
}

function tagField(item, id, label, value) {
  const box = document.createElement('div');
  box.className = 'combo';
  const input = document.createElement('input');
  Object.assign(input, { type: 'text', id, value, placeholder: label.toLowerCase() });
  input.setAttribute('aria-label', label);
  box.append(input);
  item.append(box);
  return input;
}

function button(text, label, onClick) {
  const b = document.createElement('button');
  b.type = 'button';
  b.textContent = text;
  if (label) b.setAttribute('aria-label', label);
  b.addEventListener('click', onClick);
  return b;
}

export function options(select, pairs) {
  const text = JSON.stringify(pairs);
  if (select.dataset.pairs === text) return; // an open list stays open
  select.dataset.pairs = text;
  select.replaceChildren(...pairs.map(([value, t]) => new Option(t, value)));
}

// choose selects a value, adding it when the list has it not.
export function choose(select, value, text = value) {
  if (![...select.options].some((o) => o.value === value)) select.append(new Option(text, value));
  select.value = value;
}
