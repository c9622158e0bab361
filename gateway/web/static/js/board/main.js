// The page of a dashboard, /d/NAME, and of the list of all, /d/. The document says what there
// is; range, zoom and colours are in the address. One socket serves all panels, of which those
// in view ask.

import { About } from '../about.js';
import * as api from '../api.js';
import { drawn, make } from '../element.js';
import { Fold } from '../fold.js';
import { plural, time } from '../format.js';
import { isWriting, Keys, ofCharts } from '../keys.js';
import { LiveClient } from '../live.js';
import { describe } from '../messages.js';
import { options } from '../queryrow.js';
import { RangeControls } from '../rangecontrols.js';
import { fromHash, panned, windowOf } from '../state.js';
import { duplicated, empty, newPanel, read, retyped, tagsOf } from './document.js';
import { Editor } from './editor.js';
import { Grid, lay } from './grid.js';
import { BoardList } from './list.js';
import { nameOf as nameOfTitle } from './names.js';
import { decode, elementOf, encode, putShared, sharedOf } from './link.js';
import { Notes } from '../notes.js';
import { Panel } from './panel.js';
import { inOrder, settle } from './places.js';
import { byMenu, print } from './print.js';
import { repeated } from './repeat.js';
import { Screen } from './screen.js';
import { shifts } from '../shift.js';
import { Undo } from './undo.js';
import { Values, whyNone } from './values.js';
import { VariableBar } from './variablebar.js';
import { VariableEditor } from './variableeditor.js';
import { chosenOf, depending, textWith, usedBy } from './variables.js';
import { Versions } from './versions.js';

const $ = (id) => document.getElementById(id);
const name = nameIn(location.pathname);

let board = null;       // the document
let later = false;      // of a later form: it is shown, and not edited
let version = 0;        // that it was made from, 0 for a new dashboard
let savedText = '';     // the document as it is saved
let versionText = '';   // the document as the version that is shown has it, '' for the one in force
let editing = false;
let fault = null;       // why there is no document: {kind, text}
let connection = null;
let carried = {};       // doc and v of the address
let view;               // the state of all charts, without their queries
let chosen = {};        // values of variables

