// Variables of a dashboard: what a document may say of them, what is chosen for each, and how
// that stands in titles, texts and filters. Chosen are lists of values by name; ['*'] is all
// values, and [] that none is known yet.
//
// A value stands for itself wherever it comes to stand: it is put into the parts of a query that
// has been read already, and quoted for the kind of filter in which it stands.

import { isShift } from '../zone.js';

const limits = { variables: 20, name: 256, label: 200, filters: 8, filter: 4096, values: 1000, value: 1024, product: 1000 };

export const valuesAtMost = limits.values;

export const all = '*';

const nameForm = /^[A-Za-z]\w{0,31}$/; // not __proto__

const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);
const isText = (v, least, most) => typeof v === 'string' && [...v].length >= least && [...v].length <= most;

const listOf = (v) => (Array.isArray(v) ? v : [v]);

// faultOfVariables says what is wrong with a document's variables, and with what its panels want
// of them; '' for nothing.
export function faultOfVariables({ variables = [], panels }) {
  if (!Array.isArray(variables)) return 'The variables are none.';
  if (variables.length > limits.variables) return `The document has ${variables.length} variables: ${limits.variables} are the most.`;
  const names = new Set();
  for (const [i, v] of variables.entries()) {
    const wrong = faultOfVariable(v) || (names.has(v.name) ? `its name is that of another, “${v.name}”` : '');
    if (wrong) return `Variable ${i + 1}: ${wrong}.`;
    names.add(v.name);
  }
  for (const v of variables) {
    const unknown = wantedBy(v).find((name) => !names.has(name));
    if (unknown) return `Variable “${v.name}” is filtered by “${unknown}”, which is no variable.`;
  }
  const { circle } = ordered(variables);
  if (circle.length > 0) return `The filters of variables go in a circle: ${circle.map((name) => `“${name}”`).join(', ')}.`;
  return faultOfUses(panels, names);
}

function faultOfVariable(v) {
  if (!isObject(v) || typeof v.name !== 'string' || !nameForm.test(v.name)) return 'its name is none: 1 to 32 letters, digits or _, the first a letter';
  if (v.label !== undefined && !isText(v.label, 0, limits.label)) return 'its label is none';
  if (!isText(v.metric, 1, limits.name)) return 'it has no metric';
  if (!isText(v.tagk, 1, limits.name)) return 'it has no tag key';
  if (!['multi', 'all'].every((k) => v[k] === undefined || typeof v[k] === 'boolean')) return 'multi or all is neither true nor false';
  const { filter = {} } = v;
  if (!isObject(filter) || Object.keys(filter).length > limits.filters) return `its filter is none, or has more than ${limits.filters} tags`;
  for (const [tagk, text] of Object.entries(filter)) {
    if (!isText(tagk, 1, limits.name) || !isText(text, 1, limits.filter) || !text.split('|').every(isAlternative)) return `its filter of “${tagk.slice(0, 40)}” is none: values or variables, with | between them`;
  }
  if (Object.hasOwn(filter, v.tagk)) return `it is filtered by its own tag, “${v.tagk}”`;
  const values = v.default === undefined ? [] : listOf(v.default);
  if (values.length > limits.values || !values.every((x) => isText(x, 1, limits.value))) return 'its default is none';
  if (values.length > 1 && !v.multi) return `its default has ${values.length} values, and it takes one`;
  if (values.includes(all) && !v.all) return 'its default is all values, which it does not take';
  return '';
}

// faultOfUses looks at what panels want: a repetition for each value, a shift.
function faultOfUses(panels, names) {
  for (const [i, p] of panels.entries()) {
    if (p.repeat !== undefined && !names.has(p.repeat)) return `Panel ${i + 1}: it is repeated for ${typeof p.repeat === 'string' ? `“${p.repeat.slice(0, 40)}”` : 'something'}, which is no variable.`;
    if (p.shift !== undefined && !(typeof p.shift === 'string' && isShift(p.shift))) return `Panel ${i + 1}: its shift is none: a time as 1d or 1w.`;
  }
  return '';
}

// A filter of a variable is made of values, and of variables that stand alone.
const whole = /^\$(?:\{(\w+)\}|(\w+))$/;
const isAlternative = (text) => text !== '' && (whole.test(text) || !text.includes('$'));
const nameOf = (text) => { const m = whole.exec(text); return m ? m[1] ?? m[2] : null; };

// wantedBy are the variables that one is filtered by.
export const wantedBy = (v) => [...new Set(Object.values(v.filter ?? {}).flatMap((text) => text.split('|').map(nameOf)).filter((name) => name !== null))];

