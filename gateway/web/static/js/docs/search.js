// What the search of the documentation finds. The index is a list of sections, {a: address, p: title
// of the page, h: heading, if it has one of its own, t: text}.

const most = 40;    // results
const enough = 0.5; // of the words, weighed by how rare they are

// What stands in every question says nothing of its subject.
const empty = new Set(('a about an and any are as at be but by can could did do does doing for from had has have how i if in into is it its me my need no not of on or our out'
  + ' should so that the their them then there these they this to up use using want was we were what when where which who why will with would you your').split(' '));

// wordsOf are the words of a question that say something, in small letters. What is no letter or digit ends
// a word, except for what names of settings, routes and metrics have inside. A single letter is no word.
export function wordsOf(question) {
  const all = (question.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}_./-]*/gu) ?? []).map((w) => w.replace(/[./-]+$/, '')).filter((w) => w.length > 1);
  const telling = all.filter((w) => !empty.has(w));
  return [...new Set(telling.length > 0 ? telling : all)];
}

const quoted = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&').replaceAll('-', '[- ]');

// formsOf is an expression for a word in the forms of English: delete, deletes, deleted, deleting, deletion;
// query, queries. A name stands for itself.
export function formsOf(word) {
  if (!/^[a-z]{3,}$/.test(word)) return quoted(word);
  const y = /^(.{2,}[^aeiou])(?:y|ies)$/.exec(word);
  if (y) return `${y[1]}(?:y|ies)`;
  const ends = [/^(.{5,})ions?$/, /^(.{4,}?)(?:ing|ed|es|e|(?<!s)s)$/, /^(.{2,}e)[ds]$/, /^(.{3,})(?<!s)s$/];
  const stem = ends.map((end) => end.exec(word)?.[1]).find(Boolean) ?? word;
  if (stem.length > 4) return `${stem}(?:e|e?s|e?d|ing|ions?)?`;
  return stem.length > 3 ? `${stem}(?:e|e?s|e?d|ing)?` : `${stem}[sd]?`;
}

// alone is an expression for what is no part of a longer word.
const alone = (forms) => new RegExp(`(?<![\\p{L}\\p{N}])(?:${forms})(?![\\p{L}\\p{N}])`, 'giu');

const count = (text, pattern) => text.match(pattern)?.length ?? 0;

// prepare returns an index with what the search needs of all of it.
export const prepare = (index) => ({ sections: index, length: index.reduce((sum, s) => sum + s.t.length, 0) / Math.max(1, index.length) });

// patternsOf returns an expression for each word of a question. One that stands nowhere, as while it is
// being typed, is the beginning of others.
function patternsOf(question, { sections }) {
  const anywhere = (pattern) => sections.some((s) => [s.p, s.h ?? '', s.t].some((text) => text.search(pattern) >= 0));
  return wordsOf(question).map((word) => [alone(formsOf(word)), alone(`${quoted(word)}[\\p{L}\\p{N}]*`)]).map(([whole, beginning]) => (anywhere(whole) ? whole : beginning));
}

// Fields of a section: what a word in it is worth. A page's title is that of all its sections, and says
// most of the first.
const worth = { page: 3, section: 1, heading: 4, text: 1 };

// rated is how much a section has of each pattern: [0, …] where it has none.
function rated(section, patterns, length) {
  return patterns.map((pattern) => {
    const n = count(section.t, pattern);
    // Words that come often count more, but ever less so, and in a long text less than in a short one.
    const text = n && (2.2 * n) / (n + 1.2 * (0.25 + (0.75 * section.t.length) / length));
    const title = section.p.search(pattern) >= 0 ? (section.h ? worth.section : worth.page) : 0;
    const heading = section.h && section.h.search(pattern) >= 0 ? worth.heading : 0;
    // Many pages name a setting, and one says what each means.
    const setting = n > 0 && section.p === 'Settings' && pattern.source.includes('downpour_') ? worth.heading : 0;
    return worth.text * text + title + heading + setting;
  });
}

// find returns {count, results, all}: the sections that have the words of a question, the best first. Those that
// lack only what stands nearly everywhere are among them; all says that one has every word.
export function find(prepared, question) {
  const patterns = patternsOf(question, prepared);
  const found = prepared.sections.map((section) => ({ section, parts: rated(section, patterns, prepared.length) }));
  const rarity = patterns.map((_, i) => Math.log(1 + found.length / (1 + found.filter((f) => f.parts[i] > 0).length)));
  const had = ({ parts }) => parts.reduce((n, p, i) => n + (p > 0 ? rarity[i] : 0), 0);
  const best = found.reduce((n, f) => Math.max(n, had(f)), 0);
  if (best === 0) return { count: 0, results: [], all: true };
  const all = found.filter((f) => had(f) >= enough * best).map((f) => {
    const sum = f.parts.reduce((n, p, i) => n + p * rarity[i], 0);
    return { ...f, value: sum * (had(f) / best) ** 2 };
  });
  all.sort((a, b) => b.value - a.value); // stable: of equal ones the order of the index
  return {
    count: all.length, all: all.some((f) => f.parts.every((p) => p > 0)),
    results: all.slice(0, most).map(({ section }) => ({ section, pieces: pieces(section.t, patterns) })),
  };
}

// excerpt is a part of a text where most of some words stand, as pieces {text, hit}.
export const excerpt = (text, words, length) => pieces(text, words.map((w) => alone(formsOf(w))), length);

function pieces(text, patterns, length = 180) {
  const hits = patterns.flatMap((pattern, of) => [...text.matchAll(pattern)].map((m) => ({ at: m.index, end: m.index + m[0].length, of }))).sort((a, b) => a.at - b.at || b.end - a.end);
  // The words that are within the length of one, from the first place that has most.
  const near = hits.map((h, i) => {
    const seen = new Set();
    for (let k = i; k < hits.length && hits[k].end <= h.at + length - 50; k++) seen.add(hits[k].of);
    return seen.size;
  });
  const first = hits[near.indexOf(Math.max(...near))]?.at ?? 0;
  let from = Math.max(0, first - 50);
  if (from > 0) from = text.indexOf(' ', from) + 1;
  const end = Math.min(text.length, from + length);

  const out = [];
  const add = (part, hit) => { if (part) out.push({ text: part, hit }); };
  if (from > 0) add('… ', false);
  let rest = from;
  for (const h of hits) {
    if (h.at < rest || h.end > end) continue;
    add(text.slice(rest, h.at), false);
    add(text.slice(h.at, h.end), true);
    rest = h.end;
  }
  add(text.slice(rest, end), false);
  if (end < text.length) add(' …', false);
  return out;
}

// said is what a screen reader hears of the results; all says that they have all words.
export function said(n, question, all = true) {
  if (wordsOf(question).length === 0) return '';
  if (n === 0) return `Nothing is found for “${question}”.`;
  const shown = n > most ? `, the best ${most} are shown` : '';
  const sections = `${n} ${n === 1 ? 'section' : 'sections'} found for “${question}”${shown}.`;
  return all ? sections : `${sections} None has all words.`;
}
