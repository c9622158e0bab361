// What a document was before each change, so that the last ones can be undone.

const most = 100; // steps

export class Undo {
  constructor() { this.steps = []; }

  // note keeps a document before a change, and what that is in words. Changes by one movement, or one
  // after the other of the same field, are one step: they have the same hold, which is not null.
  note(document, words, hold = null) {
    if (hold !== null && this.steps.at(-1)?.hold === hold) return;
    this.steps.push({ document, words, hold });
    if (this.steps.length > most) this.steps.shift();
  }

  // next is what would be undone, in words; '' for nothing.
  get next() { return this.steps.at(-1)?.words ?? ''; }

  // undo returns {document, words} of the last step, and forgets it.
  undo() { return this.steps.pop(); }

  clear() { this.steps = []; }
}
