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

  // Between two gaps an area is one shape, along its tops and back along its bottoms: a shape for each
  // stretch takes the browser ten times as long.
  #make(plot, data, sides, hidden) {
    const made = [];
    const [times] = data;
    const { min, max } = plot.scales.x;
    const xs = times.map((t) => plot.valToPos(t, 'x', true));
    let shape = null; // {line, k, top, bottom, back}: up to place k, and what is to be gone back along
    const close = () => {
      if (!shape) return;
      const { line: { fill }, back } = shape;
      for (let n = back.length - 2; n >= 0; n -= 2) fill.lineTo(back[n], back[n + 1]);
      fill.closePath();
      shape = null;
    };
    areas(data, sides, hidden, (i, k, left, right) => {
      if (times[k + 1] < min || times[k] > max) return;
      const line = (made[i] ??= path(new Path2D(), new Path2D()));
      const y = (v) => plot.valToPos(v, scaleOf(sides[i]), true);
      const [b0, t0, b1, t1] = [y(left[0]), y(left[1]), y(right[0]), y(right[1])];
      if (shape?.line !== line || shape.k !== k) {
        close();
        shape = { line, back: [] };
        line.fill.moveTo(xs[k], t0);
        line.stroke.moveTo(xs[k], t0);
      } else if (shape.top !== t0) { // those below have a gap
        line.fill.lineTo(xs[k], t0);
        line.stroke.moveTo(xs[k], t0);
      }
      if (shape.bottom !== b0) shape.back.push(xs[k], b0);
      line.fill.lineTo(xs[k + 1], t1);
      line.stroke.lineTo(xs[k + 1], t1);
      shape.back.push(xs[k + 1], b1);
      [shape.k, shape.top, shape.bottom] = [k + 1, t1, b1];
    });
    close();
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
