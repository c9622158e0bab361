// What a panel's drawing has beside its queries, in the editor: units, legend, top lines, thresholds.

import { options } from '../queryrow.js';
import { ways } from '../stats.js';
import { format, parse } from '../thresholds.js';
import { names as units } from '../units.js';
import { decimalsAtMost, faultOf, legends } from './fields.js';
import { typeOf } from './types.js';

const $ = (id) => document.getElementById(id);

const all = ''; // lines

const inputs = () => document.querySelectorAll('#settings input');

// fields are those that stand in the editor: how each is shown, and read as a value or undefined.
const choice = (id, usual) => ({ show: (v = usual) => { $(id).value = v; }, read: () => ($(id).value === usual ? undefined : $(id).value) });

// axis has the limits and decimals of one, whose fields have ids with a beginning.
const axis = (id) => ({
  show: (v = {}) => { for (const part of parts) $(`${id}${part}`).value = v[part] ?? ''; },
  read: () => {
    const given = parts.map((part) => [part, $(`${id}${part}`).value.trim()]).filter(([, text]) => text !== '');
    return given.length > 0 ? Object.fromEntries(given.map(([part, text]) => [part, Number(text.replace(',', '.'))])) : undefined;
  },
});
const parts = ['min', 'max', 'decimals'];

const fields = {
  unit: choice('panel-unit', 'none'),
  rightUnit: choice('panel-right-unit', 'none'),
  axis: axis('panel-'),
  rightAxis: axis('panel-right-'),
  legend: choice('panel-legend', 'auto'),
  top: {
    show: (v) => { [$('panel-top').value, $('panel-top-n').value] = [v?.by ?? all, v?.n ?? 5]; },
    read: () => ($('panel-top').value === all ? undefined : { n: Number($('panel-top-n').value), by: $('panel-top').value }),
  },
  annotations: { show: (v = false) => { $('panel-annotations').checked = v; }, read: () => $('panel-annotations').checked || undefined },
  thresholds: {
    show: (v = []) => { $('panel-thresholds').value = format(v); },
    read: () => { const { thresholds } = parse($('panel-thresholds').value); return thresholds?.length > 0 ? thresholds : undefined; },
  },
};

export class Settings {
  constructor() {
    for (const id of ['panel-unit', 'panel-right-unit']) options($(id), units.map((u) => [u, u]));
    options($('panel-legend'), [['auto', 'list, or table of many'], ...legends.map((l) => [l, l])]);
    options($('panel-top'), [[all, 'all lines'], ...Object.entries(ways).map(([by, { name }]) => [by, `the lines with the greatest ${name}`])]);
    $('panel-top').addEventListener('change', () => this.#showTop());
    for (const field of inputs()) field.addEventListener('input', () => this.#tell(''));
  }

  show(panel) {
    for (const [name, field] of Object.entries(fields)) field.show(panel[name]);
    this.#tell('');
  }

  // showType shows the fields that panels of a type have.
  showType(type) {
    this.type = type;
    for (const e of document.querySelectorAll('#settings [data-field]')) (e.closest('label') ?? e).hidden = !this.#has(e.dataset.field);
    this.#showTop();
  }

  // draft is the panel with those of the fields that are right.
  draft(panel) { return this.#with(panel, (name, value) => !faultOf({ [name]: value }, [name])); }

  // read returns the panel with these fields, or null, and says what is wrong. Fields that its type
  // does not have are left out, but for those that no type has: these are of a later release.
  read(panel) {
    const { fault } = this.#has('thresholds') ? parse($('panel-thresholds').value) : {};
    if (fault) return this.#refuse(fault, $('panel-thresholds'));
    if (this.#has('top') && faultOf({ top: fields.top.read() }, ['top'])) return this.#refuse('How many is a number from 1 to 200.', $('panel-top-n'));
    for (const [name, id] of [['axis', 'panel-min'], ['rightAxis', 'panel-right-min']]) {
      if (this.#has(name) && faultOf({ [name]: fields[name].read() }, [name])) return this.#refuse(`An axis goes from a number to a greater one, with 0 to ${decimalsAtMost} decimals.`, $(id));
    }
    return this.#with(panel, () => true);
  }

  #with(panel, right) {
    const out = { ...panel };
    for (const [name, field] of Object.entries(fields)) {
      const value = this.#has(name) ? field.read() : undefined;
      if (value === undefined || !right(name, value)) delete out[name];
      else out[name] = value;
    }
    return out;
  }

  #has(field) { return typeOf(this.type)?.fields.includes(field) ?? false; }

  #showTop() { $('panel-top-n').closest('label').hidden = !this.#has('top') || $('panel-top').value === all; }

  #refuse(fault, field) {
    this.#tell(fault);
    field.setAttribute('aria-invalid', 'true');
    field.focus();
    return null;
  }

  #tell(fault) {
    $('settings-fault').textContent = fault;
    for (const field of inputs()) field.removeAttribute('aria-invalid');
  }
}
