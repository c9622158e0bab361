// Time zones and what people write for a time. A zone is an IANA name, or ''
// for the browser's own; times are seconds since 1970.

const units = { s: 1, m: 60, h: 3600, d: 86400, w: 604800, n: 2592000, y: 31536000 };
const relative = /^(\d+)([smhdwny])-ago$/;
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
  if (!d) return null;
  const shown = Date.UTC(d[1], d[2] - 1, d[3], d[4] || 0, d[5] || 0, d[6] || 0) / 1000;
  if (new Date(shown * 1000).getUTCDate() !== Number(d[3])) return null; // 30 February
  // The offset is that of the moment itself; where it has just changed, the
  // first guess is an hour off.
  const guess = shown - offset(shown, zone);
  return shown - offset(guess, zone);
}

// isShift tells whether a text is a time before, as 1d.
export const isShift = (text) => /^[1-9][0-9]{0,3}[mhdwny]$/.test(text);

export const isRelative = (text) => relative.test(text);
