// The grid of panels, and what becomes of the others when one is put somewhere.

export const columns = 12;
export const highest = 100; // rows of a panel

// columnsOf and rowsOf count what two places share; zero or less is nothing.
const columnsOf = (a, b) => Math.min(a.x + a.w, b.x + b.w) - Math.max(a.x, b.x);
const rowsOf = (a, b) => Math.min(a.y + a.h, b.y + b.h) - Math.max(a.y, b.y);

const overlap = (a, b) => columnsOf(a, b) > 0 && rowsOf(a, b) > 0;

// level reports whether two would stand next to each other: they share half the rows of the lower one.
const level = (a, b) => 2 * rowsOf(a, b) >= Math.min(a.h, b.h);

// inOrder is the order in which panels are read, and stand on a narrow screen: by rows.
export const inOrder = (panels) => [...panels].sort((a, b) => a.place.y - b.place.y || a.place.x - b.place.x);

// freePlace is the first place of a size without a panel, by rows, from a row on.
export function freePlace(panels, [w, h], from = 0) {
  const rows = [from, ...panels.map(({ place }) => place.y + place.h).filter((y) => y > from)].sort((a, b) => a - b);
  for (const y of rows) {
    for (let x = 0; x + w <= columns; x++) {
      const at = { x, y, w, h };
      if (!panels.some(({ place }) => overlap(at, place))) return at;
    }
  }
}

// settle gives each panel a place of its own: none overlaps another, and each is as high as
// those above it let it. The one that moves comes first: its y may be a fraction, by
// which it goes before or behind one whose middle is there.
export function settle(panels, moving = '') {
  const middle = (p) => p.place.y + p.place.h / 2;
  const order = [...panels].sort((a, b) => middle(a) - middle(b) || (b.id === moving) - (a.id === moving) || a.place.x - b.place.x);
  const placed = new Map();
  for (const p of order) {
    const at = { ...p.place, y: 0 };
    for (const other of placed.values()) if (columnsOf(at, other) > 0) at.y = Math.max(at.y, other.y + other.h);
    placed.set(p.id, at);
  }
  return panels.map((p) => ({ ...p, place: placed.get(p.id) }));
}

// put gives a panel another place. Those in its way go to the side where there is room, and else
// below it.
export function put(panels, id, place) {
  const was = panels.find((p) => p.id === id).place;
  const others = panels.filter((p) => p.id !== id);
  const { at, aside } = place.w > was.w ? pushing(others, was, place) : passing(others, was, place);
  return settle(panels.map((p) => ({ ...p, place: p.id === id ? at : aside.get(p.id) ?? p.place })), id);
}

const nobody = new Map();

// pushing is a panel that becomes wider: those right of it move on, if there is room for all.
function pushing(others, was, at) {
  const aside = new Map();
  const placed = [{ ...at, y: was.y }];
  const right = others.filter(({ place }) => place.x >= was.x + was.w).sort((a, b) => a.place.x - b.place.x);
  for (const { id, place } of right) {
    const x = Math.max(place.x, ...placed.filter((p) => rowsOf(p, place) > 0).map((p) => p.x + p.w));
    if (x + place.w > columns) return { at, aside: nobody };
    aside.set(id, { ...place, x });
    placed.push(aside.get(id));
  }
  return { at, aside };
}

// passing is a panel that goes sideways in its row: it stops at a neighbour until it is half over it.
// Then they change places.
function passing(others, was, at) {
  const met = others.filter(({ place }) => level(was, place) && level(at, place) && columnsOf(was, place) <= 0 && columnsOf(at, place) > 0);
  const passed = met.filter(({ place }) => 2 * columnsOf(at, place) >= Math.min(at.w, place.w));
  const right = at.x > was.x;
  const aside = new Map(passed.map(({ id, place }) => [id, { ...place, x: place.x + (right ? -was.w : was.w) }]));
  const taken = others.filter(({ id }) => !aside.has(id)).map((p) => p.place);
  if ([...aside.values()].some((place) => taken.some((other) => overlap(place, other)))) return { at, aside: nobody };
  let { x } = at;
  for (const { place } of passed) x = right ? Math.max(x, place.x + place.w - at.w) : Math.min(x, place.x);
  for (const { id, place } of met) if (!aside.has(id)) x = right ? Math.min(x, place.x - at.w) : Math.max(x, place.x + place.w);
  return { at: { ...at, x }, aside };
}

// moved is a panel one step further: 'left', 'right', 'up' or 'down'. Where a neighbour is next to it
// they change places.
export function moved(panels, id, way) {
  const at = panels.find((p) => p.id === id).place;
  const others = panels.filter((p) => p.id !== id).map((p) => p.place);
  if (way === 'left') {
    const next = others.filter((o) => level(o, at) && o.x + o.w === at.x);
    return put(panels, id, { ...at, x: Math.max(0, Math.min(at.x - 1, ...next.map((o) => o.x))) });
  }
  if (way === 'right') {
    const next = others.filter((o) => level(o, at) && at.x + at.w === o.x);
    return put(panels, id, { ...at, x: Math.min(columns - at.w, Math.max(at.x + 1, ...next.map((o) => o.x + o.w - at.w))) });
  }
  const above = others.filter((o) => columnsOf(o, at) > 0 && o.y < at.y).sort((a, b) => b.y - a.y);
  const below = others.filter((o) => columnsOf(o, at) > 0 && o.y > at.y).sort((a, b) => a.y - b.y);
  const [next] = way === 'up' ? above : below;
  if (!next) return panels;
  return put(panels, id, { ...at, y: next.y + next.h / 2 - at.h / 2 + (way === 'up' ? -0.5 : 0.5) });
}

// sizedTo is a place with another width and height, as far as the grid has them. Its middle stays
// while its turn is found, so that it does not go behind those below it.
export function sizedTo(at, width, height) {
  const w = Math.min(columns - at.x, Math.max(1, width));
  const h = Math.min(highest, Math.max(1, height));
  return { ...at, w, h, y: at.y - (h - at.h) / 2 };
}

// sized is a panel that is wider or higher by so much.
export function sized(panels, id, dw, dh) {
  const at = panels.find((p) => p.id === id).place;
  return put(panels, id, sizedTo(at, at.w + dw, at.h + dh));
}
