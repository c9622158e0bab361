// Unknown stands for what a later release may draw. It stays in the document as it is.

import { make } from '../../element.js';

export class Unknown {
  constructor({ body, panel }) { body.append(make('p', 'text', `Unknown panel: this release does not draw “${panel.type}”. It is kept as it is.`)); }

  draw() {}
}
