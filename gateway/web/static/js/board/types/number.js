// Single is the last value of the first line, over a spark line of it.

import { drawn, make } from '../../element.js';
import { clock, exact, plural, value } from '../../format.js';
import { spark } from '../../spark.js';
import { newest } from '../../stats.js';
import { bandOf } from '../../thresholds.js';

export class Single {
  constructor(owner) {
    this.owner = owner;
    this.number = make('p', 'number', '–');
    this.level = make('p', 'level');
    this.name = make('p', 'name');
    this.picture = drawn('svg', { class: 'spark', viewBox: '0 0 100 30', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    owner.body.append(this.number, this.level, this.name, this.picture);
  }

  draw(lines, owner) {
    const [first] = lines;
    const [at, last] = first ? newest(first.group) : [];
    const { thresholds = [], unit, rightUnit } = owner.panel;
    const said = (v) => value(v, first.right ? rightUnit : unit);
    this.number.textContent = last === undefined ? '–' : said(last);
    this.number.title = last === undefined ? '' : exact(last);
    const band = last === undefined ? undefined : bandOf(thresholds, Number(last), first.right);
    this.number.dataset.colour = this.level.dataset.colour = band?.colour ?? '';
    this.level.textContent = band ? `${band.colour}: ${said(band.from)} or more` : '';
    const which = lines.length > 1 ? `${first.label}, and ${plural(lines.length - 1, 'other line')}, ` : '';
    this.name.textContent = last === undefined ? '' : `${which}at ${clock(Math.floor(at), owner.view.tz)}`;
    this.picture.replaceChildren(drawn('path', { d: first ? spark(first.group, owner.range()) : '' }));
  }

  // move follows the time: what was drawn would stand still otherwise.
  move() { this.draw(this.owner.lines, this.owner); }
}
