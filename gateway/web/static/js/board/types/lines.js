// Lines are the chart of the page, with its legend.

import { Chart } from '../../chart.js';
import { Looks, toColumns } from '../../columns.js';
import { make } from '../../element.js';
import { plural } from '../../format.js';
import { Legend } from '../../legend.js';
import { Tooltip } from '../../tooltip.js';

export class Lines {
  constructor(owner) {
    const { board, body } = owner;
    this.owner = owner;
    this.looks = new Looks();
    this.place = make('div', 'chart');
    this.place.tabIndex = 0;
    for (const [k, v] of [['role', 'group'], ['aria-roledescription', 'line chart'], ['aria-describedby', 'keys']]) this.place.setAttribute(k, v);
    const list = make('ul', 'legend');
    list.setAttribute('aria-label', 'Lines');
    body.append(this.place, list);
    this.tooltip = new Tooltip(this.place, () => {});
    this.chart = new Chart(this.place, {
      onZoom: (from, to) => board.zoom(from, to), onReset: () => board.reset(), onPause: () => board.pause(), onPin: () => {},
      onRead: (text) => board.read(text), onDraw: () => {},
      onCursor: (c) => { this.cursor = c; this.#showCursor(); },
    }, 'board');
    this.legend = new Legend(list, (label, alone) => this.#toggle(label, alone), (label) => this.chart.emphasise(label));
    this.picture = null;
  }

  draw(lines, owner) {
    const names = lines.map((l) => l.label);
    const { log } = owner.chart;
    this.picture = {
      labels: names, looks: this.looks.assign(names), sides: lines.map((l) => l.right), range: owner.range(), hidden: owner.hide, notes: [], pins: [],
      data: toColumns(lines.map((l) => ({ times: l.group.times, values: l.group.values, step: l.step })), log), log, zone: owner.view.tz, theme: owner.view.theme,
    };
    this.place.setAttribute('aria-label', `${owner.title.textContent}, ${plural(names.length, 'line')}`);
    this.place.toggleAttribute('data-empty', this.picture.data[0].length === 0);
    this.chart.draw(this.picture);
    this.legend.draw(this.picture);
    this.#showCursor();
  }

  move(range) {
    if (this.picture) this.chart.move(range);
  }

  close() { this.chart.close(); }

  // showCursor tells the values at the one cross hair in every legend, and beside the hand only
  // where it is.
  #showCursor() {
    if (!this.picture) return;
    this.legend.values(this.picture.data, this.cursor);
    this.tooltip.show(this.place.matches(':hover, :focus') ? this.cursor : null, this.picture);
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
