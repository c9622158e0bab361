// Bars: one for each time, in which the lines stand on each other.

import { Bars as Painted } from '../../paint.js';
import { Lines, leastStep } from './lines.js';

export class Bars extends Lines {
  constructor(owner) { super(owner, 'bar chart'); }

  log() { return false; }

  style(data, sides, hidden, lines) {
    const [from, to] = this.owner.range();
    const step = leastStep(lines);
    return new Painted(data, sides, hidden, step < Infinity ? step : (to - from) / 60);
  }
}
