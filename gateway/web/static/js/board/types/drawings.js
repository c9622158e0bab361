// What draws the panels of each type of types.js.

import { Bars } from './bars.js';
import { HeatMap } from './heatmap.js';
import { Lines } from './lines.js';
import { Single } from './number.js';
import { Stacked } from './stacked.js';
import { Table } from './table.js';
import { Text } from './text.js';
import { Unknown } from './unknown.js';

export const drawings = { lines: Lines, stacked: Stacked, bars: Bars, heatmap: HeatMap, number: Single, table: Table, text: Text };

// drawingOf returns the class for a type. Its objects have draw(lines, panel), and may have
// move(range), which follows the time, and close().
export const drawingOf = (type) => (Object.hasOwn(drawings, type) ? drawings[type] : Unknown);
