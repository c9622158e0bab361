// The dialog in which the variables of a dashboard are changed: a row each.

import { suggest } from '../api.js';
import { combobox } from '../combobox.js';
import { tagKeys } from '../complete.js';
import { make } from '../element.js';
import { faultOfVariables } from './variables.js';

const $ = (id) => document.getElementById(id);

const between = '|'; // values and variables in a field

// filterText is a filter as the field has it: dc=$dc,rack=r1|r2.
export const filterText = (filter = {}) => Object.entries(filter).map(([k, v]) => `${k}=${v}`).join(',');

// readFilter reads it back.
export function readFilter(text) {
  const pairs = text.split(',').map((t) => t.trim()).filter(Boolean).map((t) => { const at = t.indexOf('='); return at < 0 ? [t, ''] : [t.slice(0, at).trim(), t.slice(at + 1).trim()]; });
  return pairs.length > 0 ? Object.fromEntries(pairs) : undefined;
}

export class VariableEditor {
  // onDone(variables) gets what is to be in the document.
  constructor(onDone) {
    this.onDone = onDone;
    this.dialog = $('variables-editor');
    $('add-variable').addEventListener('click', () => this.#add({ name: '', metric: '', tagk: '' }).focus());
    $('variables-cancel').addEventListener('click', () => this.dialog.close());
    $('variables-form').addEventListener('submit', (e) => { e.preventDefault(); this.#done(); });
    this.dialog.addEventListener('close', () => $('edit-variables').focus());
  }

  open(document) {
    this.document = document;
    this.rows = [];
    $('variable-rows').replaceChildren();
    $('variables-fault').textContent = '';
    for (const v of document.variables ?? []) this.#add(v);
    if (this.rows.length === 0) this.#add({ name: '', metric: '', tagk: '' });
    this.dialog.showModal();
  }

  // add returns the field of its name.
  #add(variable) {
    const row = make('fieldset', 'variable-row');
    const legend = make('legend', 'hidden', 'Variable');
    row.append(legend);
    const field = (name, value, width, completed) => {
      const box = make('span', 'combo');
      const input = Object.assign(make('input'), { type: 'text', value, size: width, autocomplete: 'off', spellcheck: false });
      const label = make('label', '', name);
      label.append(box);
      box.append(input);
      row.append(label);
      if (completed) combobox(input, completed, () => {});
      return input;
    };
    const check = (name, on) => {
      const input = Object.assign(make('input'), { type: 'checkbox', checked: on });
      const label = make('label', 'check');
      label.append(input, ` ${name}`);
      row.append(label);
      return input;
    };
    const values = variable.default === undefined ? [] : [variable.default].flat();
    const fields = {
      variable, name: field('Name', variable.name, 10), label: field('Label', variable.label ?? '', 12), metric: field('Values of metric', variable.metric, 22, suggest('metrics')),
      tagk: field('Tag', variable.tagk, 10, tagKeys(() => [])), filter: field('Filter', filterText(variable.filter), 16), usual: field('Default', values.join(between), 12),
      multi: check('several', variable.multi === true), all: check('All', variable.all === true),
    };
    fields.filter.placeholder = 'dc=$dc';
    const remove = make('button', 'remove', '×');
    remove.type = 'button';
    remove.setAttribute('aria-label', 'Remove this variable');
    remove.addEventListener('click', () => { this.rows = this.rows.filter((r) => r !== fields); row.remove(); $('add-variable').focus(); });
    row.append(remove);
    this.rows.push(fields);
    $('variable-rows').append(row);
    return fields.name;
  }

  // done leaves out rows in which nothing is written, and says what is wrong with the others.
  #done() {
    const variables = this.rows.map(read).filter((v) => v.name || v.metric || v.tagk);
    const fault = faultOfVariables({ ...this.document, variables });
    $('variables-fault').textContent = fault;
    if (fault) return;
    this.dialog.close();
    this.onDone(variables);
  }
}

function read({ variable, name, label, metric, tagk, filter, usual, multi, all }) {
  const { label: l, filter: f, multi: m, all: a, default: d, ...rest } = variable;
  const text = (input) => input.value.trim();
  const values = text(usual).split(between).filter(Boolean);
  return {
    ...rest, name: text(name).replace(/^\$/, ''), ...(text(label) ? { label: text(label) } : {}), metric: text(metric), tagk: text(tagk), ...(text(filter) ? { filter: readFilter(text(filter)) } : {}),
    ...(multi.checked ? { multi: true } : {}), ...(all.checked ? { all: true } : {}), ...(values.length > 0 ? { default: values.length === 1 ? values[0] : values } : {}),
  };
}
