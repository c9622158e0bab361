// The dialog in which one chooses the dashboard that gets the chart of the page.

import * as api from './api.js';
import { make } from './element.js';
import { options } from './queryrow.js';

const $ = (id) => document.getElementById(id);

const none = '';

export class AddingDialog {
  // stateOf() is the state of the page; onDone(nodes) gets what is said then.
  constructor(stateOf, onDone) {
    Object.assign(this, { stateOf, onDone });
    $('adding-to').addEventListener('change', () => this.#show());
    $('adding-cancel').addEventListener('click', () => $('adding').close());
    $('adding-form').addEventListener('submit', (e) => { e.preventDefault(); this.#add(); });
    $('adding').addEventListener('close', () => $('to-dashboard').focus());
  }

  async open() {
    $('adding-fault').textContent = '';
    $('adding-panel').value = this.stateOf().queries.map((q) => q.metric).filter(Boolean).join(', ').slice(0, 200);
    $('adding-name').value = '';
    try {
      ({ dashboards: this.all } = await api.startPage());
    } catch (error) {
      this.all = [];
      $('adding-fault').textContent = `The dashboards cannot be listed: ${error.message}.`;
    }
    options($('adding-to'), [...this.all.map((d) => [d.name, d.title || d.name]), [none, 'a new one']]);
    $('adding-to').selectedIndex = 0;
    this.#show();
    $('adding').showModal();
    ($('adding-to').value === none ? $('adding-name') : $('adding-to')).focus();
  }

  #show() { $('adding-new').hidden = $('adding-to').value !== none; }

  async #add() {
    const isNew = $('adding-to').value === none;
    const title = isNew ? $('adding-name').value.trim() : this.all.find((d) => d.name === $('adding-to').value).title;
    if (isNew && title === '') return this.#refuse('A new dashboard has a title.', $('adding-name'));
    $('adding-done').disabled = true;
    try {
      // Only who adds a chart waits for what knows documents.
      const [{ add }, { nameOf }] = await Promise.all([import('./board/adding.js'), import('./board/names.js')]);
      const name = isNew ? nameOf(title, this.all.map((d) => d.name)) : $('adding-to').value;
      await add({ name, title, isNew }, this.stateOf(), $('adding-panel').value.trim());
      $('adding').close();
      const link = make('a', '', title || name);
      link.href = `/d/${name}`;
      this.onDone(['Added to ', link, '.']);
    } catch (error) {
      this.#refuse(`Not added: ${error.message}.`, $('adding-done'));
    } finally {
      $('adding-done').disabled = false;
    }
  }

  #refuse(text, field) {
    $('adding-fault').textContent = text;
    field.focus();
  }
}