// ordered puts each variable behind those that it is filtered by; circle are the names of those
// for which there is no such order.
export function ordered(variables) {
  const [order, left] = [[], [...variables]];
  const known = new Set();
  for (;;) {
    const i = left.findIndex((v) => wantedBy(v).every((name) => known.has(name)));
    if (i < 0) return { order, circle: left.map((v) => v.name) };
    known.add(left[i].name);
    order.push(...left.splice(i, 1));
  }
}

// neededBy are the variables that a panel names, and those that these are filtered by.
export function neededBy(panel, variables) {
  const found = new Set(namesIn(JSON.stringify([panel.queries, panel.formulas, panel.title, panel.text])));
  for (const v of ordered(variables).order.reverse()) if (found.has(v.name)) for (const name of wantedBy(v)) found.add(name);
  return variables.filter((v) => found.has(v.name));
}

// depending are the names of variables that a variable filters, directly or by way of others.
export function depending(variables, name) {
  const found = new Set([name]);
  for (const v of ordered(variables).order) if (wantedBy(v).some((n) => found.has(n))) found.add(v.name);
  found.delete(name);
  return [...found];
}

// admitted are the values of a list that a variable takes: one, or several, or all.
export function admitted(v, values) {
  const fine = [...new Set(values.filter((x) => isText(x, 1, limits.value)))].slice(0, limits.values);
  if (fine.includes(all) && v.all) return [all];
  const single = fine.filter((x) => x !== all);
  return v.multi ? single : single.slice(0, 1);
}

// chosenOf returns what is chosen for each variable: what is given, in lists by name; else the
// document's default, else all, else the first that listed(v, chosen) has.
export function chosenOf(variables, given, listed) {
  const chosen = {};
  for (const v of ordered(variables).order) {
    const own = admitted(v, Object.hasOwn(given, v.name) ? given[v.name] : []);
    const usual = admitted(v, v.default === undefined ? [] : listOf(v.default));
    if (own.length > 0) chosen[v.name] = own;
    else if (usual.length > 0) chosen[v.name] = usual;
    else if (v.all) chosen[v.name] = [all];
    else chosen[v.name] = listed(v, chosen).slice(0, 1);
  }
  return chosen;
}

// questionOf is what to look up for a variable: {metric, tagk, tags: [{key, value}]}; tags of one
// key are alternatives. null if a variable that filters it has no value yet.
export function questionOf(v, chosen) {
  const tags = Object.entries(v.filter ?? {}).map(([key, text]) => {
    const values = text.split('|').flatMap((t) => (nameOf(t) === null ? [t] : chosen[nameOf(t)] ?? []));
    return values.includes(all) ? [{ key, value: all }] : values.map((value) => ({ key, value }));
  });
  return tags.some((t) => t.length === 0) ? null : { metric: v.metric, tagk: v.tagk, tags: tags.flat() };
}

// names in a text, as $name or ${name}.
const names = /\$(?:\{([A-Za-z]\w*)\}|([A-Za-z]\w*))/g;

const namesIn = (text) => [...text.matchAll(names)].map((m) => m[1] ?? m[2]);

// usedBy are the choices that a panel's queries name.
export function usedBy(panel, chosen) {
  const found = new Set(namesIn(JSON.stringify([panel.queries, panel.formulas])));
  return Object.fromEntries(Object.entries(chosen).filter(([name]) => found.has(name)));
}

const words = (values) => (values.length === 0 ? '…' : values.map((v) => (v === all ? 'All' : v)).join(', '));

// textWith is a title or text with the values in place of the variables. What is no variable
// stays as it is written.
export const textWith = (text, chosen) => text.replace(names, (written, a, b) => (Object.hasOwn(chosen, a ?? b) ? words(chosen[a ?? b]) : written));

// missing says why the values of some variables cannot be put anywhere: {fault, waiting}, or null.
function missing(found, chosen) {
  const unknown = found.find((name) => !Object.hasOwn(chosen, name));
  if (unknown) return { fault: `there is no variable “${unknown}”.` };
  const empty = found.find((name) => chosen[name].length === 0);
  return empty ? { fault: `no value of “${empty}” is known yet.`, waiting: true } : null;
}

// metricWith is a metric with the values in it, {metric} or {fault}. It names one metric, so each
// variable in it has one value.
function metricWith(text, chosen) {
  const found = namesIn(text);
  const none = missing(found, chosen);
  if (none) return none;
  const several = found.find((name) => chosen[name].length > 1 || chosen[name][0] === all);
  if (several) return { fault: `the metric “${text}” takes one value of “${several}”: choose one, or repeat the panel for each.` };
  return { metric: text.replace(names, (written, a, b) => chosen[a ?? b][0]) };
}

