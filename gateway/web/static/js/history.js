// The charts that were looked at in this browser, the newest first.

const key = 'downpour.history';
export const historyAtMost = 30;
const longest = 8000; // letters of an address

// remembered is a list with one chart in front, {text, hash}: what it draws, and its address. Each stands there once.
export const remembered = (list, entry) => [entry, ...list.filter((e) => e.text !== entry.text)].slice(0, historyAtMost);

// readHistory takes what a browser has kept, which may be anything.
export function readHistory(text) {
  try {
    const list = JSON.parse(text ?? '[]');
    return Array.isArray(list) ? list.filter((e) => typeof e?.text === 'string' && typeof e.hash === 'string' && e.hash.startsWith('#')).slice(0, historyAtMost) : [];
  } catch {
    return [];
  }
}

// storedHistory is that of this browser. One that keeps nothing has none.
export function storedHistory() {
  try { return readHistory(localStorage.getItem(key)); } catch { return []; }
}

// remember keeps a chart.
export function remember(entry) {
  if (entry.hash.length > longest) return;
  const list = storedHistory();
  if (list[0]?.text === entry.text && list[0].hash === entry.hash) return;
  try { localStorage.setItem(key, JSON.stringify(remembered(list, entry))); } catch { /* it is full, or not allowed */ }
}

export function forgetHistory() {
  try { localStorage.removeItem(key); } catch { /* there is none */ }
}
