// The drawn points as a table, newest first: the form of the chart for screen
// readers, and for copying numbers out. It costs nothing while it is closed.

import { indexOf } from './answer.js';
import { exact, time } from './format.js';

const rowsAPage = 25;
const columnsAtMost = 8;

export class DataTable {
  constructor(details) {
    this.details = details;
    this.page = 0;
    const find = (q) => details.querySelector(q);
    [this.head, this.body, this.newer, this.older, this.where] = ['thead', 'tbody', '#newer', '#older', '#page'].map(find);
    details.addEventListener('toggle', () => this.#draw());
    this.newer.addEventListener('click', () => this.#turn(-1));
    this.older.addEventListener('click', () => this.#turn(1));
  }

  // draw takes lines, {label, group} each, of a time range.
  draw(lines, range, zone) {
    Object.assign(this, { lines, range, zone });
    this.#draw();
  }

  #turn(by) {
    this.page += by;
    this.#draw();
  }

  #draw() {
    if (!this.details.open || !this.lines) return;
    const lines = this.lines.slice(0, columnsAtMost);
    const rows = timesOf(lines, this.range).reverse();
    const pages = Math.max(1, Math.ceil(rows.length / rowsAPage));
    this.page = Math.min(this.page, pages - 1);
    const from = this.page * rowsAPage;
    this.head.replaceChildren(row('th', ['Time', ...lines.map((l) => l.label)]));
    this.body.replaceChildren(...rows.slice(from, from + rowsAPage).map((t) =>
      row('td', [time(t, this.zone), ...lines.map((l) => exact(at(l.group, t)))])));
    this.newer.disabled = this.page === 0;
    this.older.disabled = this.page === pages - 1;
    const more = this.lines.length - lines.length;
    this.where.textContent = `Page ${this.page + 1} of ${pages}${more > 0 ? `; ${more} more lines are in the chart, hide others to see them` : ''}`;
  }
}

// timesOf are all times of lines within a range, ascending.
export function timesOf(lines, [from, to]) {
  const all = new Set(lines.flatMap((l) => l.group.times.filter((t) => t >= from && t <= to)));
  return [...all].sort((a, b) => a - b);
}

// at is a group's value at a time as it came, undefined for none.
export function at(group, t) {
  return group.values[indexOf(group, t)];
}

function row(cell, texts) {
  const tr = document.createElement('tr');
  texts.forEach((text, i) => {
    const td = document.createElement(i === 0 ? 'th' : cell);
    if (cell === 'th' || i === 0) td.scope = cell === 'th' ? 'col' : 'row';
    td.textContent = text;
    tr.append(td);
  });
  return tr;
}
