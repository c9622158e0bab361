// A panel of a dashboard in a page of others. It lies in a shadow tree, where the styles of that
// page do not reach it, and is drawn as on its own dashboard.

import { make } from '../element.js';
import { colouredBy } from '../look.js';
import { describe } from '../messages.js';
import { panned } from '../state.js';
import { read } from './document.js';
import { Panel } from './panel.js';
import { chosenOf, textWith, usedBy } from './variables.js';

const again = 5000; // ms until a document that could not be read is asked for again

// panelOf finds a panel in a document's text: {panel, view}, or {fault}, words for whoever wrote
// the page. view is the state in which it is shown.
export function panelOf(text, name, id) {
  const { document, fault, later } = read(text);
  if (fault) return { fault: `Dashboard “${name}”: ${fault}` };
  const panel = document.panels.find((p) => p.id === id);
  const known = document.panels.slice(0, 20).map((p) => p.id).join(', ') + (document.panels.length > 20 ? ' …' : '');
  if (!panel) return { fault: `Dashboard “${name}” has no panel “${id ?? ''}”. ${known ? `It has ${known}.` : 'It has none.'}${later ? ' A later release made it.' : ''}` };
  const { from = '', to = '' } = document.range ?? {};
  // Nobody chooses here: variables have their defaults, and the panel says which has none.
  const chosen = chosenOf(document.variables ?? [], {}, () => []);
  const words = Object.fromEntries(['title', 'text'].filter((k) => typeof panel[k] === 'string').map((k) => [k, textWith(panel[k], chosen)]));
  return { panel: { ...panel, ...words }, view: { start: from || '1h-ago', end: to, zoom: null, pause: null, tz: '', theme: '', notes: false, shift: '', chosen: usedBy(panel, chosen) } };
}

// wordsOf says why a document was not read, {text, retry}: from the answer's status and message, or
// without an answer.
export function wordsOf(name, { status, message } = {}) {
  if (status === undefined) return { text: 'The gateway does not answer this page. It must run, and name the page’s origin in DOWNPOUR_ALLOW_ORIGINS. Trying again.', retry: true };
  if (status === 401 || status === 403) return { text: `The gateway refuses the panel: ${message}. It may want a token that may read.`, retry: false };
  if (status === 404) return { text: `There is no dashboard “${name}” yet. Asking again.`, retry: true };
  return { text: `The dashboard cannot be read: ${message}.${status >= 500 ? ' Trying again.' : ''}`, retry: status >= 500 };
}

// Elsewhere shows panel id of a dashboard in element. connection is {client, watchers} of the
// gateway's socket.
export class Elsewhere {
  constructor(element, { gateway, name, id, token, height, connection }) {
    Object.assign(this, { gateway, name, id, token, connection, panel: null, shown: null, closed: false });
    this.root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
    this.box = make('div');
    this.box.style.height = `${height}px`;
    this.box.style.display = 'grid';
    this.words = make('p', 'words');
    this.words.setAttribute('role', 'status');
    this.readout = make('p', 'hidden');
    this.readout.setAttribute('aria-live', 'polite');
    const keys = make('p', 'hidden', 'Left and right arrow read the points, up and down change the line, Escape leaves.');
    keys.id = 'keys';
    const probe = make('span');
    probe.hidden = true;
    this.root.replaceChildren(probe, this.box, this.words, keys, this.readout);
    this.ready = this.#style(probe);
    this.tell = (state) => this.#connected(state);
    connection.watchers.add(this.tell);
    this.inView = new IntersectionObserver((entries) => { this.seen = entries.at(-1).isIntersecting; this.panel?.see(this.seen); });
    this.inView.observe(element);
    this.clock = setInterval(() => { if (!document.hidden && this.shown && !this.shown.view.zoom && !this.shown.view.end) this.panel.move(); }, 1000);
    this.#load();
  }

  close() {
    this.closed = true;
    clearInterval(this.clock);
    clearTimeout(this.retry);
    this.inView.disconnect();
    this.connection.watchers.delete(this.tell);
    this.panel?.close();
    this.root.replaceChildren();
  }

  // style brings in the style sheets, and says when they are there: what is drawn before has no
  // colours.
  #style(probe) {
    const sheets = ['vendor/uplot/uPlot.min.css', 'app.css', 'board.css', 'elsewhere.css'].map((path) => Object.assign(document.createElement('link'), {
      rel: 'stylesheet', crossOrigin: 'anonymous', href: new URL(`ui/${path}`, this.gateway).href,
    }));
    const loaded = sheets.map((sheet) => new Promise((done) => { sheet.onload = sheet.onerror = done; }));
    this.root.prepend(...sheets);
    return Promise.all(loaded).then(() => colouredBy(probe));
  }

  async #load() {
    const headers = this.token ? { Authorization: `Bearer ${this.token}` } : {};
    try {
      const response = await fetch(new URL(`api/dashboards/${encodeURIComponent(this.name)}`, this.gateway), { headers });
      const text = await response.text();
      if (!response.ok) return this.#failed(wordsOf(this.name, { status: response.status, message: messageOf(text, response) }));
      await this.ready;
      this.#take(panelOf(text, this.name, this.id));
    } catch {
      this.#failed(wordsOf(this.name));
    }
  }

  #failed({ text, retry }) {
    this.#say({ kind: 'error', text });
    if (retry && !this.closed) this.retry = setTimeout(() => this.#load(), again);
  }

  #take({ panel, view, fault }) {
    if (this.closed) return;
    if (fault) return this.#say({ kind: 'error', text: fault });
    this.#say({ kind: '', text: '' });
    const change = (part) => { this.shown.view = { ...this.shown.view, ...part }; this.panel.show(this.shown.panel, this.shown.view); };
    this.panel = new Panel({
      live: this.connection.client,
      zoom: (from, to) => change({ zoom: [from, to] }),
      reset: () => {
        const zoomed = this.shown.view.zoom !== null;
        if (zoomed) change({ zoom: null });
        return zoomed;
      },
      read: (text) => { this.readout.textContent = text; },
      pan: (by) => { const part = panned(this.shown.view, by, Date.now() / 1000); if (part) change(part); },
      notes: () => [],
      mayMark: () => false,
    });
    this.shown = { panel, view };
    this.box.append(this.panel.element);
    this.panel.show(panel, view);
    this.panel.see(this.seen ?? true);
  }

  // connected says that the socket is lost, and how the page goes on.
  #connected(state) {
    const { kind, text } = describe({ connection: state, queries: [{ letter: '', kind: 'live', text: '' }] });
    if (this.shown) this.#say({ kind, text: kind === 'live' ? '' : text });
  }

  #say({ kind, text }) {
    if (this.words.textContent !== text) this.words.textContent = text;
    this.words.dataset.kind = kind;
  }
}

function messageOf(text, { status, statusText }) {
  try {
    return JSON.parse(text).error.message.replace(/\.$/, '');
  } catch {
    return `${status} ${statusText}`;
  }
}
