// Styles of a chart: what draws its lines where they are no lines. A style has a name; drawn, the
// columns where uPlot looks for its lines; line(stroke), options of a series; paths(plot, i), what
// is drawn of line i; and it may have under(plot), zero, fixed, exact, counts and span, for chart.js.

import { css, pale } from './look.js';
import { areas, bars, tops } from './stack.js';

// Paths keeps what was made for all lines at one look of a plot: uPlot asks for one at a time.
class Paths {
  constructor(make) { this.make = make; }

  of(plot, i) {
    const { bbox, scales: { x, y, y2 } } = plot;
    const look = [x, y, y2].flatMap((s) => [s?.min, s?.max]).concat(bbox.left, bbox.top, bbox.width, bbox.height).join();
    if (look !== this.look) [this.look, this.made] = [look, this.make(plot)];
    return this.made[i] ?? null;
  }
}

const path = (stroke, fill) => ({ stroke, fill, clip: null, band: null, gaps: null, flags: 0 });

const scaleOf = (side) => (side ? 'y2' : 'y');

// Areas are filled from one line to the next.
export class Areas {
  name = 'areas';
  zero = true;

  constructor(data, sides, hidden) {
    this.drawn = tops(data, sides, hidden, true);
    this.kept = new Paths((plot) => this.#make(plot, data, sides, hidden));
  }

  line(stroke) { return { fill: pale(stroke, 0.45), width: 1 }; }

  paths(plot, i) { return this.kept.of(plot, i); }

  #make(plot, data, sides, hidden) {
    const [made, ends] = [[], []];
    const [times] = data;
    areas(data, sides, hidden, (i, k, left, right) => {
      const { min, max } = plot.scales.x;
      if (times[k + 1] < min || times[k] > max) return;
      const { stroke, fill } = (made[i] ??= path(new Path2D(), new Path2D()));
      const [x0, x1] = [times[k], times[k + 1]].map((t) => plot.valToPos(t, 'x', true));
      const [b0, t0, b1, t1] = [...left, ...right].map((v) => plot.valToPos(v, scaleOf(sides[i]), true));
      fill.moveTo(x0, b0);
      for (const [x, y] of [[x0, t0], [x1, t1], [x1, b1]]) fill.lineTo(x, y);
      fill.closePath();
      if (ends[i] !== k || made[i].at !== t0) stroke.moveTo(x0, t0); // after a gap, and where those below have one
      stroke.lineTo(x1, t1);
      [ends[i], made[i].at] = [k + 1, t1];
    });
    return made;
  }
}

// Bars stand at the times of their points, as wide as most of step, in s.
export class Bars {
  name = 'bars';
  zero = true;

  constructor(data, sides, hidden, step) {
    this.drawn = tops(data, sides, hidden, false);
    this.kept = new Paths((plot) => this.#make(plot, data, sides, hidden, step));
  }

  line(stroke) { return { fill: pale(stroke, 0.75), width: 1, dash: [], points: { show: false } }; }

  paths(plot, i) { return this.kept.of(plot, i); }

  #make(plot, data, sides, hidden, step) {
    const made = [];
    const width = Math.max(devicePixelRatio, 0.8 * (plot.valToPos(step, 'x', true) - plot.valToPos(0, 'x', true)));
    bars(data, sides, hidden, (i, k, ends) => {
      const x = plot.valToPos(data[0][k], 'x', true);
      if (x + width < plot.bbox.left || x - width > plot.bbox.left + plot.bbox.width) return;
      const [from, to] = ends.map((v) => plot.valToPos(v, scaleOf(sides[i]), true));
      made[i] ??= path(null, new Path2D());
      made[i].fill.rect(x - width / 2, Math.min(from, to), width, Math.max(1, Math.abs(to - from)));
    });
    return made;
  }
}

// Cells are the rows and columns of a heat map of heat.js.
export class Cells {
  name = 'cells';
  exact = true; // the cursor reads the column that it is in
  counts = true;

  constructor(heat) {
    Object.assign(this, { heat, span: heat.width, fixed: heat.bounds });
    this.drawn = [heat.times, ...heat.rows.map(({ low, high, counts }) => counts.map((v) => (v == null ? v : (low + high) / 2)))];
  }

  line() { return { width: 0, points: { show: false } }; }

  paths() { return null; }

  under(plot) {
    const { heat: { times, rows, width }, heat } = this;
    const { ctx, bbox, scales: { x } } = plot;
    const colours = heat.levels.map((_, n) => css(colourOf(n, heat.levels.length)));
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const seam = devicePixelRatio; // between cells, where there is room
    for (const { low, high, counts } of rows) {
      const [bottom, top] = [low, high].map((v) => plot.valToPos(v, 'y', true));
      counts.forEach((count, k) => {
        if (!(count > 0) || times[k] + width < x.min || times[k] - width > x.max) return;
        const [left, right] = [-0.5, 0.5].map((half) => plot.valToPos(times[k] + half * width, 'x', true));
        ctx.fillStyle = colours[heat.levelOf(count)];
        ctx.fillRect(left, top, Math.max(1, right - left - (right - left > 6 * seam ? seam : 0)), Math.max(1, bottom - top - (bottom - top > 6 * seam ? seam : 0)));
      });
    }
    ctx.restore();
  }
}

const heats = 6;

// colourOf is the colour of a level of so many, of app.css.
export const colourOf = (level, levels) => `--h${levels === 1 ? heats - 1 : Math.round((level * (heats - 1)) / (levels - 1))}`;
