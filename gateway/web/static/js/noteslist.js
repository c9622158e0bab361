// Annotations as a list below the charts, for those who do not see the marks in them.

import { plural, time } from './format.js';

// listNotes shows notes {time, text} in the element #notes-list, in a time zone.
export function listNotes(notes, zone) {
  const list = document.getElementById('notes-list');
  const texts = notes.map((n) => `${time(n.time, zone)} ${n.text}`);
  list.hidden = texts.length === 0;
  if (list.dataset.texts === texts.join('\n')) return;
  list.dataset.texts = texts.join('\n');
  list.querySelector('summary').textContent = plural(texts.length, 'annotation');
  list.querySelector('ul').replaceChildren(...texts.map((text) => Object.assign(document.createElement('li'), { textContent: text })));
}
