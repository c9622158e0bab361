// The documentation's search: as one types, sections that have all words take the place of the page.

import { make } from '../element.js';
import { find, prepare, said } from './search.js';

const input = document.getElementById('search');
const list = document.querySelector('#found ol');
const place = document.getElementById('found');
const page = document.getElementById('columns');
const status = document.getElementById('said');
const count = document.getElementById('count');

let index = null; // a promise of the prepared index, once somebody searches

// load gets the index. After a failure the next letter tries again.
function load() {
  index ??= fetch('/docs/search.json').then((r) => {
    if (!r.ok) throw new Error(`the server says ${r.status}`);
    return r.json();
  }).then(prepare);
  index.catch(() => { index = null; });
  return index;
}

// item is a result in the list.
function item({ section, pieces }) {
  const li = make('li');
  const link = make('a', '', section.h ?? section.p);
  link.href = section.a;
  li.append(link);
  if (section.h) li.append(make('span', 'page', ` in ${section.p}`));
  const text = make('p');
  for (const { text: words, hit } of pieces) text.append(hit ? make('mark', '', words) : words);
  li.append(text);
  return li;
}

async function search() {
  const question = input.value.trim();
  let result;
  try {
    result = question ? find(await load(), question) : null;
  } catch (error) {
    result = { count: 0, results: [], failed: `The search cannot be used: ${error.message}.` };
  }
  if (question !== input.value.trim()) return; // another letter has come meanwhile

  const words = result?.failed ?? (result ? said(result.count, question, result.all) : '');
  place.hidden = words === '';
  page.hidden = words !== '';
  list.replaceChildren(...(result?.results ?? []).map(item));
  count.textContent = words;
  announce(words);
}

// announce tells screen readers, once the typing has paused.
let later;
function announce(words) {
  clearTimeout(later);
  later = setTimeout(() => { status.textContent = words; }, 400);
}

const links = () => [...list.querySelectorAll('a')];

// move puts the focus on a result, or back into the field above the first.
function move(by) {
  const all = links();
  const at = all.indexOf(document.activeElement) + by;
  (at < 0 ? input : all[Math.min(at, all.length - 1)])?.focus();
}

function leave() {
  input.value = '';
  search();
  input.focus();
}

input.addEventListener('input', search);
input.addEventListener('focus', () => { load().catch(() => {}); });

document.addEventListener('keydown', (e) => {
  const typing = e.target === input;
  const inResults = place.contains(e.target);
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
  if (e.key === '/' && !typing) { input.focus(); input.select(); }
  else if (e.key === 'Escape' && (typing || inResults) && !place.hidden) leave();
  else if (e.key === 'ArrowDown' && (typing || inResults) && !place.hidden) move(1);
  else if (e.key === 'ArrowUp' && inResults) move(-1);
  else if (e.key === 'Enter' && typing) search().then(() => links()[0]?.click());
  else return;
  e.preventDefault();
});

// A result on the page that is shown is only another place of it.
list.addEventListener('click', (e) => {
  const link = e.target.closest('a');
  if (link && link.pathname === location.pathname) {
    input.value = '';
    search();
  }
});
