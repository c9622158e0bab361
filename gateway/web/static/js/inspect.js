// How the server answers: the plan of each query (explain), and what an answer
// took (trace), a tree of {name, ms, attributes, children}. Asked for when it is
// opened, and when the query changes while it is open.

import * as api from './api.js';
import { plural } from './format.js';

export class Inspect {
  // kind is explain or trace.
  constructor(details, kind) {
    this.details = details;
    this.kind = kind;
    this.out = details.querySelector('.out');
    this.asked = '';
    details.addEventListener('toggle', () => this.#ask());
    details.querySelector('button').addEventListener('click', () => { this.asked = ''; this.#ask(); });
  }

  // show takes {letter, query} of each query.
  show(queries) {
    this.queries = queries;
    this.#ask();
  }

  async #ask() {
    const text = JSON.stringify(this.queries);
    if (!this.details.open || !this.queries || text === this.asked) return;
    this.asked = text;
    const parts = await Promise.all(this.queries.map((q) => this.#one(q)));
    if (text !== this.asked) return; // another was asked meanwhile
    this.out.replaceChildren(...(parts.length > 0 ? parts.flat() : [node('p', 'There is no query.')]));
  }

  async #one({ letter, query }) {
    const head = this.queries.length > 1 ? [node('h3', `${letter} ${query.queries[0].metric}`)] : [];
    try {
      const answer = this.kind === 'explain'
        ? await api.query(query, 'explain=true')
        : await api.query({ ...query, showSummary: true }, 'arrays=true&trace=true');
      return [...head, ...(this.kind === 'explain' ? plan(answer) : trace(answer))];
    } catch (error) {
      return [...head, node('p', `The server says: ${error.message}.`)];
    }
  }
}

function plan({ plan: text, parts }) {
  const rows = parts.map((p) => [p.range.join(' … '), p.server, p.mode, p.rows ?? '']);
  return [node('pre', text.trim()), node('p', `${plural(parts.length, 'part')}:`), table(['keys', 'where', 'mode', 'rows'], rows)];
}

// traceOf finds the tree in an answer: beside the results, or among them.
export function traceOf(answer) {
  return answer.trace ?? (Array.isArray(answer) ? answer.find((r) => r.trace)?.trace : null) ?? null;
}

function trace(answer) {
  const root = traceOf(answer);
  const summary = Array.isArray(answer) ? answer.find((r) => r.statsSummary)?.statsSummary : null;
  const said = summary ? [node('p', `${plural(summary.rowsPreFilter, 'row')} and ${plural(summary.dpsPreFilter, 'point')} read, ${plural(summary.emittedDPs, 'point')} sent, in ${ms(summary.totalTime)}.`)] : [];
  if (!root) return [...said, node('p', 'This server tells no more of it.')];
  const list = document.createElement('ul');
  list.className = 'trace';
  list.append(branch(root, root.ms || 1));
  return [...said, list];
}

const ms = (n) => `${Number(n).toFixed(n < 10 ? 2 : 0)} ms`;

function branch({ name, ms: took, attributes = {}, children = [] }, whole) {
  const item = document.createElement('li');
  const bar = document.createElement('meter');
  Object.assign(bar, { min: 0, max: whole, value: took });
  bar.setAttribute('aria-label', `${ms(took)} of ${ms(whole)}`);
  const known = Object.entries(attributes).map(([k, v]) => `${k} ${typeof v === 'object' ? JSON.stringify(v) : v}`).join(', ');
  item.append(bar, node('span', ms(took), 'took'), node('b', name), ' ', node('span', known, 'attributes'));
  if (children.length > 0) {
    const list = document.createElement('ul');
    list.append(...children.map((c) => branch(c, whole)));
    item.append(list);
  }
  return item;
}

function table(heads, rows) {
  const t = document.createElement('table');
  const tr = (cells, kind) => { const r = document.createElement('tr'); r.append(...cells.map((c) => node(kind, c))); return r; };
  t.append(document.createElement('thead'), document.createElement('tbody'));
  t.tHead.append(tr(heads, 'th'));
  t.tBodies[0].append(...rows.map((r) => tr(r, 'td')));
  return t;
}

function node(name, text, className = '') {
  const n = document.createElement(name);
  n.textContent = text;
  if (className) n.className = className;
  return n;
}
