// A heat map: how many points lie where, as colours, with a legend of these. It counts the values of
// all lines, or shows the buckets of histograms.

import { drawn, make } from '../../element.js';
import { plural, value } from '../../format.js';
import { byValue, isBucket, ofBuckets } from '../../heat.js';
import { Cells, colourOf } from '../../paint.js';
import { Plot } from './plot.js';

export class HeatMap extends Plot {
  constructor(owner) {
    super(owner, 'heat map');
    this.levels = make('ul', 'legend levels');
    this.levels.setAttribute('aria-label', 'Points in a cell');
    owner.body.append(this.levels);
  }

  draw(lines, owner) {
    const { log } = owner.chart;
    const { unit = 'none' } = owner.panel;
    const groups = lines.map((l) => ({ metric: l.group.metric, times: l.group.times, values: l.group.values, step: l.step }));
    const histograms = groups.length > 0 && groups.every(isBucket);
    const heat = (histograms ? ofBuckets : byValue)(groups, owner.range(), { log, unit, text: (v) => value(v, unit) });
    const labels = heat.rows.map((r) => r.label);
    this.paint({
      labels, looks: labels.map(() => 0), sides: labels.map(() => false), hidden: new Set(), log, style: new Cells(heat),
      data: heat.rows.length > 0 ? [heat.times, ...heat.rows.map((r) => r.counts)] : [[]],
      sampleOf: (look, count) => swatch(heat.levelOf(count), heat.levels.length),
    }, `${plural(lines.length, histograms ? 'bucket' : 'line')} in ${plural(labels.length, 'row')}`, () => {
      owner.remark('one', !histograms && lines.length === 1 ? 'This is one line: a heat map counts the points of many. Split it by a tag, or draw lines' : '');
      owner.remark('log', heat.lost > 0 ? `${plural(heat.lost, 'point')} at or below zero: not on a log scale` : '');
      this.#drawLevels(heat);
    });
    this.showCursor();
  }

  #drawLevels({ levels }) {
    const text = JSON.stringify(levels);
    if (text === this.shown) return;
    this.shown = text;
    this.levels.replaceChildren(...levels.map((least, i) => {
      const item = make('li');
      item.append(swatch(i, levels.length), make('span', '', said(levels, i)));
      return item;
    }));
  }
}

// said is a level in words: one count, or from the least to the greatest.
function said(levels, i) {
  const [least, next] = [levels[i], levels[i + 1]];
  if (next === undefined) return i === 0 && Number.isInteger(least) ? `${least}` : `${value(least)} or more`;
  if (!levels.every(Number.isInteger)) return `to ${value(next)}`;
  return next - least === 1 ? `${least}` : `${value(least)}–${value(next - 1)}`;
}

function swatch(level, levels) {
  const picture = drawn('svg', { width: 12, height: 12, 'aria-hidden': 'true' });
  picture.append(drawn('rect', { width: 12, height: 12, fill: `var(${colourOf(level, levels)})` }));
  return picture;
}
