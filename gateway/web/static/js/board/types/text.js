// Text is shown as it is written.

import { make } from '../../element.js';

export class Text {
  constructor({ body, panel }) {
    const text = make('p', 'text', panel.text ?? '');
    text.tabIndex = 0; // a long one is scrolled by keys
    body.append(text);
  }

  draw() {}
}
