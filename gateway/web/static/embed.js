// Live charts and answers for pages of others. A page imports this module from
// the gateway whose data it shows:
//
//   chart('#chart', query)             draws the answer and keeps it up to date
//   subscribe(query, (lines) => …)     for pages that draw themselves
//   panel('#cpu', 'web', 'cpu')        draws a panel of a dashboard, as it is saved
//
// query is the body of POST /api/query. An element with data-dashboard and data-panel is drawn
// without a call, with data-var-host="web01" for one value of its variable host. These three and the
// attributes stay as they are from version to version, and so does the address /ui/embed.js; the
// modules below do not.

import uPlot from './vendor/uplot/uPlot.esm.js';
import { axes } from './js/axes.js';
import { alone, labels, toColumns } from './js/columns.js';
import { LiveClient } from './js/live.js';
import { lineStyle } from './js/look.js';
import { describe, ofQuery, seriesLimit } from './js/messages.js';

const gateway = new URL('../', import.meta.url);
const connections = new Map(); // by token: one socket, whatever is asked on it

// subscribe calls onLines with the whole answer, again after each change: a list
// of {name, metric, tags, times, values}, times in seconds and ascending, values
// numbers, NaN, null for no value, or BigInt where a double would not hold the
// integer; times and values change with the next answer. onStatus gets {kind,
// text}, what the gateway's own page would say; kind is live where all is well. It
// returns {close()}.
export function subscribe(query, onLines, { token = '', onStatus = () => {} } = {}) {
  return follow(query, onLines, token, onStatus, Infinity);
}

// chart draws into an element, or the first that a selector finds, as wide as
// that is, in the colours of its color-scheme; what is wrong stands below. It
// returns {close()}.
export function chart(place, query, { token = '', height = 300 } = {}) {
  const element = typeof place === 'string' ? document.querySelector(place) : place;
  addStyles();
  const [canvas, words] = [document.createElement('div'), document.createElement('div')];
  words.setAttribute('role', 'status');
  element.append(canvas, words);
  const drawing = new Drawing(canvas, height);
  const onStatus = ({ kind, text }) => { words.textContent = ['live', 'complete'].includes(kind) ? '' : text; };
  const subscription = follow(query, (lines) => drawing.show(lines), token, onStatus, seriesLimit);
  return { close() { subscription.close(); drawing.close(); canvas.remove(); words.remove(); } };
}

// panel draws a panel of a dashboard, by the names of both, into an element, or the first that a
// selector finds: over the dashboard's range, in the colours of the first panel's color-scheme.
// variables are values by name, {host: 'web01'}, or lists of them. What is wrong stands below. It
// returns {close()}.
export function panel(place, dashboard, id, { token = '', height = 300, variables = {} } = {}) {
  const element = typeof place === 'string' ? document.querySelector(place) : place;
  let shown = null;
  let closed = false;
  import('./js/board/elsewhere.js').then(({ Elsewhere }) => {
    if (!closed) shown = new Elsewhere(element, { gateway, name: dashboard, id, token, height, variables, connection: connection(token) });
  });
  return { close() { closed = true; shown?.close(); } };
}

const variable = 'data-var-';

for (const element of globalThis.document?.querySelectorAll('[data-dashboard]') ?? []) {
  const { dashboard, panel: id, token, height } = element.dataset;
  const names = element.getAttributeNames().filter((name) => name.startsWith(variable));
  const variables = Object.fromEntries(names.map((name) => [name.slice(variable.length), element.getAttribute(name)]));
  panel(element, dashboard, id, { token, height: Number(height) || 300, variables });
}

// follow gives at most limit lines, and says so in its status.
function follow(query, onLines, token, onStatus, limit) {
  const { client, watchers } = connection(token);
  const metric = (query.queries ?? []).map((q) => q.metric).filter(Boolean).join(', ');
  const state = { metric, error: null, answered: false, groups: 0, points: 0, complete: false };
  const tell = (connected) => onStatus(describe({ connection: connected, queries: [{ letter: '', ...ofQuery(state) }] }));
  watchers.add(tell);
  const subscription = client.subscribe(query, {
    onData(answer) {
      const groups = [...answer.groups.values()];
      Object.assign(state, { error: null, answered: true, groups: limit === Infinity ? 0 : groups.length, points: answer.points });
      const names = labels(groups);
      onLines(groups.slice(0, limit).map(({ metric: m, tags, times, values }, i) => ({ name: names[i], metric: m, tags, times, values })));
      tell();
    },
    onError(error) { state.error = error; tell(); },
    onComplete() { state.complete = true; tell(); },
  });
  return { close() { watchers.delete(tell); subscription.close(); } };
}

function connection(token) {
  if (!connections.has(token)) {
    const watchers = new Set();
    const onState = (state) => watchers.forEach((tell) => tell(state));
    const client = new LiveClient(new URL('api/ws', gateway).href.replace(/^http/, 'ws'), { token: () => token, onState });
    connections.set(token, { client, watchers });
  }
  return connections.get(token);
}

// addStyles adds uPlot's style sheet to the page, once.
function addStyles() {
  const { href } = new URL('vendor/uplot/uPlot.min.css', import.meta.url);
  if ([...document.querySelectorAll('link')].some((link) => link.href === href)) return;
  document.head.append(Object.assign(document.createElement('link'), { rel: 'stylesheet', href, crossOrigin: 'anonymous' }));
}

// Colours of lines, those of app.css: on light ground and on dark.
const palette = [
  ['#145490', '#63d3ff'], ['#e4771c', '#ea6b26'], ['#128d51', '#209764'], ['#be6391', '#b377a6'],
  ['#7b5806', '#f0e544'], ['#1e9de2', '#5667b2'], ['#414d4c', '#c1d7d3'], ['#7258d2', '#9d8eff'],
];

// Drawing is the canvas and its legend.
class Drawing {
  constructor(element, height) {
    Object.assign(this, { element, height, names: '', plot: null });
    this.resized = new ResizeObserver(() => this.plot?.setSize(this.size));
    this.resized.observe(element);
  }

  get size() { return { width: Math.max(200, this.element.clientWidth), height: this.height }; }

  show(lines) {
    const data = toColumns(lines);
    const names = JSON.stringify(lines.map((l) => l.name));
    if (this.plot && names === this.names) return void this.plot.setData(data);
    this.names = names;
    this.plot?.destroy();
    const grid = this.colour('#e9ecee', '#262b30');
    const series = [{}, ...lines.map(({ name }, i) => this.line(name, i))];
    this.plot = new uPlot({ ...this.size, axes: axes({ text: this.colour('currentColor'), grid, tick: grid }), series }, data, this.element);
  }

  line(label, i) {
    const stroke = this.colour(...palette[i % palette.length]);
    return { label, stroke, dash: lineStyle(i).dash, width: 1.5, points: { fill: stroke, filter: (u, s, shown) => (shown ? null : alone(u.data[s])) } };
  }

  // colour is one as a canvas takes it, for the ground that the page says it has.
  colour(light, dark = light) {
    const probe = document.createElement('span');
    this.element.append(probe);
    probe.style.color = light; // stays where a browser does not know the next line
    probe.style.color = `light-dark(${light}, ${dark})`;
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  }

  close() {
    this.resized.disconnect();
    this.plot?.destroy();
  }
}
