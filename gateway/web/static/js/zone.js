// Time zones and what people write for a time. A zone is an IANA name, or ''
// for the browser's own; times are seconds since 1970.

const units = { s: 1, m: 60, h: 3600, d: 86400, w: 604800, n: 2592000, y: 31536000 };
const relative = /^(\d+)([smhdwny])-ago$/;
const before = /^(?:now\s*-\s*)?(\d+)\s*([smhdwny])$/i; // as others write it: now-6h, 6h
const date = /^(\d{4})[-/](\d\d?)[-/](\d\d?)(?:[-T ](\d\d?):(\d\d)(?::(\d\d))?)?$/;

const clocks = new Map();

function clock(zone) {
  if (!clocks.has(zone)) {
    clocks.set(zone, new Intl.DateTimeFormat('en-US', {
      timeZone: zone || undefined, hourCycle: 'h23', era: 'short', year: 'numeric', month: '2-digit', day: '2-digit',
      hour: '2-digit', minute: '2-digit', second: '2-digit',
    }));
  }
  return clocks.get(zone);
}

// known tells whether the browser knows a zone.
export function known(zone) {
  try {
    return Boolean(clock(zone));
  } catch {
    return false;
  }
}

// wall is what a clock on the wall shows: {year, month, day, hour, minute,
// second}, each a text of fixed width.
export const wall = (seconds, zone) => Object.fromEntries(clock(zone).formatToParts(seconds * 1000).map((p) => [p.type, p.value]));

// offset is how far the zone's clock is ahead of UTC, in s.
function offset(seconds, zone) {
  const w = wall(seconds, zone);
  return Date.UTC(w.year, w.month - 1, w.day, w.hour, w.minute, w.second) / 1000 - Math.floor(seconds);
}

// parse reads 15m-ago, now, seconds or ms since 1970, 2026-11-21,
// 2026-11-21 10:30[:00], and OpenTSDB's 2026/11/21-10:30:00. null for others.
export function parse(text, now, zone) {
  const ago = relative.exec(text);
  if (ago) return now - ago[1] * units[ago[2]];
  if (text === 'now') return now;
  if (/^\d{9,}(\.\d+)?$/.test(text)) return text > 1e11 ? text / 1000 : Number(text);
  const d = date.exec(text);
  if (!d || d[4] > 23 || d[5] > 59 || d[6] > 59) return null;
  const shown = Date.UTC(d[1], d[2] - 1, d[3], d[4] || 0, d[5] || 0, d[6] || 0) / 1000;
  if (new Date(shown * 1000).getUTCDate() !== Number(d[3])) return null; // 30 February
  // The offset is that of the moment itself; where it has just changed, the
  // first guess is an hour off.
  const guess = shown - offset(shown, zone);
  return shown - offset(guess, zone);
}

// isShift reports whether a text is a time before, as 1d.
export const isShift = (text) => /^[1-9][0-9]{0,3}[mhdwny]$/.test(text);

export const isRelative = (text) => relative.test(text);

const day = 86400;
const midnight = (at, zone) => { const w = wall(at, zone); return parse(`${w.year}-${w.month}-${w.day}`, at, zone); };

// written reads what people write into a field for the start of a range, or its end (until): what parse does, 6h and now-6h,
// today and yesterday, which are whole days. It returns {text}, in the form of an address, '' for now, or {fault}.
export function written(text, now, zone, until = false) {
  const plain = text.trim().toLowerCase();
  if (plain === '' && !until) return { fault: 'There is no start: write 6h, yesterday or 2026-11-21 10:30.' };
  if (plain === '' || plain === 'now') return { text: until ? '' : String(Math.floor(now)) };
  const [, n, unit] = before.exec(plain) ?? relative.exec(plain) ?? [];
  if (n) return Number(n) > 0 ? { text: `${Number(n)}${unit}-ago` } : { fault: `“${text.trim()}” is no time ago: 1${unit} is the least.` };
  if (plain === 'today' || plain === 'yesterday') {
    const start = midnight(now, zone);
    const [from, to] = plain === 'today' ? [start, null] : [midnight(start - day / 2, zone), start];
    return { text: until ? (to === null ? '' : String(to)) : String(from) };
  }
  const seconds = parse(text.trim(), now, zone);
  return seconds === null ? { fault: whyNot(text.trim()) } : { text: String(Math.floor(seconds)) };
}

function whyNot(text) {
  const [, n, unit] = /^(?:now\s*-\s*)?(\d+)\s*([a-z]+)(?:-ago)?$/i.exec(text) ?? [];
  if (unit) return `“${unit}” is no unit of time: write s, m, h, d, w, n for months or y, as in ${n}h.`;
  const d = date.exec(text);
  if (d) return `${text} is not in the calendar, or on the clock.`;
  return `“${text}” is no time: write 6h, now-6h, yesterday or 2026-11-21 10:30.`;
}
