// Table has a row for each line: its last, least, greatest and mean value in the range that is shown.

import { LegendTable } from '../../legendtable.js';
import { summary } from '../../stats.js';

export class Table {
  constructor({ body, title }) {
    this.table = new LegendTable(`Table ${title.textContent}`);
    body.append(this.table.element);
  }

  draw(lines, owner) {
    const { unit, rightUnit } = owner.panel;
    this.table.draw(lines.map((l) => ({ label: l.label, unit: l.right ? rightUnit : unit, ...summary(l.group, owner.range()) })));
  }
}
