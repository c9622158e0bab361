// A table that is drawn again every few seconds and keeps its rows: a button in a row keeps the focus,
// and what somebody has marked stays marked.

import { make } from '../element.js';

const role = (element, name) => { element.setAttribute('role', name); return element; };

export class Table {
  // columns are {title, text(row, all), class(row, all), button}; class says how a cell looks: text, long, bad or
  // warn. Of a column with a button, {label(row), press(row)}, the cell is that. none is said where there
  // are no rows; key(row) tells rows apart.
  constructor(place, columns, none, key = (row, i) => i) {
    Object.assign(this, { place, columns, none, key });
    this.rows = new Map(); // key -> {tr, cells, row}
    // On a phone rows are blocks, and browsers do not know by themselves that these are a table's.
    this.table = role(make('table'), 'table');
    this.body = role(make('tbody'), 'rowgroup');
    const head = role(make('tr'), 'row');
    for (const c of columns) {
      const th = make('th', c.class?.() ?? '', c.title);
      th.scope = 'col';
      head.append(role(th, 'columnheader'));
    }
    const thead = role(make('thead'), 'rowgroup');
    thead.append(head);
    const caption = make('caption', 'hidden', place.getAttribute('aria-label'));
    this.table.append(caption, thead, this.body);
    this.empty = make('p', 'none', none);
    place.append(this.table, this.empty);
    // Until the first report nothing is known, so nothing is said either.
    this.table.hidden = true;
    this.empty.hidden = true;
  }

  draw(all) {
    this.table.hidden = all.length === 0;
    this.empty.hidden = all.length > 0;
    const gone = new Set(this.rows.keys());
    all.forEach((row, i) => {
      const key = this.key(row, i);
      gone.delete(key);
      if (!this.rows.has(key)) this.rows.set(key, this.#made());
      const kept = this.rows.get(key);
      kept.row = row;
      this.columns.forEach((c, n) => this.#fill(kept.cells[n], c, row, all));
      if (this.body.children[i] !== kept.tr) this.body.insertBefore(kept.tr, this.body.children[i] ?? null);
    });
    for (const key of gone) {
      this.rows.get(key).tr.remove();
      this.rows.delete(key);
    }
  }

  #made() {
    const kept = { tr: role(make('tr'), 'row'), cells: [], row: null };
    for (const c of this.columns) {
      const cell = role(make('td'), 'cell');
      cell.dataset.title = c.title; // what a phone shows in front of it
      if (c.button) {
        const button = make('button');
        button.type = 'button';
        button.addEventListener('click', () => c.button.press(kept.row));
        cell.append(button);
      }
      kept.cells.push(cell);
      kept.tr.append(cell);
    }
    return kept;
  }

  #fill(cell, c, row, all) {
    const place = c.button ? cell.firstChild : cell;
    const text = c.button ? c.button.label(row) : c.text(row, all);
    if (place.textContent !== text) place.textContent = text;
    if (c.button) {
      const [name, off] = [c.button.name(row), c.button.off(row)];
      if (place.getAttribute('aria-label') !== name) place.setAttribute('aria-label', name);
      if (place.disabled !== off) place.disabled = off;
    }
    const look = c.class?.(row, all) ?? '';
    if (cell.className !== look) cell.className = look;
  }
}
