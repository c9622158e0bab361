// What an answer does not hold: the annotations in its range. Asked for while
// they are shown, once an answer is there and again for the newest part every minute.

import * as api from './api.js';
import { noting } from './query.js';

const again = 60_000; // ms
const overlap = 600;  // s before the last question: a note may be late

export class About {
  constructor(query, onChange) {
    Object.assign(this, { query, onChange, notes: new Map(), closed: false });
    this.#ask(query.start);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }

  async #ask(start) {
    const from = Math.floor(Date.now() / 1000) - overlap;
    try {
      if (!document.hidden) this.#take(await api.query(noting(this.query, start)), start);
    } catch { /* the answer itself tells what is wrong */ }
    if (this.closed || this.query.end !== undefined) return;
    this.timer = setTimeout(() => this.#ask(from), again);
  }

  #take(answer, start) {
    if (this.closed) return;
    if (start === this.query.start) this.notes.clear();
    for (const r of answer) for (const a of [...(r.annotations ?? []), ...(r.globalAnnotations ?? [])]) this.notes.set(`${a.tsuid} ${a.startTime}`, noteOf(a));
    this.onChange();
  }
}

const seconds = (t) => (t > 1e11 ? t / 1000 : t);

const noteOf = ({ tsuid, startTime, endTime, description, notes }) => ({ time: seconds(startTime), end: seconds(endTime ?? 0), own: Boolean(tsuid), text: description || notes || 'annotation' });

// merged are the notes of several, in order of time, each once, within a range.
export function merged(abouts, [from, to]) {
  const all = new Map(abouts.flatMap((a) => [...a.notes]));
  return [...all.values()].filter((n) => n.time >= from && n.time <= to).sort((a, b) => a.time - b.time);
}
