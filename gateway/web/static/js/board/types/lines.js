// Lines are the chart of the page with its legend, a list or a table.

import { Looks, toColumns, usualStep } from '../../columns.js';
import { make } from '../../element.js';
import { plural } from '../../format.js';
import { Legend } from '../../legend.js';
import { LegendTable } from '../../legendtable.js';
import { summary } from '../../stats.js';
import { looksOf } from '../shift.js';
import { Plot } from './plot.js';

export class Lines extends Plot {
  constructor(owner, kind = 'line chart') {
    super(owner, kind);
    this.looks = new Looks();
    this.hands = { onToggle: (label, alone) => this.#toggle(label, alone), onPoint: (label) => this.chart.emphasise(label) };
    this.table = owner.panel.legend === 'table' ? new LegendTable('Lines', this.hands) : null;
    if (this.table) owner.body.append(this.table.element);
    else this.#list(owner);
  }

  #list({ body }) {
    const list = make('ul', 'legend');
    list.setAttribute('aria-label', 'Lines');
    body.append(list);
    this.list = new Legend(list, this.hands.onToggle, this.hands.onPoint);
  }

  draw(lines, owner) {
    const names = lines.map((l) => l.label);
    const log = this.log(owner);
    const sides = lines.map((l) => l.right);
    const data = toColumns(lines.map((l) => ({ times: l.group.times, values: l.group.values, step: l.step })), log);
    const style = this.style(data, sides, names.map((n) => owner.hide.has(n)), lines);
    this.paint({ labels: names, looks: looksOf(this.looks, lines), sides, data, log, style }, plural(names.length, 'line'), () => this.#drawLegend(lines));
    this.showCursor();
  }

  // log and style are what areas and bars have another of.
  log(owner) { return owner.chart.log; }

  style() { return null; }

  #drawLegend(lines) {
    const { looks, sides, units, hidden, range } = this.picture;
    if (!this.table) {
      this.list.draw(this.picture);
      return this.list.values(this.picture.data, this.cursor);
    }
    this.table.draw(lines.map((l, i) => ({ label: l.label, look: looks[i], right: sides[i], unit: units[Number(sides[i])], ...summary(l.group, range) })), hidden);
  }

  // showCursor tells the values at the one cross hair in every list, too.
  showCursor() {
    if (!this.picture) return;
    this.list?.values(this.picture.data, this.cursor);
    super.showCursor();
  }

  #toggle(label, alone) {
    const { hide } = this.owner;
    const others = this.picture.labels.filter((n) => n !== label);
    const isAlone = others.every((n) => hide.has(n)) && !hide.has(label);
    if (alone) {
      hide.clear();
      if (!isAlone) others.forEach((n) => hide.add(n));
    } else if (!hide.delete(label)) hide.add(label);
    this.draw(this.owner.lines, this.owner);
  }
}

// leastStep is the smallest distance of points of lines, in s, that is usual for one of them.
export const leastStep = (lines) => lines.reduce((least, l) => Math.min(least, l.step || usualStep(l.group.times)), Infinity);
