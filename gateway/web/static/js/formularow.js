// The row of one formula below the queries: shows it, and turns what one changes in it
// into the next one.

import { example } from './formula.js';

export class FormulaRow {
  // onChange(part) gets what changed of the formula, onRemove() its end.
  constructor(index, onChange, onRemove) {
    this.element = document.getElementById('formula-row').content.firstElementChild.cloneNode(true);
    const suffix = index === 0 ? '' : `-${index + 1}`;
    const find = (id) => {
      const e = this.element.querySelector(`[data-id=${id}]`);
      e.id = e.dataset.testid = id + suffix;
      const label = e.closest('.field')?.querySelector('label');
      if (label) label.htmlFor = e.id;
      return e;
    };
    [this.expr, this.name, this.right, this.remove, this.said, this.help] = [
      'formula', 'formula-name', 'formula-right', 'formula-remove', 'formula-said', 'formula-help'].map(find);
    this.element.setAttribute('aria-label', `Formula ${index + 1}`);
    this.remove.setAttribute('aria-label', `Remove formula ${index + 1}`);
    this.expr.setAttribute('aria-describedby', `${this.said.id} ${this.help.id}`);
    this.expr.placeholder = example;
    this.expr.addEventListener('change', () => onChange({ expr: this.expr.value.trim() }));
    this.name.addEventListener('change', () => onChange({ name: this.name.value.trim() }));
    this.right.addEventListener('change', () => onChange({ right: this.right.checked }));
    this.remove.addEventListener('click', onRemove);
  }

  // show leaves the field alone that somebody writes in.
  show({ expr, name, right }) {
    for (const [field, text] of [[this.expr, expr], [this.name, name]]) if (field !== document.activeElement || text) field.value = text;
    this.name.placeholder = expr;
    this.right.checked = right;
  }

  // tell shows what is wrong with this formula, '' for nothing.
  tell(text, kind) {
    if (this.said.textContent !== text) this.said.textContent = text;
    this.said.dataset.kind = kind;
    if (kind === 'error') this.expr.setAttribute('aria-invalid', 'true');
    else this.expr.removeAttribute('aria-invalid');
  }
}
