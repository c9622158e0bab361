// Annotations of no series: read once for all charts of a page, shown on each, and made by a drag
// on one where the token may.

import * as api from './api.js';
import { time } from './format.js';
import { listNotes } from './noteslist.js';
import { parse, written } from './zone.js';

const $ = (id) => document.getElementById(id);

const again = 60_000; // ms
const textAtMost = 1000;

const seconds = (t) => (t > 1e11 ? t / 1000 : t);

export class Notes {
  // onChange() hears of others.
  constructor(onChange) {
    this.onChange = onChange;
    this.all = [];
    this.may = false; // the token may make some
    $('annotate').addEventListener('click', () => this.#now());
    $('note-cancel').addEventListener('click', () => $('note').close());
    $('note-form').addEventListener('submit', (e) => { e.preventDefault(); this.#save(); });
    $('note-text').addEventListener('keydown', (e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); this.#save(); } });
    $('note').addEventListener('close', () => this.back?.focus());
  }

  // show asks for those of a view that is not asked for yet: from and to in seconds.
  show(view, [from, to]) {
    this.view = view;
    this.range = [from, to];
    const live = !view.end && view.pause === null;
    const asked = JSON.stringify([view.start, view.end, view.pause]);
    if (asked === this.asked) return;
    this.asked = asked;
    this.#ask(Math.floor(from), live ? null : Math.ceil(to));
  }

  // forget asks again, as with another token.
  forget() { this.asked = ''; }

  async #ask(from, to) {
    clearTimeout(this.timer);
    const { asked } = this;
    try {
      if (!document.hidden) {
        const { notes, may } = await api.globalAnnotations(from, to);
        if (asked !== this.asked) return;
        this.#take(notes, may);
      }
    } catch {
      // A gateway that has none, as in mode ro, and one that is lost: the status says so.
      if (asked !== this.asked) return;
    }
    if (to === null) this.timer = setTimeout(() => this.#ask(from, to), again);
  }

  #take(notes, may) {
    this.may = may;
    $('annotate').hidden = !may;
    const before = JSON.stringify(this.all);
    this.all = notes.map((n) => ({ time: seconds(n.startTime), end: seconds(n.endTime ?? 0), text: n.description || n.notes || 'annotation' })).sort((a, b) => a.time - b.time);
    if (JSON.stringify(this.all) !== before) this.onChange(); // all charts are drawn again
  }

  // list shows them, with those of series, each once.
  list(own) {
    const all = new Map([...this.all, ...own].map((n) => [`${n.time} ${n.text}`, n]));
    listNotes([...all.values()].sort((a, b) => a.time - b.time), this.view.tz);
  }

  #now() {
    const { zoom, pause } = this.view;
    this.open(...(zoom ?? [pause ?? Math.floor(Math.min(Date.now() / 1000, this.range[1])), 0]));
  }

  // open asks for the text of a new annotation.
  open(from, to) {
    if (!this.may) return;
    this.back = document.activeElement;
    $('note-from').value = time(from, this.view.tz);
    $('note-to').value = to > from ? time(to, this.view.tz) : '';
    $('note-text').value = '';
    $('note-fault').textContent = '';
    $('note').showModal();
    $('note-text').focus();
  }

  async #save() {
    const now = Date.now() / 1000;
    const at = (id) => { const text = $(id).value.trim(); return text === '' ? { seconds: 0 } : secondsOf(written(text, now, this.view.tz, id === 'note-to'), now, this.view.tz); };
    const [start, end, text] = [at('note-from'), at('note-to'), $('note-text').value.trim()];
    const [from, to] = [start.seconds, end.seconds];
    $('note-fault').textContent = start.fault ?? end.fault ?? faultOfNote(from, to, text);
    if ($('note-fault').textContent) return;
    try {
      // One that is there at the same second would be changed.
      const { notes } = await api.globalAnnotations(from, from);
      const [there] = notes.filter((n) => seconds(n.startTime) === from);
      if (there) {
        $('note-fault').textContent = `At this second there is an annotation already: “${there.description}”. Choose another time.`;
        return;
      }
      await api.annotate({ startTime: from, ...(to > 0 ? { endTime: to } : {}), description: text });
      $('note').close();
      this.forget();
      this.show(this.view, this.range);
    } catch (error) {
      $('note-fault').textContent = `Not saved: ${error.message}.`;
    }
  }
}

const secondsOf = ({ text, fault }, now, zone) => (fault ? { fault } : { seconds: Math.floor(parse(text || 'now', now, zone)) });

// faultOfNote says what is wrong with a new annotation, '' for nothing.
export function faultOfNote(from, to, text) {
  if (from <= 0) return 'From is no time: write it as 2026-11-21 10:30.';
  if (to < 0) return 'To is no time: write it as 2026-11-21 10:30, or leave it empty.';
  if (to > 0 && to < from) return 'It ends before it begins.';
  if (text === '') return 'It has no text.';
  return [...text].length > textAtMost ? `The text has more than ${textAtMost} characters.` : '';
}
