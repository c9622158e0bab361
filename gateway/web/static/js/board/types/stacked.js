// Stacked areas: lines that stand on each other, each axis with a stack of its own.

import { Areas } from '../../paint.js';
import { Lines } from './lines.js';

export class Stacked extends Lines {
  constructor(owner) { super(owner, 'chart of stacked areas'); }

  log() { return false; } // a sum has no place on a log scale

  style(data, sides, hidden) { return new Areas(data, sides, hidden); }
}