// queryWith is a query with the values in its metric and its filters: {query}, or {fault}, and
// waiting if it only has to wait for values.
export function queryWith(query, chosen) {
  const { metric, fault: none, waiting: late } = metricWith(query.metric, chosen);
  if (none) return { fault: none, waiting: late };
  const tags = [];
  for (const tag of query.tags) {
    const { value, fault, waiting } = filterWith(tag.value, chosen);
    if (fault) return { fault, waiting };
    tags.push({ ...tag, value });
  }
  return { query: { ...query, metric, tags } };
}

const star = Symbol('any characters');

// kinds of filters, and what the server calls them: for a list of names, for a pattern, for a
// regular expression.
const kinds = {
  literal_or: { names: 'literal_or', pattern: 'wildcard', expression: '' },
  wildcard: { names: 'literal_or', pattern: 'wildcard', expression: '', stars: true },
  iliteral_or: { names: 'iliteral_or', pattern: 'iwildcard', expression: '(?i)' },
  iwildcard: { names: 'iliteral_or', pattern: 'iwildcard', expression: '(?i)', stars: true },
  not_literal_or: { names: 'not_literal_or' },
  not_iliteral_or: { names: 'not_iliteral_or' },
};

// filterWith is the value of a tag with the chosen values in it, {value} or {fault}. A filter
// without variables stays as it is.
export function filterWith(text, chosen) {
  const found = namesIn(text);
  if (found.length === 0) return { value: text };
  const none = missing(found, chosen);
  if (none) return none;

  const [, call, inner] = /^([a-z_]+)\((.*)\)$/s.exec(text) ?? [];
  const body = call ? inner : text;
  if (call === 'regexp') return expressionWith(body, chosen);
  const kind = kinds[call ?? (body.includes('*') ? 'wildcard' : 'literal_or')];
  if (!kind) return { fault: `“${call}” is no filter.` };
  const templates = kind.stars ? [body] : body.split('|');
  const alternatives = templates.filter(Boolean).flatMap((t) => product(t, kind.stars, chosen));
  if (alternatives.length > limits.product) return { fault: `its filter stands for ${alternatives.length} values: ${limits.product} are the most.` };
  return written(alternatives, kind);
}

// product returns what a text stands for: lists of texts and stars.
function product(text, stars, chosen) {
  let out = [[]];
  const add = (options) => { if (out.length <= limits.product) out = out.flatMap((o) => options.map((x) => [...o, ...x])); };
  let from = 0;
  const plain = (t) => (stars ? t.split('*').flatMap((x, i) => (i === 0 ? [x] : [star, x])) : [t]).filter((x) => x !== '');
  for (const m of text.matchAll(names)) {
    add([plain(text.slice(from, m.index))]);
    add(chosen[m[1] ?? m[2]].map((v) => [v === all ? star : v]));
    from = m.index + m[0].length;
  }
  add([plain(text.slice(from))]);
  return out;
}

// written is a filter for alternatives: a list of names if it can be one, else a pattern, else
// a regular expression.
function written(alternatives, kind) {
  const open = alternatives.some((a) => a.includes(star));
  if (!open && !alternatives.flat().some((t) => t.includes('|'))) return { value: `${kind.names}(${alternatives.map((a) => a.join('')).join('|')})` };
  if (kind.expression === undefined) return { fault: open ? '“All” cannot be left out by a filter.' : 'a value with | cannot be left out by a filter.' };
  const [only] = alternatives;
  if (open && alternatives.length === 1 && !only.some((t) => t !== star && t.includes('*'))) return { value: `${kind.pattern}(${only.map((t) => (t === star ? '*' : t)).join('').replace(/\*+/g, '*')})` };
  const expressions = alternatives.map((a) => a.map((t) => (t === star ? '.*' : quoted(t))).join(''));
  return { value: `regexp(${kind.expression}^(?:${expressions.join('|')})$)` };
}

const quoted = (text) => text.replace(/[!-/:-@[-^`{-~]/g, '\\$&');

// expressionWith puts the values into a regular expression, quoted. A $ behind a backslash is
// that sign.
function expressionWith(body, chosen) {
  if (/\\[QE]/.test(body)) return { fault: 'a variable cannot stand in a regular expression with \\Q or \\E.' };
  const value = body.replace(/\\[\s\S]|\$(?:\{([A-Za-z]\w*)\}|([A-Za-z]\w*))/g, (found, a, b) => {
    if (found.startsWith('\\')) return found;
    const values = chosen[a ?? b];
    return values[0] === all ? '.*' : `(?:${values.map(quoted).join('|')})`;
  });
  return { value: `regexp(${value})` };
}
