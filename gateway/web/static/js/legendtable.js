// The lines as a table: a row each, with its value at the cursor, its last, least, greatest and mean value. A column's
// name sorts by it, and again the other way. Above many rows one chooses which are there.

import { make } from './element.js';
import { plural, value } from './format.js';
import { lineButton } from './legend.js';
import { chosen, columns, sorted } from './stats.js';

const fewRows = 8; // among which there is nothing to choose
const mosts = [5, 10, 20, 50];

export class LegendTable {
  // name is that of the table; hands has onToggle and onPoint as for Legend, null for a table whose
  // names are no buttons. onChoose() is called when somebody has chosen other lines.
  constructor(name, hands = null, onChoose = () => {}) {
    Object.assign(this, { hands, onChoose, rows: new Map(), order: { by: '', down: true }, list: [], choice: { only: '', most: 0 } });
    this.columns = [...(hands ? [['at', 'At the cursor']] : []), ...columns];
    this.element = make('div', 'line-table');
    this.element.append(this.#tools(), this.#table(name));
  }

  // draw takes rows, {label, look, right, unit} with the fields of summary each, and the names of
  // those hidden.
  draw(list, hidden = new Set()) {
    this.all = list;
    this.list = chosen(list, this.choice, this.order);
    const labels = new Set(this.list.map((r) => r.label));
    for (const [label, row] of this.rows) {
      if (labels.has(label)) continue;
      row.remove();
      this.rows.delete(label);
    }
    for (const r of this.list) this.#fill(this.#rowOf(r), r, hidden);
    this.#arrange();
    this.tools.hidden = list.length <= fewRows && !this.choice.only && !this.choice.most;
    const count = this.list.length < list.length ? `${this.list.length} of ${plural(list.length, 'line')}` : plural(list.length, 'line');
    if (this.count.textContent !== count) this.count.textContent = count;
  }

  // left are the labels of rows that are not chosen.
  left(list) {
    const kept = new Set(chosen(list, this.choice, this.order).map((r) => r.label));
    return list.map((r) => r.label).filter((label) => !kept.has(label));
  }

  // choose takes the words of names, and how many lines there are at most.
  choose(choice) {
    this.choice = choice;
    if (this.only !== document.activeElement) this.only.value = choice.only;
    if (![...this.most.options].some((o) => o.value === String(choice.most))) this.most.append(new Option(`top ${choice.most}`, choice.most));
    this.most.value = choice.most;
  }

  // values shows what a cursor reads of the lines whose labels are those of columns.
  values(data, cursor, labels) {
    if (!this.hands) return;
    labels.forEach((label, i) => {
      const cell = this.rows.get(label)?.children[1];
      if (!cell) return;
      const text = cursor ? value((data[i + 1] ?? [])[cursor.places[i + 1]], this.rows.get(label).unit) : '';
      if (cell.textContent !== text) cell.textContent = text;
    });
  }

  #tools() {
    this.tools = make('div', 'line-tools');
    this.tools.hidden = true;
    this.only = make('input');
    Object.assign(this.only, { type: 'text', placeholder: 'Part of a name', autocomplete: 'off', spellcheck: false });
    this.only.setAttribute('aria-label', 'Lines with');
    this.most = make('select');
    this.most.setAttribute('aria-label', 'How many lines');
    this.most.append(new Option('all', 0), ...mosts.map((n) => new Option(`top ${n}`, n)));
    this.count = make('span');
    this.count.setAttribute('role', 'status');
    const choose = () => {
      this.choice = { only: this.only.value.trim(), most: Number(this.most.value) };
      this.onChoose(this.choice);
    };
    this.only.addEventListener('input', choose);
    this.most.addEventListener('change', choose);
    this.tools.append(this.only, this.most, this.count);
    return this.tools;
  }

  #table(name) {
    const place = make('div', 'scroll');
    place.tabIndex = 0;
    place.setAttribute('role', 'region');
    place.setAttribute('aria-label', name);
    const table = make('table', 'lines');
    const row = make('tr');
    this.heads = [['label', 'Line'], ...this.columns].map(([by, text]) => this.#head(by, text));
    row.append(...this.heads);
    const head = make('thead');
    head.append(row);
    this.body = make('tbody');
    table.append(head, this.body);
    place.append(table);
    return place;
  }

  #head(by, text) {
    const cell = make('th');
    cell.scope = 'col';
    cell.dataset.by = by;
    if (by === 'at') {
      cell.append(text); // a hand that moves would move the rows
      return cell;
    }
    const button = make('button', '', text);
    button.type = 'button';
    button.addEventListener('click', () => {
      const first = by !== 'label'; // numbers begin with the greatest, names with A
      this.order = { by, down: this.order.by === by ? !this.order.down : first };
      if (this.choice.most > 0) this.onChoose(this.choice); // others are the first
      else this.#arrange();
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
    row.append(name, ...this.columns.map(([by]) => { const cell = make('td'); cell.dataset.by = by; return cell; }));
    if (old) old.replaceWith(row);
    else this.body.append(row);
    this.rows.set(label, row);
    return row;
  }

  #fill(row, r, hidden) {
    row.querySelector('button')?.setAttribute('aria-pressed', String(!hidden.has(r.label)));
    row.unit = r.unit;
    this.columns.forEach(([field], i) => {
      if (field === 'at') return;
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
