// The controls of variables: a button each, which opens a list of values with a search at its top.
// Arrows move in it, Enter takes, Escape leaves it as it was.

import { plural } from '../format.js';
import { make } from '../element.js';
import { all, valuesAtMost } from './variables.js';

const shown = 200; // values in a list

const nameOf = (value) => (value === all ? 'All' : value);

// brief is what the button says.
const brief = (values) => (values.length === 0 ? '…' : values.slice(0, 2).map(nameOf).join(', ') + (values.length > 2 ? ` and ${values.length - 2} more` : ''));

export class VariableBar {
  // values is a Values; onChoose(name, values) gets what a hand chooses.
  constructor(element, values, onChoose) {
    Object.assign(this, { element, values, onChoose });
    this.controls = new Map(); // by name
  }

  // show takes the document's variables, and what is chosen for each.
  show(variables, chosen) {
    const names = new Set(variables.map((v) => v.name));
    for (const [name, c] of this.controls) {
      if (names.has(name)) continue;
      c.close();
      c.element.remove();
      this.controls.delete(name);
    }
    variables.forEach((v, i) => {
      if (!this.controls.has(v.name)) this.controls.set(v.name, new Control(v.name, this));
      const c = this.controls.get(v.name);
      if (this.element.children[i] !== c.element) this.element.insertBefore(c.element, this.element.children[i] ?? null);
      c.show(v, chosen);
    });
    this.element.hidden = variables.length === 0;
  }
}

class Control {
  constructor(name, bar) {
    this.bar = bar;
    this.element = make('div', 'variable');
    this.element.dataset.name = name;
    this.button = make('button');
    this.button.type = 'button';
    this.button.setAttribute('aria-haspopup', 'dialog');
    this.button.setAttribute('aria-expanded', 'false');
    this.label = make('span');
    this.value = make('b');
    this.button.append(this.label, ' ', this.value);
    this.element.append(this.button);
    this.button.addEventListener('click', () => (this.popup ? this.close() : this.open()));
    this.button.addEventListener('keydown', (e) => { if (e.key === 'ArrowDown') { e.preventDefault(); this.open(); } });
  }

  show(variable, chosen) {
    Object.assign(this, { variable, chosen });
    this.label.textContent = variable.label || variable.name;
    const text = brief(chosen[variable.name]);
    if (this.value.textContent !== text) this.value.textContent = text;
    this.button.title = chosen[variable.name].slice(0, 50).map(nameOf).join(', ');
    this.popup?.refresh();
  }

  open() {
    if (this.popup) return;
    this.popup = new Popup(this);
    this.button.setAttribute('aria-expanded', 'true');
  }

  // close takes what was marked, unless it is to be left.
  close(take = true, focus = false) {
    const { popup } = this;
    if (!popup) return;
    this.popup = null;
    popup.close();
    this.button.setAttribute('aria-expanded', 'false');
    if (focus) this.button.focus();
    const { name } = this.variable;
    if (take && popup.marked.length > 0 && popup.marked.join('\n') !== this.chosen[name].join('\n')) this.bar.onChoose(name, popup.marked);
  }
}

let made = 0;

// Popup is the open list of one control. marked are the values that it will take.
class Popup {
  constructor(control) {
    this.control = control;
    const { variable, chosen } = control;
    this.marked = [...chosen[variable.name]];
    this.active = -1;
    this.id = `values-${++made}`;
    this.box = make('div', 'values');
    this.box.setAttribute('role', 'dialog');
    this.box.setAttribute('aria-label', `Values of ${variable.label || variable.name}`);
    this.search = make('input');
    this.list = make('ul');
    this.list.id = this.id;
    this.note = make('p');
    this.note.id = `${this.id}-note`;
    this.note.setAttribute('role', 'status');
    this.#prepare(variable);
    this.box.append(this.search, this.list, this.note);
    if (variable.multi) this.box.append(this.#apply());
    control.element.append(this.box);
    this.#listen();
    this.box.classList.toggle('right', this.box.getBoundingClientRect().right > document.documentElement.clientWidth);
    this.search.focus();
    this.refresh();
  }

  #prepare(variable) {
    for (const [k, v] of Object.entries({
      type: 'text', role: 'combobox', 'aria-label': 'Search', placeholder: 'Search', 'aria-autocomplete': 'list', 'aria-expanded': 'true', 'aria-controls': this.id,
      'aria-describedby': this.note.id, autocomplete: 'off', spellcheck: 'false',
    })) this.search.setAttribute(k, v);
    this.list.setAttribute('role', 'listbox');
    this.list.setAttribute('aria-label', 'Values');
    this.list.setAttribute('aria-multiselectable', String(Boolean(variable.multi)));
  }

