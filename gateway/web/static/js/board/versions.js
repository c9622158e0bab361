// The versions of a dashboard that are kept, in a dialog. One of them is shown as a change of the one
// in force, which a save makes the newest.

import * as api from '../api.js';
import { make } from '../element.js';
import { plural, time } from '../format.js';

const $ = (id) => document.getElementById(id);

export class Versions {
  // onShow(text, number) gets the document of a version.
  constructor(onShow) {
    this.onShow = onShow;
    this.dialog = $('versions');
    $('versions-close').addEventListener('click', () => this.dialog.close());
    this.dialog.addEventListener('close', () => this.back?.focus());
  }

  // open lists the versions of a dashboard, of which one is in force.
  async open(name, current, back) {
    Object.assign(this, { name, current, back });
    $('versions-list').replaceChildren();
    this.#say('Asking…');
    this.dialog.showModal();
    try {
      const all = await api.dashboardVersions(name);
      $('versions-list').replaceChildren(...all.map((v) => this.#row(v)));
      this.#say('');
    } catch (error) {
      this.#say(error.status === 404 ? 'No version is saved yet.' : `The versions cannot be read: ${error.message}.`);
    }
  }

  #row(version) {
    const row = make('li');
    row.append(make('span', '', wordsOf(version, this.current)));
    if (!version.deleted && version.version !== this.current) {
      const button = make('button', '', 'Show');
      button.type = 'button';
      button.setAttribute('aria-label', `Show version ${version.version}`);
      button.addEventListener('click', () => this.#show(version.version));
      row.append(' ', button);
    }
    return row;
  }

  async #show(number) {
    try {
      const { text } = await api.dashboard(this.name, number);
      this.dialog.close();
      this.onShow(text, number);
    } catch (error) {
      this.#say(`Version ${number} cannot be read: ${error.message}.`);
    }
  }

  #say(text) { $('versions-said').textContent = text; }
}

// wordsOf is a version in words: {version, saved, by, title, panels, deleted}.
export function wordsOf({ version, saved, by, title, panels, deleted }, current) {
  const what = deleted ? 'deleted' : `${title || 'without a title'}, ${plural(panels, 'panel')}`;
  return `${version}${version === current ? ' (in force)' : ''} · ${time(Math.floor(Date.parse(saved) / 1000))}${by ? ` by ${by}` : ''} · ${what}`;
}
