// Table has a row for each line: its last, least, greatest and mean value in the range that is shown.

import { make } from '../../element.js';
import { value } from '../../format.js';
import { summary } from '../../stats.js';

export class Table {
  constructor({ body, title }) {
    const box = make('div', 'scroll');
    box.tabIndex = 0;
    box.setAttribute('role', 'region');
    box.setAttribute('aria-label', `Table ${title.textContent}`);
    const table = make('table');
    const row = make('tr');
    for (const name of ['Line', 'Last', 'Least', 'Greatest', 'Mean']) {
      const cell = make('th', '', name);
      cell.scope = 'col';
      row.append(cell);
    }
    const head = make('thead');
    head.append(row);
    this.rows = make('tbody');
    table.append(head, this.rows);
    box.append(table);
    body.append(box);
  }

  draw(lines, owner) {
    this.rows.replaceChildren(...lines.map((l) => {
      const { last, least, greatest, mean } = summary(l.group, owner.range());
      const row = make('tr');
      row.append(make('td', '', l.label), ...[last, least, greatest, mean].map((v) => make('td', '', value(v))));
      return row;
    }));
  }
}
