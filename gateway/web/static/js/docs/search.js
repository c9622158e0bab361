// What the search of the documentation finds. The index is a list of sections, {a: address, p: title
// of the page, h: heading, if it has one of its own, t: text}.

const most = 40; // results

// wordsOf are the words of a question, in small letters. What is no letter or digit ends a word, but
// for what names of settings, routes and metrics have inside.
export const wordsOf = (question) => (question.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}_./-]*/gu) ?? [])
  .map((w) => w.replace(/[./-]+$/, '')).filter(Boolean);

// place is where a word begins in a text, or -1. A word counts where one of the text begins with it.
// From three letters on it counts inside of words, too, but only where no word begins with it.
function place(text, word) {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1])) return { at, whole: true };
  }
  const at = word.length >= 3 ? text.indexOf(word) : -1;
  return { at, whole: false };
}

// worth is how much a section has of the words: 0 if it lacks one. Titles count more than headings,
// and these more than texts, and most what has the question as it is asked; of equal texts a short one
// counts a little more.
function worth(small, words, question) {
  let sum = 0;
  for (const word of words) {
    let best = 0;
    for (const [field, weight] of [['p', 12], ['h', 8], ['t', 2]]) {
      const { at, whole } = place(small[field], word);
      if (at < 0) continue;
      best += weight * (whole ? 2 : 1);
      if (small[field] === word) best += weight * 2;
    }
    if (best === 0) return 0;
    // Many pages name a setting, and one says what each means.
    if (small.p === 'settings' && word.startsWith('downpour_')) best += 12;
    sum += best;
  }
  if (words.length > 1) {
    for (const [field, weight] of [['p', 40], ['h', 40], ['t', 4]]) if (small[field].includes(question)) sum += weight;
  }
  return sum + 1 / (1 + small.t.length / 2000);
}

// prepare returns an index with what the search compares, in small letters.
export const prepare = (index) => index.map((section) => ({
  section,
  small: { p: section.p.toLowerCase(), h: (section.h ?? '').toLowerCase(), t: section.t.toLowerCase() },
}));

// find returns {count, results}: the sections that have all words of the question, the best first.
export function find(prepared, question) {
  const words = wordsOf(question);
  if (words.length === 0) return { count: 0, results: [] };
  const all = [];
  const asked = question.trim().toLowerCase();
  for (const { section, small } of prepared) {
    const value = worth(small, words, asked);
    if (value > 0) all.push({ section, value });
  }
  all.sort((a, b) => b.value - a.value); // stable: of equal ones the order of the index
  return { count: all.length, results: all.slice(0, most).map(({ section }) => ({ section, pieces: excerpt(section.t, words) })) };
}

// excerpt is a part of a text around the first of the words, as pieces {text, hit}.
export function excerpt(text, words, length = 180) {
  const small = text.toLowerCase();
  const places = words.map((w) => place(small, w).at).filter((at) => at >= 0);
  let from = Math.max(0, (places.length ? Math.min(...places) : 0) - 50);
  if (from > 0) from = text.indexOf(' ', from) + 1;
  const end = Math.min(text.length, from + length);
  const cut = text.slice(from, end);

  const pieces = [];
  if (from > 0) pieces.push({ text: '… ', hit: false });
  let rest = 0;
  for (const { at, size } of hits(cut.toLowerCase(), words)) {
    if (at < rest) continue;
    if (at > rest) pieces.push({ text: cut.slice(rest, at), hit: false });
    pieces.push({ text: cut.slice(at, at + size), hit: true });
    rest = at + size;
  }
  if (rest < cut.length) pieces.push({ text: cut.slice(rest), hit: false });
  if (end < text.length) pieces.push({ text: ' …', hit: false });
  return pieces;
}

// hits are all places of the words in a text, in order.
function hits(small, words) {
  const all = [];
  for (const word of words) {
    for (let at = small.indexOf(word); at >= 0; at = small.indexOf(word, at + word.length)) all.push({ at, size: word.length });
  }
  return all.sort((a, b) => a.at - b.at || b.size - a.size);
}

// said is what a screen reader hears of the results.
export function said(count, question) {
  if (wordsOf(question).length === 0) return '';
  if (count === 0) return `Nothing is found for “${question}”.`;
  const shown = count > most ? `, the best ${most} are shown` : '';
  return `${count} ${count === 1 ? 'section' : 'sections'} found for “${question}”${shown}.`;
}
