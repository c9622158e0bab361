// Plot is what all panels with axes have: the canvas of the page's chart, the one cross hair, and the
// tooltip.

import { Chart } from '../../chart.js';
import { make } from '../../element.js';
import { value } from '../../format.js';
import { bandsOf } from '../../thresholds.js';
import { Tooltip } from '../../tooltip.js';

let made = 0; // plots, for ids of their own

export class Plot {
  // kind is what a screen reader calls it.
  constructor(owner, kind) {
    const { board, body } = owner;
    this.owner = owner;
    this.place = make('div', 'chart');
    this.place.tabIndex = 0;
    this.limits = make('p', 'limits hidden');
    this.limits.id = `limits-${++made}`;
    for (const [k, v] of [['role', 'group'], ['aria-roledescription', kind], ['aria-describedby', `keys ${this.limits.id}`]]) this.place.setAttribute(k, v);
    this.place.setAttribute('aria-label', owner.title.textContent);
    body.append(this.place, this.limits);
    this.tooltip = new Tooltip(this.place, () => {});
    this.chart = new Chart(this.place, {
      onZoom: (from, to) => board.zoom(from, to), onReset: () => board.reset(), onPin: () => {},
      onPan: (by) => board.pan(by), onMark: (from, to) => board.mark(from, to), mayMark: () => board.mayMark(),
      onRead: (text) => board.read(text), onDraw: () => {},
      onCursor: (c) => { this.cursor = c; this.showCursor(); },
    }, 'board');
    this.picture = null;
  }

  // paint shows a picture, whose frame is the panel's, and says in words what it is. What takes
  // room from the chart comes first, in beside(): a chart that changes its size is drawn twice.
  paint(picture, words, beside = () => {}) {
    const { owner } = this;
    const thresholds = owner.panel.thresholds ?? [];
    this.picture = {
      range: owner.range(), hidden: owner.hide, notes: [...owner.board.notes(), ...owner.ownNotes()], pins: [], zone: owner.view.tz, theme: owner.view.theme,
      units: [owner.panel.unit, owner.panel.rightUnit].map((u) => u ?? 'none'), thresholds, limits: [owner.panel.axis, owner.panel.rightAxis].map((a) => a ?? {}), ...picture,
    };
    this.place.setAttribute('aria-label', `${owner.title.textContent}, ${words}`);
    const said = (right) => bandsOf(thresholds, right).map(({ from, colour }) => `From ${value(from, this.picture.units[Number(right)])} on ${colour}${right ? ', on the right axis' : ''}.`);
    this.limits.textContent = [...said(false), ...said(true)].join(' ');
    this.place.toggleAttribute('data-empty', this.picture.data[0].length === 0);
    beside();
    this.chart.draw(this.picture);
  }

  move(range) {
    if (this.picture) this.chart.move(range);
  }

  // fit follows the size of the place at once.
  fit() { this.chart.fit(); }

  close() { this.chart.close(); }

  // showCursor tells the values beside the hand only where it is.
  showCursor() {
    if (this.picture) this.tooltip.show(this.place.matches(':hover, :focus') ? this.cursor : null, this.picture);
  }
}
