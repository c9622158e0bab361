// Thresholds: from a value on up to the next, values of one axis have a colour. A document has them
// as a list of {value, colour, right}, in any order; in the editor they are a text, "80 amber, 95
// red, 5 red right".

export const most = 10;

// colours are the names that a document uses, each a colour of app.css.
export const colours = { green: '--good', amber: '--warn', red: '--bad', blue: '--accent' };

export const isThreshold = (t) => Number.isFinite(t?.value) && typeof t.colour === 'string' && Object.hasOwn(colours, t.colour) && ['undefined', 'boolean'].includes(typeof t.right);

// bandsOf returns [{from, to, colour}] of the left axis, or of the right one, ascending; the last
// reaches to Infinity. Of two with one value the later counts.
export function bandsOf(thresholds, right = false) {
  const own = thresholds.filter((t) => (t.right === true) === right);
  const list = [...new Map(own.map((t) => [t.value, t])).values()].sort((a, b) => a.value - b.value);
  return list.map(({ value, colour }, i) => ({ from: value, to: list[i + 1]?.value ?? Infinity, colour }));
}

// bandOf returns the band of a value of an axis, undefined below the lowest.
export const bandOf = (thresholds, v, right = false) => bandsOf(thresholds, right).find(({ from, to }) => v >= from && (v < to || to === Infinity));

export const format = (thresholds) => thresholds.map(({ value, colour, right }) => `${value} ${colour}${right ? ' right' : ''}`).join(', ');

// parse returns {thresholds} or {fault}.
export function parse(text) {
  const parts = text.split(',').map((p) => p.trim()).filter(Boolean);
  if (parts.length > most) return { fault: `There may be ${most} thresholds at most.` };
  const thresholds = parts.map((p) => {
    const [value, colour, side] = p.split(/\s+/);
    return { value: Number(value), colour, ...(side === 'right' ? { right: true } : {}) };
  });
  const wrong = parts.find((p, i) => !isThreshold(thresholds[i]) || p.split(/\s+/).length !== (thresholds[i].right ? 3 : 2));
  return wrong === undefined ? { thresholds } : { fault: `A threshold is a value and a colour, ${Object.keys(colours).join(', ')}, as in “80 amber, 95 red”: “${wrong}” is none.` };
}