const panels = new Map(); // by id
const undo = new Undo();
const live = new LiveClient(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/ws`, {
  token: api.token,
  onState: (c) => { connection = c; if (c.code === 1008) $('token-form').hidden = false; say(); },
});
const inView = new IntersectionObserver((entries) => {
  for (const e of entries) panels.get(e.target.dataset.id)?.see(e.isIntersecting);
});
const hands = {
  live,
  zoom: (from, to) => go({ zoom: [from, to] }),
  reset,
  full: (id) => screen.toggle(id),
  pan: (by) => { const part = panned(view, by, now()); if (part) go(part); },
  notes: () => notes.all,
  about: (query, onChange) => new About(query, () => { onChange(); listed(); }),
  mayMark: () => notes.may,
  mark: (from, to) => notes.open(from, to),
  read: (text) => { $('readout').textContent = text; },
};
const range = new RangeControls(go);
const values = new Values(() => render());
const bar = new VariableBar($('variables'), values, choose);
const notes = new Notes(() => { listed(); panels.forEach((p) => p.again()); });
const variableEditor = new VariableEditor((variables) => change({ variables: variables.length > 0 ? variables : undefined }, 'the change of variables'));
const versions = new Versions(earlierVersion);
const editor = new Editor((panel, fresh) => {
  const placed = fresh ? retyped(board, panel) : panel;
  change({ panels: board.panels.map((p) => (p.id === panel.id ? placed : p)) }, ...(fresh ? added(panel) : [`the change of ${nameOf(panel)}`]));
}, preview);
const screen = new Screen(panels, go);
const order = () => [...$('grid').children].map((e) => e.dataset.id);
const fold = new Fold($('fold'), [$('variables'), $('tools')]);
const keys = new Keys([
  { title: 'On this page', keys: [
    { key: 'f', does: 'fills the window with the panel that has the focus, or is below the mouse; again leaves it', run: () => screen.toggle(screen.at()) },
    { key: 'Escape', does: 'leaves it, too', run: () => screen.leave() },
    { key: 'j', does: 'goes to the next panel', run: () => screen.step(order(), 1) },
    { key: 'k', does: 'goes to the panel before', run: () => screen.step(order(), -1) },
    { key: 'e', does: 'edits, and ends it', run: () => board && edit() },
    { key: 'Ctrl z', does: 'undoes the last change, while one edits' },
    { key: 'p', does: 'pauses, and goes on', run: () => board && pause() },
    { key: 'z', does: 'resets the zoom', run: () => reset() },
  ] },
  ofCharts,
]);
const grid = new Grid($('grid'), () => board.panels, (list, words, hold) => change({ panels: list }, words, hold), (text) => { $('readout').textContent = text; });

// nameIn reads the dashboard's name. Of letters that are not UTF-8 the server says that they are no name.
function nameIn(path) {
  const text = path.replace(/^\/d\/?/i, '').replace(/\/$/, '').toLowerCase();
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// viewOf reads the address. What it does not name, the document says.
function viewOf() {
  const params = new URLSearchParams(location.hash.slice(1));
  const given = fromHash(location.hash);
  const { from = '', to = '' } = board?.range ?? {};
  return {
    start: params.get('start') || from || '1h-ago', end: params.has('start') || params.has('end') ? given.end : to,
    zoom: given.zoom, pause: given.pause, tz: given.tz, theme: given.theme, notes: false, panel: params.get('panel') ?? '', ...sharedOf(params),
  };
}

function address() {
  const params = new URLSearchParams();
  const { from = '1h-ago', to = '' } = board?.range ?? {};
  if (view.ranged || view.start !== from || view.end !== to) {
    params.set('start', view.start);
    if (view.end) params.set('end', view.end);
  }
  if (view.zoom) params.set('zoom', view.zoom.join());
  if (view.pause !== null) params.set('pause', view.pause);
  if (view.tz) params.set('tz', view.tz);
  if (view.theme) params.set('theme', view.theme);
  if (view.panel) params.set('panel', view.panel);
  putShared(params, view);
  for (const [k, v] of Object.entries(carried)) params.set(k, v);
  const text = params.toString();
  return location.pathname + (text && '#' + text);
}

// choose takes values for a variable. Those that it filters are reset: their values may be none of
// these.
function choose(name, list) {
  const given = Object.entries(view.given).filter(([n]) => n !== name && !depending(board.variables, name).includes(n));
  go({ given: { ...Object.fromEntries(given), [name]: list } });
}

// go changes the view, and the address with it.
function go(part) {
  view = { ...view, ...part };
  history.pushState(null, '', address());
  render();
}

const now = () => Date.now() / 1000;

// reset says whether there was a zoom.
function reset() {
  const zoomed = view.zoom !== null;
  if (zoomed) go({ zoom: null });
  return zoomed;
}

function pause() { go({ pause: view.pause === null ? Math.floor(now()) : null }); }

// change changes the document. The words, and whether it is one with the change before, are for the undo.
function change(part, words, hold) {
  undo.note(board, words, hold);
  board = { ...board, ...part };
  render();
}

// preview shows a panel in the dialog in which it is edited, null ends that.
let shown = null;
function preview(panel) {
  if (!panel) {
    shown?.close();
    shown = null;
    return;
  }
  if (!shown) {
    shown = new Panel({ ...hands, zoom: () => {}, reset: () => false, pan: () => {}, mayMark: () => false });
    $('editor-preview').append(shown.element);
  }
  const own = { ...chosen, ...(panel.repeat === undefined ? {} : { [panel.repeat]: firstOf(panel.repeat, (n) => values.of(board.variables.find((v) => v.name === n), chosen)) }) };
  shown.show({ ...panel, title: textWith(panel.title ?? '', own), ...(typeof panel.text === 'string' ? { text: textWith(panel.text, own) } : {}) }, { ...view, chosen: usedBy(panel, own) });
  shown.element.setAttribute('aria-label', 'Preview');
  shown.see(true);
}

const nameOf = (panel) => panel.title || `panel ${panel.id}`;

// added is a new panel for the undo: one step with the first change of it.
const added = ({ id }) => ['the new panel', `new ${id}`];

function undoLast() {
  const step = undo.undo();
  if (!step) return;
  board = step.document;
  view = viewOf();
  render();
  if ([document.body, $('undo')].includes(document.activeElement)) ($('undo').disabled ? $('add-panel') : $('undo')).focus();
  $('readout').textContent = `Undone: ${step.words}.`;
}

const written = () => JSON.stringify(board, null, 2);
const changed = () => board !== null && written() !== savedText;

function render() {
  $('time').hidden = $('tools').hidden = !board;
  document.documentElement.dataset.theme = view.theme;
  $('theme').value = view.theme;
  if (!board) return say();
  range.show(view);
  $('compare').value = view.shift;
  showVariables();
  notes.show(view, windowOf(view, now()));
  $('reset-zoom').hidden = !view.zoom;
  const title = board.title || name || 'Dashboard';
  $('title').textContent = textWith(title, chosen);
  document.title = `${$('title').textContent} · Downpour`;
  showEditing();
  place();
  screen.show(view);
  say();
}

// showVariables finds out what is chosen, and shows the controls.
function showVariables() {
  const { variables = [] } = board;
  chosen = chosenOf(variables, view.given, (v, others) => values.known(v, others));
  bar.show(variables, chosen);
  const unknown = Object.keys(view.given).find((name) => !variables.some((v) => v.name === name));
  const empty = variables.filter((v) => chosen[v.name].length === 0);
  const faults = empty.map((v) => whyNone(values.of(v, chosen)));
  const at = faults.findIndex(Boolean);
  $('variables-said').textContent = [
    at < 0 ? '' : `${empty[at].label || empty[at].name}: ${faults[at]}`, unknown ? `The address has a variable “${unknown}”, which this dashboard has not.` : '',
  ].filter(Boolean).join(' ');
}

function showEditing() {
  if ($('edit').getAttribute('aria-pressed') !== String(editing)) fold.set(editing); // what one edits with is there, also on a phone
  $('edit').setAttribute('aria-pressed', String(editing));
  $('edit').disabled = later;
  $('editing').hidden = !editing;
  if ($('board-title') !== document.activeElement) $('board-title').value = board.title ?? '';
  if ($('board-tags') !== document.activeElement) $('board-tags').value = (board.tags ?? []).join(', ');
  $('save').disabled = !changed();
  $('undo').disabled = undo.next === '';
  $('undo').title = undo.next && `Undo ${undo.next}`;
  $('versions-open').hidden = version === 0;
  $('versions-open').disabled = changed() && written() !== versionText; // changes would be lost
}

// place makes, lays, orders and removes panels. While one is dragged, their order on the page
// stays: the browser would drop it.
function place() {
  const list = (name) => values.of(board.variables.find((v) => v.name === name), chosen);
  // What is edited is the panel that the document has, once.
  const shown = editing ? board.panels.map((p) => ({ ...p, own: p.repeat === undefined ? {} : { [p.repeat]: firstOf(p.repeat, list) } })) : repeated(board.panels, chosen, list);
  const kept = new Set(shown.map((p) => p.id));
  for (const [id, p] of panels) {
    if (kept.has(id)) continue;
    inView.unobserve(p.element);
    p.close();
    panels.delete(id);
  }
  const dragging = document.querySelector('.panel :active') !== null;
  inOrder(shown).forEach((panel, i) => {
    const p = panels.get(panel.id) ?? add(panel.id);
    lay(p.element, panel.place);
    const own = { ...chosen, ...panel.own };
    p.show({ ...panel, title: textWith(panel.title ?? '', own), ...(typeof panel.text === 'string' ? { text: textWith(panel.text, own) } : {}) }, { ...view, chosen: usedBy(panel, own) });
    tools(p, panel);
    if (!dragging && $('grid').children[i] !== p.element) $('grid').insertBefore(p.element, $('grid').children[i] ?? null);
  });
}

// firstOf is the value for which a repeated panel stands while it is edited.
function firstOf(name, list) {
  const [first] = chosen[name];
  return first === '*' ? list(name).values.slice(0, 1) : [first].filter(Boolean);
}

function add(id) {
  const p = new Panel(hands);
  p.element.dataset.id = id;
  panels.set(id, p);
  $('grid').append(p.element);
  inView.observe(p.element);
  return p;
}

// tools are the buttons of a panel in edit mode.
function tools(p, panel) {
  const label = p.title.textContent || panel.type;
  const wanted = editing ? label : '';
  if (p.tools.dataset.of === wanted) return;
  p.tools.dataset.of = wanted;
  if (!editing) return p.tools.replaceChildren();
  const button = (sign, what, onClick) => {
    const b = make('button');
    b.append(sign);
    b.type = 'button';
    b.setAttribute('aria-label', `${what} ${label}`);
    b.addEventListener('click', onClick);
    return b;
  };
  const edit = button('Edit', 'Edit', () => editor.open(board.panels.find((x) => x.id === panel.id), edit, board.variables));
  edit.disabled = p.element.dataset.type === 'unknown';
  const duplicate = button(sheets(), 'Duplicate', () => {
    const copy = duplicated(board, panel.id);
    change({ panels: copy.panels }, `the copy of ${label}`);
    panels.get(copy.id).focus();
  });
  duplicate.title = 'Duplicate';
  const embed = button('</>', 'Copy for another page:', () => copyElement(panel.id));
  embed.title = 'Copy for another page';
  const remove = button('×', 'Remove', () => {
    change({ panels: settle(board.panels.filter((x) => x.id !== panel.id)) }, `the removal of ${label}`);
    $('undo').focus();
  });
  p.tools.replaceChildren(...grid.handles(panel.id, label), edit, duplicate, embed, remove);
}

// sheets is the picture of a copy.
function sheets() {
  const picture = drawn('svg', { width: 12, height: 12, viewBox: '0 0 12 12', 'aria-hidden': 'true' });
  picture.append(drawn('path', { d: 'M4 4h7v7H4zM1 8V1h7', fill: 'none', stroke: 'currentColor', 'stroke-width': 1.5 }));
  return picture;
}

// say tells the state of the whole page; what is wrong with one panel stands in it.
function say() {
  const { kind, text } = fault ?? overall();
  if ($('status').textContent !== text) $('status').textContent = text;
  $('status').dataset.kind = kind;
}

function overall() {
  if (!board) return { kind: 'connecting', text: 'Asking…' };
  const asked = [...panels.values()].flatMap((p) => p.questions.everything());
  const empty = (board.variables ?? []).filter((v) => chosen[v.name].length === 0);
  if (asked.length === 0 && empty.length > 0 && empty.every((v) => values.of(v, chosen).loading)) return { kind: 'connecting', text: 'Asking…' };
  if (asked.length === 0 && (!connection || connection.connected)) return { kind: 'idle', text: board.panels.length === 0 ? 'No panels yet.' : 'No chart in view.' };
  let kind = 'live';
  if (asked.some((e) => !e.answered && !e.error)) kind = 'connecting';
  else if (asked.every((e) => e.complete)) kind = 'complete';
  const said = { live: 'Live', connecting: 'Asking…', complete: 'Complete: this range lies in the past.' }[kind];
  return describe({ connection, queries: [{ letter: '', kind, text: said }], pause: view.pause, zone: view.tz });
}

function tell(text, kind = '') {
  $('told').textContent = text;
  $('told').dataset.kind = kind;
}

// take shows a document; text is what is saved, '' if it is not.
function take(text, from, saved) {
  const got = read(text);
  if (got.fault) {
    fault = { kind: 'error', text: got.fault };
    return render();
  }
  [fault, board, later, version] = [null, got.document, got.later, from];
  savedText = saved ? written() : '';
  if (later) {
    editing = false;
    tell('A later release made this dashboard. It is shown as far as this one knows it, and cannot be edited here.');
  }
  versionText = '';
  view = viewOf();
  render();
  // The observer tells only after a frame, in which those in view could have asked.
  for (const p of panels.values()) {
    const { top, bottom } = p.element.getBoundingClientRect();
    if (top < innerHeight && bottom > 0) p.see(true);
  }
}

// load takes what the address holds, or what is saved.
let again = null;
async function load() {
  clearTimeout(again);
  undo.clear();
  const params = new URLSearchParams(location.hash.slice(1));
  carried = params.has('doc') ? { doc: params.get('doc'), v: params.get('v') ?? '0' } : {};
  if (carried.doc) {
    const text = await decode(carried.doc).catch(() => null);
    if (text !== null) return take(text, Number.parseInt(carried.v, 10) || 0, false);
    fault = { kind: 'error', text: 'The link is damaged: it holds no dashboard.' };
    return render();
  }
  try {
    const { text, version: from } = await api.dashboard(name);
    take(text, from, true);
  } catch (error) {
    missing(error);
  }
}

// missing says why there is none, and what one can do.
function missing({ status, message }) {
  if (status === 404) {
    // Who makes one in the list has given it a title.
    [board, version, savedText, editing, fault] = [empty(new URLSearchParams(location.hash.slice(1)).get('title') || name), 0, '', true, null];
    tell(`There is no dashboard ${name} yet: what you save makes it.`);
  } else if (status === 424 || status === 400) {
    [board, version, savedText, editing, fault] = [empty(name), 0, '', true, null];
    tell(`${message}. Until then a dashboard can be kept in a link, and in a file.`, 'error');
  } else {
    fault = { kind: 'error', text: `The dashboard cannot be read: ${message}.` };
    if (status === undefined || status >= 500) again = setTimeout(load, 5000);
  }
  view = viewOf();
  render();
}

// earlierVersion shows a version as a change of the one in force.
function earlierVersion(text, number) {
  const got = read(text);
  if (got.fault || got.later) return tell(`Version ${number} cannot be shown: ${got.fault ?? 'a later release made it.'}`, 'error');
  undo.note(board, `the change to version ${number}`);
  board = got.document;
  versionText = written();
  view = viewOf();
  tell(`This is version ${number}. “Save” makes it the newest, “Discard” leaves it.`);
  render();
}

async function store(from) {
  const { start, end } = view;
  board = { ...board, range: { ...board.range, from: start, to: end } };
  const text = written();
  $('save').disabled = true;
  try {
    version = await api.saveDashboard(name, text, from);
    savedText = text;
    carried = {};
    $('conflict').hidden = true;
    tell(`Saved as version ${version}.`);
    history.replaceState(null, '', address());
  } catch (error) {
    if (error.status === 409) conflict(error.message);
    else tell(`Not saved: ${error.message}. Your changes are still here.`, 'error');
  }
  render();
}

function conflict(message) {
  tell('');
  $('conflict-text').textContent = `Not saved, because somebody else has: ${message}. Your changes are still here.`;
  $('theirs').href = location.pathname;
  $('conflict').hidden = false;
}

// saveMine saves in place of whatever is in force, once that was told.
async function saveMine() {
  try {
    await store((await api.dashboard(name)).version);
  } catch (error) {
    if (error.status === 404) await store(0);
    else tell(`Not saved: ${error.message}. Your changes are still here.`, 'error');
  }
}

function edit() {
  if (later) return;
  editing = !editing;
  tell('');
  render();
}

// sheet shows all panels as for a sheet, or the one that fills the window, and ends that.
function sheet(printing) {
  if (!board) return;
  const [from, to] = view.zoom || windowOf(view, Date.now() / 1000);
  $('sheet').textContent = `${time(Math.floor(from), view.tz)} to ${time(Math.floor(to), view.tz)}`;
  const theme = printing ? 'light' : view.theme;
  document.documentElement.dataset.theme = theme;
  for (const [id, p] of panels) {
    p.hold(printing && (!screen.id || screen.id === id));
    p.show(p.panel, { ...p.view, theme });
  }
}

const held = () => [...panels.values()].filter((p) => p.seen);

const printAll = () => print(held, sheet);

async function link() {
  // Whoever opens it sees this range and these values, whatever the document says by then.
  view = { ...view, given: Object.fromEntries(Object.entries(chosen).filter(([, list]) => list.length > 0)), ranged: true };
  const hash = changed() ? new URLSearchParams({ doc: await encode(written()), v: version }) : null;
  carried = hash ? Object.fromEntries(hash) : {};
  history.replaceState(null, '', address());
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  const holds = hash ? ' It holds the dashboard with your changes.' : '';
  tell(copied ? `The link is copied.${holds}` : `The link is this page’s address.${holds}`);
}

// copyElement copies what draws a panel in another page.
async function copyElement(id) {
  const text = elementOf(location.origin, name, id);
  const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  tell(`${copied ? 'Copied for another page' : 'For another page'}: ${text}${savedText && !changed() ? '' : ' It draws what is saved.'}`);
}

// list shows all dashboards.
async function list() {
  $('list').hidden = false;
  boardList ??= new BoardList();
  try {
    const all = await api.dashboardList();
    boardList.show(all);
    fault = { kind: 'complete', text: all.length > 0 ? plural(all.length, 'dashboard') : 'No dashboards yet.' };
  } catch (error) {
    fault = { kind: 'error', text: `The dashboards cannot be listed: ${error.message}.` };
  }
  say();
}
let boardList = null;

// imported opens a file as a link to a dashboard of its name, which is not saved yet.
async function imported(file) {
  const text = await file.text();
  const got = read(text);
  if (got.fault) return tell(`${file.name}: ${got.fault}`, 'error');
  const to = nameOfTitle(file.name.replace(/\.json$/i, ''));
  location.assign(`/d/${to}#${new URLSearchParams({ doc: await encode(text), v: 0 })}`);
}

