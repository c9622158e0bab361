// The dialog in which one panel is changed, with the rows of the page for its queries.

import { aggregators } from '../api.js';
import { letter } from '../columns.js';
import { withoutQuery } from '../formula.js';
import { FormulaRow } from '../formularow.js';
import { QueryRow, options } from '../queryrow.js';
import { emptyFormula, emptyQuery, formulasAtMost } from '../state.js';
import { chartOf, withChart } from './document.js';
import { Settings } from './settings.js';
import { sharedFields } from './sharedfields.js';
import { asks, typeOf, types } from './types.js';

const $ = (id) => document.getElementById(id);

const queriesAtMost = 26;

export class Editor {
  // onDone(panel, fresh) gets the changed panel, and whether it was new. preview(panel) makes or changes what shows it
  // while it is edited, null ends that.
  constructor(onDone, preview) {
    Object.assign(this, { onDone, preview });
    this.dialog = $('editor');
    this.settings = new Settings();
    this.shared = sharedFields();
    options($('panel-type'), Object.entries(types).map(([type, { name }]) => [type, name]));
    $('panel-type').addEventListener('change', () => this.#showType());
    $('add-query').addEventListener('click', () => this.#change({ queries: [...this.chart.queries, emptyQuery()] }));
    $('add-formula').addEventListener('click', () => this.#change({ formulas: [...this.chart.formulas, emptyFormula()] }));
    $('log').addEventListener('change', (e) => { this.chart.log = e.target.checked; });
    $('editor-form').addEventListener('submit', (e) => { e.preventDefault(); this.#done(); });
    $('editor-cancel').addEventListener('click', () => this.dialog.close());
    for (const event of ['input', 'change']) $('editor-form').addEventListener(event, () => this.#soon());
    this.dialog.addEventListener('close', () => { clearTimeout(this.timer); this.preview(null); this.back?.focus(); });
  }

  // open shows a panel of a document with variables; the focus goes back to an element. fresh says that
  // the panel is new.
  open(panel, back, variables = [], fresh = false) {
    Object.assign(this, { panel, fresh });
    this.shared.show(panel, variables);
    this.back = back;
    this.names ??= aggregators().then((names) => { this.known = names; this.rows.forEach((r) => r.aggregators(names)); }, () => { this.names = null; });
    $('panel-title').value = panel.title ?? '';
    $('panel-type').value = panel.type;
    $('panel-text').value = panel.text ?? '';
    $('panel-description').value = panel.description ?? '';
    const chart = asks(panel.type) ? chartOf(panel) : { queries: [], formulas: [], log: false };
    $('editor-fault').textContent = chart.fault ? `${chart.fault} What you write here replaces all queries.` : '';
    this.chart = { ...chart, queries: chart.queries.length > 0 ? chart.queries : [emptyQuery()] };
    $('log').checked = this.chart.log;
    this.settings.show(panel);
    this.#build();
    this.#showType();
    this.dialog.showModal();
    $('panel-title').focus();
    this.preview(this.#draft());
  }

  #showType() {
    const type = $('panel-type').value;
    const chart = asks(type);
    $('chart-fields').hidden = !chart;
    $('text-field').hidden = chart;
    $('log').closest('label').hidden = !typeOf(type).fields.includes('log');
    this.settings.showType(type);
    this.shared.type(type);
  }

  #change(part) {
    Object.assign(this.chart, part);
    this.#build();
    this.#soon();
  }

  // soon shows the panel once somebody stops writing for a moment.
  #soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { if (this.dialog.open) this.preview(this.#draft()); }, 250);
  }

  // draft is the panel as far as the form is right.
  #draft() { return this.#panel((panel) => this.settings.draft(panel)); }

  // build makes as many rows as there are queries and formulas, and shows these.
  #build() {
    const { queries, formulas } = this.chart;
    const rows = (kept, n, list, make) => {
      while (kept.length > n) kept.pop().element.remove();
      while (kept.length < n) {
        kept.push(make(kept.length));
        list.append(kept.at(-1).element);
      }
      return kept;
    };
    const replace = (list, i, part) => list.map((x, n) => (n === i ? { ...x, ...part } : x));
    this.rows = rows(this.rows ?? [], queries.length, $('queries'), (i) => {
      const row = new QueryRow(i, (part) => this.#change({ queries: replace(this.chart.queries, i, part) }), () => this.#removed(i));
      if (this.known) row.aggregators(this.known);
      return row;
    });
    this.formulas = rows(this.formulas ?? [], formulas.length, $('formulas'), (i) => new FormulaRow(
      i, (part) => this.#change({ formulas: replace(this.chart.formulas, i, part) }),
      () => { this.#change({ formulas: this.chart.formulas.filter((_, n) => n !== i) }); $('add-formula').focus(); },
    ));
    queries.forEach((q, i) => this.rows[i].show(q, letter(i), queries.length === 1));
    formulas.forEach((f, i) => this.formulas[i].show(f));
    $('editor-form').classList.toggle('lettered', formulas.length > 0);
    $('add-query').disabled = queries.length >= queriesAtMost;
    $('add-formula').disabled = formulas.length >= formulasAtMost;
  }

  #removed(i) {
    const formulas = this.chart.formulas.map((f) => ({ ...f, expr: withoutQuery(f.expr, i) }));
    this.#change({ queries: this.chart.queries.filter((_, n) => n !== i), formulas });
    $('add-query').focus();
  }

  #done() {
    const panel = this.#panel((p) => this.settings.read(p));
    if (!panel) return;
    this.dialog.close();
    this.onDone(panel, this.fresh);
  }

  // panel is what the form says, with the settings that read gives; null where these are wrong.
  #panel(read) {
    const { text, queries, formulas, log, description: _, ...rest } = this.shared.read(this.panel);
    const type = $('panel-type').value;
    const description = $('panel-description').value.trim();
    const panel = read({ ...rest, type, title: $('panel-title').value.trim().slice(0, 200), ...(description ? { description } : {}) });
    if (!panel) return null;
    const chart = { ...this.chart, queries: this.chart.queries.filter((q, i) => q.metric || this.chart.formulas.length > 0), formulas: this.chart.formulas.filter((f) => f.expr), log: this.chart.log && typeOf(type).fields.includes('log') };
    return asks(type) ? withChart(panel, chart) : { ...panel, text: $('panel-text').value };
  }
}
