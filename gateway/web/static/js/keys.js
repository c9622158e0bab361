// Single keys of a page, and the help that lists them. They do nothing while one writes, nor once
// somebody has turned them off: who speaks to the machine, or hits keys unasked, wants that.

import { make } from './element.js';

const kept = 'downpour.keys';

export class Keys {
  // groups are {title, keys}; of keys, {key, does, run}: run(event) is called for a key that is alone,
  // unless something on the page has taken it. Keys without run are others' and are listed only.
  constructor(groups) {
    this.runs = new Map(groups.flatMap((g) => g.keys).filter((k) => k.run).map((k) => [k.key, k.run]));
    this.dialog = dialogOf(groups, (on) => localStorage.setItem(kept, on ? 'on' : 'off'));
    document.body.append(this.dialog);
    document.addEventListener('keydown', (e) => this.#key(e));
  }

  open() {
    this.dialog.querySelector('input').checked = isOn();
    this.dialog.showModal();
  }

  #key(e) {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
    if (e.key !== 'Escape' && (!isOn() || isWriting(e.target))) return;
    const run = e.key === '?' ? () => this.open() : this.runs.get(e.key);
    if (!run) return;
    e.preventDefault();
    run(e);
  }
}

const isOn = () => localStorage.getItem(kept) !== 'off';

// isWriting reports whether keys write where the focus is.
export const isWriting = (target) => Boolean(target.closest?.('input, select, textarea, [contenteditable]'));

function dialogOf(groups, onSwitch) {
  const dialog = make('dialog');
  dialog.id = 'help';
  dialog.setAttribute('aria-labelledby', 'help-title');
  const title = make('h2', '', 'Keys');
  title.id = 'help-title';
  const label = make('label');
  const box = make('input');
  box.type = 'checkbox';
  box.addEventListener('change', () => onSwitch(box.checked));
  label.append(box, ' Single keys work');
  const form = make('form');
  form.method = 'dialog';
  form.append(make('button', '', 'Close'));
  const all = [...groups, { title: 'Here', keys: [{ key: '?', does: 'shows these keys' }] }];
  dialog.append(title, ...all.flatMap(({ title: name, keys }) => [make('h3', '', name), listOf(keys)]), label, form);
  return dialog;
}

function listOf(keys) {
  const list = make('dl');
  for (const { key, does } of keys) list.append(make('dt', '', key), make('dd', '', does));
  return list;
}

// ofCharts are the keys of a chart that has the focus.
export const ofCharts = {
  title: 'In a chart', keys: [
    { key: '← →', does: 'read the points of a line; Page Up and Page Down ten at a time, Home and End the first and the last' },
    { key: '↑ ↓', does: 'change the line' },
    { key: 'Shift ← →', does: 'moves the range by a quarter' },
    { key: 'Space', does: 'begins a stretch at the point; at another point it ends it there, and zooms into it' },
    { key: 'Escape', does: 'leaves the points, and resets the zoom' },
  ],
};
