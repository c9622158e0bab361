// The chart as a file: CSV and PNG of what is drawn, Arrow as the server sends it.

import * as api from './api.js';
import { at, timesOf } from './datatable.js';
import { time } from './format.js';
import { css, lineStyle } from './look.js';

// csv has a line for each time in UTC and a column for each of lines, {label,
// group}; a value is written with all its digits, no value is empty.
export function csv(lines, range) {
  const rows = timesOf(lines, range).map((t) => [new Date(t * 1000).toISOString().replace('.000Z', 'Z'), ...lines.map((l) => text(at(l.group, t)))]);
  return [['time', ...lines.map((l) => l.label)], ...rows].map((r) => r.map(quoted).join(',') + '\r\n').join('');
}

const text = (v) => (v === null || v === undefined ? '' : String(v));

// quoted also guards against names that a spreadsheet would take for a formula.
function quoted(field, i) {
  const safe = /^[=+@\t\r]|^-\D/.test(field) ? "'" + field : field;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// png is a Blob: the plot on its ground, under a title, above the lines' names.
export async function png(canvas, title, picture) {
  const ratio = devicePixelRatio;
  const out = document.createElement('canvas');
  const [head, row] = [34 * ratio, 20 * ratio];
  const shown = picture.labels.map((label, i) => ({ label, look: picture.looks[i] })).filter((l) => !picture.hidden.has(l.label));
  out.width = canvas.width;
  const g = out.getContext('2d');
  const font = (size) => `${size * ratio}px system-ui, sans-serif`;
  g.font = font(12);
  const places = flow(shown.map((l) => g.measureText(l.label).width + 46 * ratio), out.width - 20 * ratio);
  out.height = head + canvas.height + (places.rows + 0.5) * row;
  g.fillStyle = css('--panel');
  g.fillRect(0, 0, out.width, out.height);
  g.fillStyle = css('--text');
  g.font = font(14);
  g.fillText(title, 10 * ratio, 22 * ratio);
  g.drawImage(canvas, 0, head);
  g.font = font(12);
  shown.forEach((l, i) => name(g, l, 10 * ratio + places.at[i][0], head + canvas.height + (places.at[i][1] + 0.6) * row, ratio));
  return new Promise((resolve) => { out.toBlob(resolve, 'image/png'); });
}

// flow puts widths into rows of a width.
function flow(widths, width) {
  let [x, rows] = [0, 0];
  const at = widths.map((w) => {
    if (x > 0 && x + w > width) [x, rows] = [0, rows + 1];
    x += w;
    return [x - w, rows];
  });
  return { at, rows: rows + 1 };
}

function name(g, { label, look }, x, y, ratio) {
  const { colour, dash } = lineStyle(look);
  g.strokeStyle = css(colour);
  g.lineWidth = 2.5 * ratio;
  g.setLineDash(dash.map((d) => d * ratio));
  g.beginPath();
  g.moveTo(x, y);
  g.lineTo(x + 22 * ratio, y);
  g.stroke();
  g.setLineDash([]);
  g.fillStyle = css('--text');
  g.fillText(label, x + 28 * ratio, y + 4 * ratio);
}

// arrow asks the server for queries, bodies of POST /api/query over the same
// range, as one IPC stream.
export const arrow = (queries) => api.arrow({ ...queries[0], queries: queries.flatMap((q) => q.queries) });

// save hands a file to the browser.
export function save(blob, kind, metric, from, zone) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = `${metric.replace(/[^\w.-]+/g, '_') || 'chart'}-${time(Math.floor(from), zone).replace(' ', 'T').replaceAll(':', '')}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
