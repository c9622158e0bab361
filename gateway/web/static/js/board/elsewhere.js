// A panel of a dashboard in a page of others. It lies in a shadow tree, where the styles of that
// page do not reach it, and is drawn as on its own dashboard.

import { readersOf } from '../api.js';
import { make } from '../element.js';
import { colouredBy } from '../look.js';
import { describe } from '../messages.js';
import { panned } from '../state.js';
import { read } from './document.js';
import { Panel } from './panel.js';
import { Values, whyNone } from './values.js';
import { chosenOf, neededBy, textWith, usedBy } from './variables.js';

const again = 5000; // ms until a document that could not be read is asked for again

// panelOf finds a panel in a document's text: {panel, view, variables}, or {fault}, words for the author
// of the page. view is the state in which it is shown, variables are those of the document.
export function panelOf(text, name, id) {
  const { document, fault, later } = read(text);
  if (fault) return { fault: `Dashboard “${name}”: ${fault}` };
  const panel = document.panels.find((p) => p.id === id);
  const known = document.panels.slice(0, 20).map((p) => p.id).join(', ') + (document.panels.length > 20 ? ' …' : '');
  if (!panel) return { fault: `Dashboard “${name}” has no panel “${id ?? ''}”. ${known ? `It has ${known}.` : 'It has none.'}${later ? ' A later release made it.' : ''}` };
  const { from = '', to = '' } = document.range ?? {};
  return { panel, variables: document.variables ?? [], view: { start: from || '1h-ago', end: to, zoom: null, pause: null, tz: '', theme: '', notes: false, shift: '' } };
}

// valued is a panel with values in place of its variables: {panel, chosen, said}. given are values, or lists of
// them, by name; in the names of attributes there are no capital letters. values is a Values. Nobody chooses
// here: what is not given is as on a dashboard that has just been opened.
export function valued({ panel, variables }, given, values) {
  const [lists, unknown] = [{}, []];
  for (const [name, value] of Object.entries(given)) {
    const v = variables.find((x) => x.name === name) ?? variables.find((x) => x.name.toLowerCase() === name.toLowerCase());
    if (v) lists[v.name] = [value].flat();
    else unknown.push(`The dashboard has no variable “${name}”.`);
  }
  const needed = neededBy(panel, variables);
  const chosen = chosenOf(needed, lists, (v, others) => values.known(v, others));
  const none = needed.filter((v) => chosen[v.name].length === 0).map((v) => [v.label || v.name, whyNone(values.of(v, chosen))]);
  const words = Object.fromEntries(['title', 'text'].filter((k) => typeof panel[k] === 'string').map((k) => [k, textWith(panel[k], chosen)]));
  const said = [...unknown, ...none.filter(([, why]) => why).map(([name, why]) => `${name}: ${why}`)].join(' ');
  return { panel: { ...panel, ...words }, chosen: usedBy(panel, chosen), said };
}

// wordsOf says why a document was not read, {text, retry}: from the answer's status and message, or
// without an answer.
export function wordsOf(name, { status, message = '' } = {}) {
  if (status === undefined) return { text: 'The gateway does not answer this page. It must run, and name the page’s origin in DOWNPOUR_ALLOW_ORIGINS. Trying again.', retry: true };
  if (status === 404) return { text: `There is no dashboard “${name}” yet. Asking again.`, retry: true };
  return { text: `The dashboard cannot be read: ${message.replace(/\.$/, '')}.${status >= 500 ? ' Trying again.' : ''}`, retry: status >= 500 };
}

// refusal says what a status means for a panel with a token, or without one; '' for no refusal.
export function refusal(status, token) {
  if (status !== 401 && status !== 403) return '';
  if (!token) return 'the gateway wants a token, and the panel has none: give it one that may read, as data-token';
  return status === 401 ? 'the gateway does not know the panel’s token' : 'the panel’s token may not read';
}

// inWords are readers whose refusals say what they mean for a panel.
const inWords = (readers, token) => {
  const worded = (read) => (...args) => read(...args).catch((error) => { throw Object.assign(error, { message: refusal(error.status, token) || error.message }); });
  return { dashboard: worded(readers.dashboard), tagValues: worded(readers.tagValues), suggest: (...args) => worded(readers.suggest(...args)) };
};

// Elsewhere shows panel id of a dashboard in element. connection is {client, watchers} of the
// gateway's socket.
export class Elsewhere {
  constructor(element, { gateway, name, id, token, height, variables, connection }) {
    Object.assign(this, { gateway, name, id, connection, panel: null, shown: null, trouble: '', state: null, closed: false });
    this.given = variables;
    this.asking = inWords(readersOf(gateway, token), token);
    this.values = new Values(() => this.#show(), this.asking);
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
    this.tell = (state) => { this.state = state; this.#say(); };
    connection.watchers.add(this.tell);
    this.inView = new IntersectionObserver((entries) => { this.seen = entries.at(-1).isIntersecting; this.panel?.see(this.seen); });
    this.inView.observe(element);
    this.clock = setInterval(() => this.#tick(), 1000);
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
    let document;
    try {
      document = await this.asking.dashboard(this.name);
    } catch (error) {
      const { text, retry } = wordsOf(this.name, error);
      this.#say(text);
      if (retry && !this.closed) this.retry = setTimeout(() => this.#load(), again);
      return;
    }
    await this.ready;
    this.#take(panelOf(document.text, this.name, this.id));
  }

  #take(found) {
    if (this.closed) return;
    if (found.fault) return this.#say(found.fault);
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
    this.found = found;
    this.shown = { view: found.view };
    this.#show();
    this.box.append(this.panel.element);
    this.panel.see(this.seen ?? true);
  }

  // show draws the panel with what is known of its variables.
  #show() {
    if (this.closed) return;
    const { panel, chosen, said } = valued(this.found, this.given, this.values);
    this.waits = Object.values(chosen).some((list) => list.length === 0);
    this.shown = { panel, view: { ...this.shown.view, chosen } };
    this.panel.show(panel, this.shown.view);
    this.#say(said);
  }

  // tick follows the time. Values that there are none of may have come.
  #tick() {
    if (document.hidden || !this.shown) return;
    if (this.waits) this.#show();
    else if (!this.shown.view.zoom && !this.shown.view.end) this.panel.move();
  }

  // say shows what is wrong with the panel as a whole, else that the socket is lost, and what happens
  // next.
  #say(trouble = this.trouble) {
    this.trouble = trouble;
    const { kind, text } = describe({ connection: this.state, queries: [{ letter: '', kind: 'live', text: '' }] });
    const words = trouble || (kind === 'live' || !this.shown ? '' : text);
    if (this.words.textContent !== words) this.words.textContent = words;
    this.words.dataset.kind = trouble ? 'error' : kind;
  }
}
