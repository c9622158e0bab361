// Lines that stand on each other: what is below zero hangs below it, and each axis has a stack of
// its own. Columns are those of columns.js, sides say which rows are of the right axis, and hidden
// which are left out.

// filled is a row with a value at each time at which its line is drawn: at its points, and between
// two of them where the line does not break, on the straight line from one to the other.
export function filled(times, row) {
  const out = row.map((v) => v ?? null);
  let before = -1;
  row.forEach((v, i) => {
    if (v === undefined) return;
    if (v !== null && before >= 0 && i - before > 1) {
      for (let k = before + 1; k < i; k++) out[k] = row[before] + ((v - row[before]) * (times[k] - times[before])) / (times[i] - times[before]);
    }
    before = v === null ? -1 : i;
  });
  return out;
}

// A Pile is what stands at each of n places.
class Pile {
  constructor(n) { [this.above, this.below] = [new Float64Array(n), new Float64Array(n)]; }

  // put returns where a value comes to stand: [from, to].
  put(i, v) {
    const pile = v < 0 ? this.below : this.above;
    const from = pile[i];
    pile[i] += v;
    return [from, pile[i]];
  }
}

const shown = (rows, hidden, visit) => rows.forEach((row, i) => { if (!hidden[i]) visit(row, i); });

// areas calls visit(i, k, left, right) for each stretch of line i from time k to time k + 1, with
// [from, to] at both of its ends. Where a line has no value it adds nothing: not in a gap, not before
// its first point nor after its last. Those above it come down there at once, not on a slope.
export function areas([times, ...rows], sides, hidden, visit) {
  const piles = [0, 1].map(() => ({ left: new Pile(times.length), right: new Pile(times.length) }));
  shown(rows, hidden, (row, i) => {
    const { left, right } = piles[Number(sides[i])];
    const values = filled(times, row);
    for (let k = 0; k + 1 < times.length; k++) {
      if (values[k] !== null && values[k + 1] !== null) visit(i, k, left.put(k, values[k]), right.put(k, values[k + 1]));
    }
  });
}

// tops are the columns with each value where it comes to stand at its time. Lines with a course from
// one point to the next, which areas have and bars have not, have a value there, too: what stands
// on another may be highest between its own points.
export function tops([times, ...rows], sides, hidden, course) {
  const piles = [0, 1].map(() => new Pile(times.length));
  const out = rows.map((row) => row);
  shown(rows, hidden, (row, i) => {
    const values = course ? filled(times, row) : row;
    out[i] = row.map((v, k) => (values[k] == null ? v : piles[Number(sides[i])].put(k, values[k])[1]));
  });
  return [times, ...out];
}

// bars calls visit(i, k, [from, to]) for each point of line i, at time k.
export function bars([times, ...rows], sides, hidden, visit) {
  const piles = [0, 1].map(() => new Pile(times.length));
  shown(rows, hidden, (row, i) => row.forEach((v, k) => { if (v != null) visit(i, k, piles[Number(sides[i])].put(k, v)); }));
}
