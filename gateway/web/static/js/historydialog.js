// The list of charts that were looked at.

import { make } from './element.js';
import { forgetHistory, storedHistory } from './history.js';

const $ = (id) => document.getElementById(id);

export class HistoryDialog {
  constructor() {
    $('history-close').addEventListener('click', () => $('history').close());
    $('history-forget').addEventListener('click', () => { forgetHistory(); this.#draw(); });
    $('history').addEventListener('close', () => $('history-open').focus());
    // A link leads to another state of this page.
    $('history-list').addEventListener('click', (e) => { if (e.target.closest('a') && !(e.ctrlKey || e.metaKey || e.shiftKey)) $('history').close(); });
  }

  open() {
    this.#draw();
    $('history').showModal();
  }

  #draw() {
    const list = storedHistory();
    $('history-list').replaceChildren(...list.map(({ text, hash }) => {
      const item = make('li');
      const link = make('a', '', text);
      link.href = `/${hash}`;
      item.append(link);
      return item;
    }));
    $('history-said').textContent = list.length === 0 ? 'No chart yet.' : '';
    $('history-forget').disabled = list.length === 0;
  }
}