// listed shows the annotations in view as a list: those of all charts, and those of the panels' series.
function listed() {
  if (board) notes.list([...panels.values()].flatMap((p) => p.ownNotes()));
}

options($('compare'), [['', 'Compare with …'], ...shifts.slice(1)]);
$('compare').addEventListener('change', (e) => go({ shift: e.target.value }));
for (const [id, way] of [['before', -1], ['after', 1]]) {
  $(id).addEventListener('click', () => { const [from, to] = view.zoom ?? windowOf(view, now()); hands.pan(way * (to - from) / 2); });
}
$('edit-variables').addEventListener('click', () => variableEditor.open(board));
options($('theme'), [['', 'as the system'], ['light', 'light'], ['dark', 'dark']]);
$('theme').addEventListener('change', (e) => go({ theme: e.target.value }));
$('pause').addEventListener('click', pause);
$('reset-zoom').addEventListener('click', () => { go({ zoom: null }); $('range').focus(); });
$('edit').addEventListener('click', edit);
$('keys-open').addEventListener('click', () => keys.open());
byMenu(sheet, (until) => {
  live.answerAtOnce(until);
  held().forEach((p) => p.drawAtOnce());
});
$('print').addEventListener('click', printAll);
addEventListener('keydown', (e) => {
  if (e.key !== 'p' || !(e.ctrlKey || e.metaKey) || !board) return;
  e.preventDefault();
  printAll();
});
addEventListener('keydown', (e) => {
  if (e.key !== 'z' || !(e.ctrlKey || e.metaKey) || e.shiftKey || e.altKey || !board || !editing || isWriting(e.target) || document.querySelector('dialog[open]')) return;
  e.preventDefault();
  undoLast();
});
$('undo').addEventListener('click', undoLast);
$('board-title').addEventListener('input', (e) => change({ title: e.target.value }, 'the change of the title', 'title'));
$('add-panel').addEventListener('click', () => {
  const panel = newPanel(board, 'lines');
  change({ panels: [...board.panels, panel] }, ...added(panel));
  panels.get(panel.id).element.scrollIntoView({ block: 'nearest' });
  editor.open(panel, $('add-panel'), board.variables, true);
});
$('save').addEventListener('click', () => store(version));
$('discard').addEventListener('click', () => {
  $('conflict').hidden = true;
  carried = {};
  editing = false;
  tell('');
  history.replaceState(null, '', address());
  load();
});
$('take-theirs').addEventListener('click', () => $('discard').click());
$('save-mine').addEventListener('click', saveMine);
$('versions-open').addEventListener('click', () => versions.open(name, version, $('versions-open')));
$('link').addEventListener('click', link);
$('export').addEventListener('click', () => download());
$('import').addEventListener('change', (e) => e.target.files[0] && imported(e.target.files[0]));
$('board-tags').addEventListener('change', (e) => { const tags = tagsOf(e.target.value); change({ tags: tags.length > 0 ? tags : undefined }, 'the change of tags'); });
api.onOperator(() => { $('operations').hidden = false; });
api.onRefused(() => { $('token-form').hidden = false; });
$('token-form').addEventListener('submit', (e) => {
  e.preventDefault();
  api.setToken($('token').value.trim());
  $('token-form').hidden = true;
  live.reconnect();
  values.forget();
  notes.forget();
  if (!name) list();
  else if (!board) load();
  else render();
});
for (const event of ['popstate', 'hashchange']) {
  addEventListener(event, () => {
    const doc = new URLSearchParams(location.hash.slice(1)).get('doc');
    if (name && (doc ?? undefined) !== carried.doc) return load();
    view = viewOf();
    render();
  });
}
addEventListener('online', () => live.connect());
addEventListener('beforeunload', (e) => { if (editing && changed() && board.panels.length > 0) e.preventDefault(); });
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && connection && !connection.connected) live.connect();
});
// What panels hear from the socket changes what the page says as a whole.
setInterval(() => {
  say();
  if (board && !view.end && !view.zoom && view.pause === null && !document.hidden) {
    panels.forEach((p) => p.move());
    shown?.move();
  }
}, 1000);

function download() {
  const link = Object.assign(make('a'), { href: URL.createObjectURL(new Blob([written()], { type: 'application/json' })), download: `${name || 'dashboard'}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// For tests: what is asked and drawn, without looking at pixels.
window.__downpour = {
  status: () => $('status').dataset.kind,
  version: () => version,
  chosen: () => chosen,
  notes: () => notes.all,
  board: () => board,
  panels: () => [...panels.values()].map((p) => ({
    id: p.element.dataset.id, seen: p.seen, kind: p.kind, asked: p.questions.everything().length, series: p.lines.map((l) => l.label), points: p.questions.points(),
  })),
  drawing: (id) => panels.get(id)?.drawing,
  preview: () => shown,
  cursors: () => [...panels.values()].map((p) => p.drawing.cursor?.time ?? null),
};

view = viewOf();
render();
if (name) {
  live.connect(); // beside the document: panels that ask find it open
  load();
} else list();
