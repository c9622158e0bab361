// The lines as a table: a row each, with its last, least, greatest and mean value. A column's name
// sorts by it, and again the other way.

import { make } from './element.js';
import { value } from './format.js';
import { lineButton } from './legend.js';
import { columns, sorted } from './stats.js';

export class LegendTable {
  // name is that of the table; hands has onToggle and onPoint as for Legend, null for a table whose
  // names are no buttons.
  constructor(name, hands = null) {
    Object.assign(this, { hands, rows: new Map(), order: { by: '', down: true }, list: [] });
    this.element = make('div', 'scroll');
    this.element.tabIndex = 0;
    this.element.setAttribute('role', 'region');
    this.element.setAttribute('aria-label', name);
    const table = make('table', 'lines');
    const row = make('tr');
    this.heads = [['label', 'Line'], ...columns].map(([by, text]) => this.#head(by, text));
    row.append(...this.heads);
    const head = make('thead');
    head.append(row);
    this.body = make('tbody');
    table.append(head, this.body);
    this.element.append(table);
  }

  // draw takes rows, {label, look, right, unit} with the fields of summary each, and the names of
  // those hidden.
  draw(list, hidden = new Set()) {
    this.list = list;
    for (const [label, row] of this.rows) {
      if (list.some((r) => r.label === label)) continue;
      row.remove();
      this.rows.delete(label);
    }
    for (const r of list) this.#fill(this.#rowOf(r), r, hidden);
    this.#arrange();
  }

  // values is there for a cursor, which the tooltip is enough for.
  values() {}

  #head(by, text) {
    const cell = make('th');
    cell.scope = 'col';
    cell.dataset.by = by;
    const button = make('button', '', text);
    button.type = 'button';
    button.addEventListener('click', () => {
      const first = by !== 'label'; // numbers begin with the greatest, names with A
      this.order = { by, down: this.order.by === by ? !this.order.down : first };
      this.#arrange();
    });
    cell.append(button);
    return cell;
  }

  #rowOf({ label, look, right }) {
    const shape = JSON.stringify([look, right]);
    const old = this.rows.get(label);
    if (old?.dataset.shape === shape) return old;
    const row = make('tr');
    row.dataset.shape = shape;
    const name = make('th');
    name.scope = 'row';
    name.append(this.hands ? lineButton(label, look, right, this.hands) : label);
    row.append(name, ...columns.map(() => make('td')));
    if (old) old.replaceWith(row);
    else this.body.append(row);
    this.rows.set(label, row);
    return row;
  }

  #fill(row, r, hidden) {
    row.querySelector('button')?.setAttribute('aria-pressed', String(!hidden.has(r.label)));
    columns.forEach(([field], i) => {
      const text = value(r[field], r.unit);
      if (row.children[i + 1].textContent !== text) row.children[i + 1].textContent = text;
    });
  }

  // arrange moves the rows that are not at their places; the focus stays where it is.
  #arrange() {
    const { by, down } = this.order;
    for (const cell of this.heads) {
      if (cell.dataset.by === by) cell.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      else cell.removeAttribute('aria-sort');
    }
    const focused = this.body.contains(document.activeElement) ? document.activeElement : null;
    const list = by ? sorted(this.list, this.order) : this.list;
    list.forEach((r, i) => {
      const row = this.rows.get(r.label);
      if (this.body.children[i] !== row) this.body.insertBefore(row, this.body.children[i] ?? null);
    });
    if (focused && focused !== document.activeElement) focused.focus({ preventScroll: true });
  }
}
