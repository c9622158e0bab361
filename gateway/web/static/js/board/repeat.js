// Panels that are repeated for each value of a variable. The copies are on the page alone: the
// document has the panel once.

import { columns, settle } from './places.js';
import { all } from './variables.js';

export const repeatsAtMost = 50; // of one panel
const panelsAtMost = 600;        // with all their copies

// repeated returns the panels as the page shows them, each with the values that are its own
// (own), and with short where there would be too many. list(name) is what is known of all values.
export function repeated(panels, chosen, list) {
  const repeating = panels.filter((p) => p.repeat !== undefined).length;
  const most = Math.min(repeatsAtMost, 1 + Math.floor((panelsAtMost - panels.length) / repeating));
  const copies = new Map(panels.map((p) => [p.id, copiesOf(p, chosen, list, most)]));
  if ([...copies.values()].every((c) => c.length === 1)) return [...copies.values()].flat();
  const out = panels.flatMap((p) => {
    const { x, y, w, h } = p.place;
    // Those beside it keep their columns, and it goes down in its own; alone it fills its rows.
    const alone = panels.every((o) => o === p || o.place.y >= y + h || o.place.y + o.place.h <= y);
    const across = alone ? Math.max(1, Math.floor(columns / w)) : 1;
    const start = alone && copies.get(p.id).length > 1 && x + across * w > columns ? 0 : x;
    return copies.get(p.id).map((c, i) => ({ ...c, place: { x: start + (i % across) * w, y: below(y) + Math.floor(i / across) * h, w, h } }));
  });
  return settle(out);

  // below is where a row comes to lie when those above it are repeated.
  function below(row) {
    const ends = panels.filter((p) => p.place.y + p.place.h <= row).map((p) => copies.get(p.id).length * p.place.h);
    return row + ends.reduce((sum, n) => sum + n, 0);
  }
}

// copiesOf is a panel once for each of its values.
function copiesOf(panel, chosen, list, most) {
  const values = panel.repeat === undefined ? undefined : chosen[panel.repeat];
  if (!values) return [{ ...panel, own: {} }];
  const wanted = values[0] === all ? list(panel.repeat) : { values, whole: true };
  const unknown = wanted.others ? 'No series of the variable’s metric is known here: choose values by themselves.' : wanted.fault;
  if (wanted.values.length === 0 || unknown) return [{ ...panel, own: { [panel.repeat]: [] }, short: unknown || '' }];
  const taken = wanted.values.slice(0, most);
  const more = wanted.values.length > taken.length || !wanted.whole;
  return taken.map((value, i) => ({
    ...panel, id: i === 0 ? panel.id : `${panel.id}/${value}`, own: { [panel.repeat]: [value] },
    short: more && i === taken.length - 1 ? tooMany(taken.length, wanted) : '',
  }));
}

const tooMany = (n, { values, whole }) => `This panel is repeated for the first ${n} of ${whole ? values.length.toLocaleString('en') : `more than ${values.length.toLocaleString('en')}`} values: choose the others by themselves.`;
