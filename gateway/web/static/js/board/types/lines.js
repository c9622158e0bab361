// Lines are the chart of the page with its legend, a list or a table.

import { Looks, toColumns, usualStep } from '../../columns.js';
import { plural } from '../../format.js';
import { LinesLegend, listOf } from '../../lineslegend.js';
import { summary } from '../../stats.js';
import { looksOf } from '../../shift.js';
import { Plot } from './plot.js';

export class Lines extends Plot {
  constructor(owner, kind = 'line chart') {
    super(owner, kind);
    this.looks = new Looks();
    const list = listOf();
    owner.body.append(list);
    this.legend = new LinesLegend(list, { onToggle: (label, alone) => this.#toggle(label, alone), onPoint: (label) => this.chart.emphasise(label) }, () => this.draw(owner.lines, owner));
    this.legend.set(owner.panel.legend ?? '');
  }

  draw(lines, owner) {
    const names = lines.map((l) => l.label);
    const log = this.log(owner);
    const sides = lines.map((l) => l.right);
    const data = toColumns(lines.map((l) => ({ times: l.group.times, values: l.group.values, step: l.step })), log);
    const looks = looksOf(this.looks, lines);
    const units = [owner.panel.unit, owner.panel.rightUnit].map((u) => u ?? 'none');
    const rows = () => lines.map((l, i) => ({ label: l.label, look: looks[i], right: sides[i], unit: units[Number(sides[i])], ...summary(l.group, owner.range()) }));
    const hidden = new Set([...owner.hide, ...this.legend.left(rows)]);
    const style = this.style(data, sides, names.map((n) => hidden.has(n)), lines);
    this.paint({ labels: names, looks, sides, data, log, style, hidden }, plural(names.length, 'line'), () => this.legend.draw(this.picture, rows, owner.hide));
    this.showCursor();
  }

  // waiting says whether rows of the table are still to come; fit does not wait for them.
  waiting() { return this.legend.due !== null; }

  fit() {
    this.legend.fill();
    super.fit();
  }

  // log and style are what areas and bars have another of.
  log(owner) { return owner.chart.log; }

  style() { return null; }

  // showCursor tells the values at the one cross hair in every list, too.
  showCursor() {
    if (!this.picture) return;
    this.legend.values(this.cursor);
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
