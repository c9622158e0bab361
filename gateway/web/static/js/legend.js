// The names of the lines, each a button that hides or isolates its line, with
// the value at the cursor, or the last one.

import { value } from './format.js';
import { sample } from './look.js';

export class Legend {
  // onToggle(label, alone), onPoint(label or null)
  constructor(element, onToggle, onPoint) {
    Object.assign(this, { element, onToggle, onPoint, shape: '', labels: [] });
  }

  draw({ labels, looks, hidden }) {
    const shape = JSON.stringify([labels, looks]);
    if (shape !== this.shape) this.#build(labels, looks);
    this.shape = shape;
    this.buttons.forEach((b, i) => b.setAttribute('aria-pressed', String(!hidden.has(labels[i]))));
  }

  // values shows what a cursor reads, or each line's last value for null.
  values(columns, cursor) {
    this.outputs?.forEach((out, n) => {
      const row = columns[n + 1] || [];
      const text = value(cursor ? row[cursor.places[n + 1]] : row.findLast((v) => v != null));
      if (out.textContent !== text) out.textContent = text;
    });
  }

  #build(labels, looks) {
    const focused = this.labels[this.buttons?.indexOf(document.activeElement)];
    this.labels = labels;
    this.outputs = [];
    this.buttons = labels.map((label, i) => this.#button(label, looks[i]));
    this.element.replaceChildren(...this.buttons.map((b) => {
      const item = document.createElement('li');
      item.append(b);
      return item;
    }));
    this.buttons[labels.indexOf(focused)]?.focus();
  }

  #button(label, look) {
    const button = document.createElement('button');
    button.type = 'button';
    const out = document.createElement('b');
    this.outputs.push(out);
    const name = document.createElement('span');
    name.textContent = label;
    button.append(sample(look), name, out);
    button.addEventListener('click', (e) => this.onToggle(label, e.shiftKey || e.altKey || e.ctrlKey || e.metaKey));
    button.addEventListener('pointerenter', () => this.onPoint(label));
    button.addEventListener('pointerleave', () => this.onPoint(null));
    return button;
  }
}