  #apply() {
    const button = make('button', 'apply', 'Apply');
    button.type = 'button';
    button.addEventListener('click', () => this.control.close(true, true));
    return button;
  }

  #listen() {
    this.outside = (e) => { if (!this.control.element.contains(e.target)) this.control.close(); };
    document.addEventListener('pointerdown', this.outside);
    this.box.addEventListener('focusout', (e) => { if (e.relatedTarget && !this.control.element.contains(e.relatedTarget)) this.control.close(); });
    this.search.addEventListener('input', () => { this.#mark(-1); clearTimeout(this.timer); this.timer = setTimeout(() => this.refresh(), 100); });
    this.box.addEventListener('keydown', (e) => this.#key(e));
  }

  close() {
    clearTimeout(this.timer);
    this.request?.abort();
    document.removeEventListener('pointerdown', this.outside);
    this.box.remove();
  }

  // refresh asks for what is searched for, and shows it. Until that has come, what is there stays;
  // and where the arrows have come to stays with its value.
  async refresh() {
    const { variable, chosen, bar } = this.control;
    const text = this.search.value.trim();
    this.request?.abort();
    this.request = new AbortController();
    const { signal } = this.request;
    let [found, fault] = [[], ''];
    try {
      found = await bar.values.search(variable, chosen, text, signal);
    } catch (error) {
      fault = `The search failed: ${error.message}.`;
    }
    if (signal.aborted) return;
    this.#show(text, found, bar.values.of(variable, chosen), fault);
  }

  #show(text, found, list, fault) {
    const { variable, chosen } = this.control;
    const first = text === '' ? [...(variable.all ? [all] : []), ...chosen[variable.name].filter((v) => v !== all)] : [];
    const options = [...new Set([...first, ...found])];
    // Where not all are known, what is typed may be one.
    if (text && text !== all && !options.includes(text) && (!list.whole || list.fault || fault)) options.push(text);
    this.options = options.slice(0, shown);
    this.shownFor = text;
    const focused = this.list.children[this.active]?.dataset.value;
    this.list.replaceChildren(...this.options.map((value, i) => this.#option(value, i)));
    this.#mark(focused === undefined ? -1 : this.options.indexOf(focused));
    this.note.textContent = fault || list.fault || noteOf(text, options.length, list);
  }

  #option(value, i) {
    const option = make('li', '', nameOf(value));
    option.id = `${this.id}-${i}`;
    option.dataset.value = value;
    option.setAttribute('role', 'option');
    option.setAttribute('aria-selected', String(this.marked.includes(value)));
    option.addEventListener('pointerdown', (e) => { e.preventDefault(); this.#take(value); });
    return option;
  }

  #mark(i) {
    this.list.children[this.active]?.classList.remove('active');
    this.active = i;
    const option = this.list.children[i];
    if (!option) return this.search.removeAttribute('aria-activedescendant');
    option.classList.add('active');
    this.search.setAttribute('aria-activedescendant', option.id);
    option.scrollIntoView({ block: 'nearest' });
  }

  #take(value) {
    const { variable } = this.control;
    if (!variable.multi) {
      this.marked = [value];
      return this.control.close(true, true);
    }
    if (value === all) this.marked = this.marked.includes(all) ? [] : [all];
    else {
      const without = this.marked.filter((v) => v !== value && v !== all);
      this.marked = this.marked.includes(value) ? without : [...without, value].slice(-valuesAtMost);
    }
    for (const o of this.list.children) o.setAttribute('aria-selected', String(this.marked.includes(o.dataset.value)));
  }

  #key(e) {
    const n = this.list.children.length;
    if (e.key === 'Escape') {
      e.stopPropagation();
      return this.control.close(false, true);
    }
    if (e.target !== this.search) return;
    if ((e.key === 'ArrowDown' || e.key === 'ArrowUp') && n > 0) {
      e.preventDefault();
      this.#mark(e.key === 'ArrowDown' ? (this.active + 1) % n : (this.active + n - (this.active < 0 ? 0 : 1)) % n);
    } else if (e.key === 'Enter') {
      e.preventDefault();
      const typed = this.search.value.trim();
      // As everywhere, Enter takes the first of what is found. Where several can be chosen, a second Enter is for "Apply".
      const [first] = (typed !== '' || n === 1) && this.shownFor === typed ? this.options : [];
      const value = this.options?.[this.active] ?? first;
      if (this.control.variable.multi && typed !== '' && this.active < 0 && this.marked.includes(first)) this.control.close(true, true);
      else if (value !== undefined) this.#take(value);
      else if (this.control.variable.multi && this.search.value === '') this.control.close(true, true);
    }
  }
}

// noteOf says how much of all the list is, and of when.
function noteOf(text, found, list) {
  const since = list.since ? `Since ${new Date(list.since * 1000).toLocaleString()}: series are not tracked here.` : '';
  return [amountOf(text, found, list), since].filter(Boolean).join(' ');
}

function amountOf(text, found, list) {
  if (list.loading && list.values.length === 0) return 'Asking…';
  if (list.others) return `No series of this metric is known: these are values of any tag.${list.whole ? '' : ' Not all are listed: type a part of one.'}`;
  if (!list.whole) return text ? 'There may be more: type another part of the name.' : `${plural(list.values.length, 'value')} are known, not all: type a part of one to find others.`;
  if (found === 0) return text ? 'No value has this.' : 'No values yet.';
  return found > shown ? `${(found - shown).toLocaleString('en')} more: type another part of the name` : '';
}
