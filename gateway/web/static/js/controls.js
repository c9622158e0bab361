// The form above the chart: shows a state, and turns what one changes in it
// into the next state. The rows of the queries are in queryrow.js, those of the formulas
// in formularow.js.

import { letter } from './columns.js';
import { withoutQuery } from './formula.js';
import { FormulaRow } from './formularow.js';
import { QueryRow, choose, options } from './queryrow.js';
import { RangeControls } from './rangecontrols.js';
import { emptyFormula, emptyQuery, formulasAtMost } from './state.js';

const $ = (id) => document.getElementById(id);

const queriesAtMost = 26;

export class Controls {
  // onChange gets the parts of the state that changed.
  constructor(onChange) {
    this.onChange = onChange;
    this.rows = [];
    this.formulas = [];
    this.range = new RangeControls(onChange);
    zones(['UTC']);
    for (const event of ['focus', 'pointerdown']) $('zone').addEventListener(event, () => this.#allZones(), { once: true });
    options($('theme'), [['', 'as the system'], ['light', 'light'], ['dark', 'dark']]);
    $('zone').addEventListener('change', (e) => onChange({ tz: e.target.value }));
    $('theme').addEventListener('change', (e) => onChange({ theme: e.target.value }));
    $('log').addEventListener('change', (e) => onChange({ log: e.target.checked }));
    $('notes').addEventListener('change', (e) => onChange({ notes: e.target.checked }));
    $('add-query').addEventListener('click', () => this.#add());
    $('add-formula').addEventListener('click', () => this.#addFormula());
    $('query').addEventListener('submit', (e) => e.preventDefault());
  }

  aggregators(names) {
    this.names = names;
    this.rows.forEach((r) => r.aggregators(names));
  }

  show(state) {
    this.state = state;
    this.#showRows(state.queries);
    this.#showFormulas(state.formulas);
    this.range.show(state);
    choose($('zone'), state.tz);
    $('theme').value = state.theme;
    $('log').checked = state.log;
    $('notes').checked = state.notes;
    $('add-query').disabled = state.queries.length >= queriesAtMost;
    $('add-formula').disabled = state.formulas.length >= formulasAtMost;
  }

  // allZones lists them once somebody is about to choose: there are hundreds.
  #allZones() {
    zones(['UTC', ...Intl.supportedValuesOf('timeZone').filter((z) => z !== 'UTC')]);
    choose($('zone'), this.state.tz);
  }

  #showRows(queries) {
    while (this.rows.length > queries.length) this.rows.pop().element.remove();
    while (this.rows.length < queries.length) {
      const i = this.rows.length;
      const row = new QueryRow(i, (part) => this.#changed(i, part), () => this.#removed(i));
      if (this.names) row.aggregators(this.names);
      this.rows.push(row);
      $('queries').append(row.element);
    }
    queries.forEach((q, i) => this.rows[i].show(q, letter(i), queries.length === 1));
  }

  // showFormulas shows the letters of the queries, too, if there is but one.
  #showFormulas(formulas) {
    while (this.formulas.length > formulas.length) this.formulas.pop().element.remove();
    while (this.formulas.length < formulas.length) {
      const i = this.formulas.length;
      const row = new FormulaRow(i, (part) => this.#formulaChanged(i, part), () => this.#formulaRemoved(i));
      this.formulas.push(row);
      $('formulas').append(row.element);
    }
    formulas.forEach((f, i) => this.formulas[i].show(f));
    $('query').classList.toggle('lettered', formulas.length > 0);
  }

  #formulaChanged(i, part) {
    this.onChange({ hide: [], formulas: this.state.formulas.map((f, n) => (n === i ? { ...f, ...part } : f)) });
  }

  #formulaRemoved(i) {
    this.onChange({ hide: [], formulas: this.state.formulas.filter((_, n) => n !== i) });
    $('add-formula').focus();
  }

  #addFormula() {
    this.onChange({ formulas: [...this.state.formulas, emptyFormula()] });
    this.formulas.at(-1).expr.focus();
  }

  // A name of a line may mean another line after this: none stays hidden.
  #changed(i, part) {
    this.onChange({ hide: [], queries: this.state.queries.map((q, n) => (n === i ? { ...q, ...part } : q)) });
  }

  #removed(i) {
    const formulas = this.state.formulas.map((f) => ({ ...f, expr: withoutQuery(f.expr, i) }));
    this.onChange({ hide: [], queries: this.state.queries.filter((_, n) => n !== i), formulas });
    $('add-query').focus();
  }

  // add begins with what the last query has: one compares, mostly.
  #add() {
    const { aggregator, downsample, rate } = this.state.queries.at(-1) ?? emptyQuery();
    this.onChange({ queries: [...this.state.queries, { ...emptyQuery(), aggregator, downsample, rate }] });
    this.rows.at(-1).metric.focus();
  }
}

function zones(names) {
  options($('zone'), [['', `local: ${Intl.DateTimeFormat().resolvedOptions().timeZone}`], ...names.map((z) => [z, z])]);
}
