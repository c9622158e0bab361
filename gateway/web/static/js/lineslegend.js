// The names of a chart's lines below it: a list, or a table, which many lines are by themselves.

import { make } from './element.js';
import { Legend } from './legend.js';
import { LegendTable } from './legendtable.js';

const listedAtMost = 20; // lines, in a list that nobody has chosen

// whenIdle calls f once the browser has nothing else to do, or after a second.
const whenIdle = (f) => (globalThis.requestIdleCallback ? requestIdleCallback(f, { timeout: 1000 }) : setTimeout(f, 50));

export class LinesLegend {
  // list is the element of the list; the table comes behind it. hands has onToggle(label, alone) and onPoint(label or
  // null); onChoose({only, most}) hears of lines that are chosen in the table.
  constructor(list, hands, onChoose) {
    Object.assign(this, { list, hands, as: '', shown: null, picture: null, due: null, cursor: null });
    this.names = new Legend(list, hands.onToggle, hands.onPoint);
    this.onChoose = onChoose;
    this.choice = { only: '', most: 0 };
  }

  // set says what it is, 'list', 'table' or '' for what fits, and which lines are chosen.
  set(as, choice = this.choice) {
    this.as = as;
    this.choice = choice;
    this.table?.choose(choice);
  }

  // isTable says what it is for a number of lines.
  isTable(n) { return this.as === 'table' || (this.as === '' && n > listedAtMost); }

  // left are the names of lines that are not chosen; rows() are the lines as LegendTable has them.
  left(rows) { return this.choice.only || this.choice.most ? this.#tableOf().left(rows()) : []; }

  // draw shows a picture; rows() are its lines for the table, and hidden those whose names are crossed out.
  draw(picture, rows, hidden) {
    this.picture = picture;
    const table = this.isTable(picture.labels.length);
    if (table !== this.shown) {
      this.shown = table;
      this.list.hidden = table;
      if (table) this.#tableOf();
      if (this.table) this.table.element.hidden = !table;
    }
    this.due = null;
    if (table) this.#fill(rows, hidden);
    else this.names.draw({ ...picture, hidden });
  }

  // fill draws the rows that are due at once.
  fill() { this.due?.(); }

  // A new table of many rows takes longer than its chart, so that one is drawn first, and all others that wait. Until
  // then the table has the room that it will take.
  #fill(rows, hidden) {
    this.due = () => {
      this.due = null;
      this.table.element.removeAttribute('data-due');
      this.table.draw(rows(), hidden);
      this.values(this.cursor);
    };
    if (this.table.rows.size > 0 || this.picture.labels.length <= listedAtMost) return this.fill();
    this.table.element.setAttribute('data-due', '');
    whenIdle(() => this.fill());
  }

  // values shows what a cursor reads, null for none.
  values(cursor) {
    this.cursor = cursor;
    if (!this.picture) return;
    if (this.shown) this.table.values(this.picture.data, cursor, this.picture.labels);
    else this.names.values(this.picture.data, cursor);
  }

  #tableOf() {
    if (!this.table) {
      this.table = new LegendTable('Lines', this.hands, (choice) => { this.choice = choice; this.onChoose(choice); });
      this.table.choose(this.choice);
      this.table.element.hidden = true;
      this.list.after(this.table.element);
    }
    return this.table;
  }
}

// listOf is the list of a legend.
export function listOf() {
  const list = make('ul', 'legend');
  list.setAttribute('aria-label', 'Lines');
  return list;
}
