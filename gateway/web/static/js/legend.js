// The names of the lines, each a button that hides or isolates its line, with
// the value at the cursor, or the last one.

import { make } from './element.js';
import { value } from './format.js';
import { sample } from './look.js';

export class Legend {
  // onToggle(label, alone), onPoint(label or null)
  constructor(element, onToggle, onPoint) {
    Object.assign(this, { element, onToggle, onPoint, shape: '', labels: [] });
  }

  draw({ labels, looks, sides, units = [], hidden }) {
    const shape = JSON.stringify([labels, looks, sides]);
    if (shape !== this.shape) this.#build(labels, looks, sides);
    this.shape = shape;
    this.units = sides.map((right) => units[Number(right)]);
    this.buttons.forEach((b, i) => b.setAttribute('aria-pressed', String(!hidden.has(labels[i]))));
  }

  // values shows what a cursor reads, or each line's last value for null.
  values(columns, cursor) {
    this.outputs?.forEach((out, n) => {
      const row = columns[n + 1] || [];
      const text = value(cursor ? row[cursor.places[n + 1]] : row.findLast((v) => v != null), this.units[n]);
      if (out.textContent !== text) out.textContent = text;
    });
  }

  #build(labels, looks, sides) {
    const focused = this.labels[this.buttons?.indexOf(document.activeElement)];
    this.labels = labels;
    this.outputs = [];
    this.buttons = labels.map((label, i) => {
      const out = document.createElement('b');
      this.outputs.push(out);
      const button = lineButton(label, looks[i], sides[i], this);
      button.append(out);
      return button;
    });
    this.element.replaceChildren(...this.buttons.map((b) => {
      const item = document.createElement('li');
      item.append(b);
      return item;
    }));
    this.buttons[labels.indexOf(focused)]?.focus();
  }
}

// lineButton is the name of a line, which hides or isolates it by the hands of a Legend.
export function lineButton(label, look, right, { onToggle, onPoint }) {
  const button = make('button');
  button.type = 'button';
  button.append(sample(look), make('span', '', label), ...(right ? [make('small', '', 'right axis')] : []));
  button.addEventListener('click', (e) => onToggle(label, e.shiftKey || e.altKey || e.ctrlKey || e.metaKey));
  button.addEventListener('pointerenter', () => onPoint(label));
  button.addEventListener('pointerleave', () => onPoint(null));
  return button;
}
