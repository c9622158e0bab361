// The page: state in the address, controls above, chart, legend, numbers and
// table below. Everything follows from the state; a change there changes the
// live subscriptions, whose answers are drawn.

import * as api from './api.js';
import { About, merged } from './about.js';
import { Chart } from './chart.js';
import { Looks, letter, toColumns } from './columns.js';
import { Controls } from './controls.js';
import { DataTable } from './datatable.js';
import { arrow, csv, png, save } from './download.js';
import { Fold } from './fold.js';
import { plural, time } from './format.js';
import { remember } from './history.js';
import { Inspect } from './inspect.js';
import { Keys, ofCharts } from './keys.js';
import { LinesLegend } from './lineslegend.js';
import { LiveClient } from './live.js';
import { describe } from './messages.js';
import { Notes } from './notes.js';
import { listNotes } from './noteslist.js';
import { effectiveDownsample, faultOf } from './query.js';
import { options } from './queryrow.js';
import { Questions } from './questions.js';
import { Earlier, labelled, looksOf, shifts } from './shift.js';
import { emptyQuery, formatM, fromHash, panned, toHash, windowOf } from './state.js';
import { summary } from './stats.js';
import { Tooltip } from './tooltip.js';

const $ = (id) => document.getElementById(id);
const now = () => Date.now() / 1000;

let state = fromHash(location.hash);
let connection = null;
let metricsExist;
let lines = [];        // {label, group, letter, right, step} of each line drawn
let picture = { labels: [], looks: [], sides: [], data: [[]], hidden: new Set(), notes: [], pins: [], range: [0, 1] };
let cursor = null;
let dirty = false;     // a frame is due
let fresh = true;      // and the points have changed

const looks = new Looks();
const tooltip = new Tooltip($('chart'), (t) => go({ pins: state.pins.filter((p) => p !== t) }, true));
const chart = new Chart($('chart'), {
  onZoom: (from, to) => go({ zoom: [from, to] }),
  onReset: () => reset(),
  onCursor: (c) => { cursor = c; showCursor(); },
  onPin: (t) => go({ pins: state.pins.includes(t) ? state.pins.filter((p) => p !== t) : [...state.pins, t].slice(-4) }, true),
  onPan: (by) => { const part = panned(state, by, now()); if (part) go(part); },
  mayMark: () => annotations.may,
  onMark: (from, to) => annotations.open(from, to),
  onRead: (text) => { $('readout').textContent = text; },
  onDraw: (plot) => tooltip.pin(state.pins, plot, picture),
});
const table = new DataTable($('table'));
const legend = new LinesLegend($('legend'), { onToggle: toggle, onPoint: (label) => chart.emphasise(label) }, (choice) => go(choice, true));
const controls = new Controls(go);
const fold = new Fold($('fold'), [$('query')], $('view'));
const keys = new Keys([
  { title: 'On this page', keys: [{ key: '/', does: 'finds a metric', run: () => $('metric').focus() }, { key: 'p', does: 'pauses, and goes on', run: () => pause() }, { key: 'z', does: 'resets the zoom', run: () => reset() }, { key: 'w', does: 'lists what changed in the range in view', run: () => { if (!starting()) $('what-changed').click(); } }] },
  { ...ofCharts, keys: [...ofCharts.keys, { key: 'Enter', does: 'pins the point' }] },
]);
const inspects = ['explain', 'trace'].map((kind) => new Inspect($(kind), kind));
const live = new LiveClient(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/ws`, {
  token: api.token,
  onState: (c) => { connection = c; if (c.code === 1008) $('token-form').hidden = false; redraw(); },
});

// What a chart does without is loaded once it is wanted: the first chart comes sooner.
const later = (load) => { let loading; return () => (loading ??= load()); };
let start = null;
const loadStart = later(async () => { start = new (await import('./start.js')).Start($('start'), live, (metric) => charted(metric)); });
const adding = later(async () => new (await import('./addingdialog.js')).AddingDialog(() => state, (nodes) => $('told').replaceChildren(...nodes)));
const past = later(async () => new (await import('./historydialog.js')).HistoryDialog());
$('to-dashboard').addEventListener('click', async () => (await adding()).open());
const changed = later(async () => new (await import('./changes.js')).Changes($('changes'), ({ queries: [q], ...part }) => toHash({ ...state, formulas: [], ...part, queries: [{ ...emptyQuery(), ...q }] })));
$('what-changed').addEventListener('click', async () => (await changed()).ask(range(), state.tz));
$('history-open').addEventListener('click', async () => (await past()).open());
const questions = new Questions(live, redraw, (e) => e.about?.close());
const earlier = new Earlier(live, redraw);
const annotations = new Notes(() => redraw(true));
const entries = () => questions.entries();
const everything = () => questions.everything();
const points = () => questions.points();

// go changes the state, and the address with it; a small change replaces the
// address instead of adding to the browser's history.
function go(change, small = false) {
  state = { ...state, ...change };
  history[small ? 'replaceState' : 'pushState'](null, '', toHash(state));
  apply();
}

// charted is the address of a chart of a metric.
const charted = (metric) => toHash({ ...state, queries: [{ ...emptyQuery(), metric }] });

// starting says whether the page shows what is stored, because nothing is chosen.
const starting = () => metricsExist !== false && !state.queries.some((q) => q.metric);

function apply() {
  document.body.toggleAttribute('data-start', starting());
  controls.show(state);
  document.documentElement.dataset.theme = state.theme;
  for (const details of document.querySelectorAll('details')) details.open = state.open.includes(details.id);
  $('reset-zoom').hidden = !state.zoom;
  const metrics = state.queries.map((q) => q.metric).filter(Boolean);
  document.title = [...metrics, 'Downpour'].join(' · ');
  $('fold').textContent = `Query${metrics.length > 0 ? `: ${metrics.join(', ')}` : ''}`;
  if (metrics.length === 0) fold.set(true);
  questions.ask(state, now());
  earlier.ask(state, state.shift, now());
  $('compare').value = [...$('compare').options].some((o) => o.value === state.shift) ? state.shift : '';
  $('told').replaceChildren();
  inspects.forEach((i) => i.show(questions.asked.map((e, n) => e && { letter: letter(n), query: e.query }).filter(Boolean)));
  showStart();
  redraw(true);
}

// showStart shows the metrics once it is known that there are some, or ends that.
function showStart() {
  document.body.toggleAttribute('data-start', starting());
  if (starting() && metricsExist) loadStart().then(() => { if (starting()) start.show($('metric').value.trim()); });
  else start?.close();
}

// redraw draws in the next frame, however often it is called; a hidden page
// gets no frames and costs nothing.
function redraw(changed = false) {
  fresh ||= changed;
  if (dirty) return;
  dirty = true;
  requestAnimationFrame(() => { dirty = false; draw(); });
}

function draw() {
  if (fresh) collect();
  fresh = false;
  picture.range = range();
  chart.draw(picture);
  legend.draw(picture, rows, new Set(state.hide));
  $('legend-as').hidden = picture.labels.length === 0;
  const other = legend.isTable(picture.labels.length) ? 'As a list' : 'As a table';
  if ($('legend-as').textContent !== other) $('legend-as').textContent = other;
  showCursor();
  table.draw(lines.filter((l) => !picture.hidden.has(l.label)), picture.range, state.tz);
  say();
}

// collect makes a picture of the answers.
function collect() {
  lines = [...questions.lines(state), ...earlier.lines(Math.min(now(), range()[1]))];
  labelled(lines);
  const names = lines.map((l) => l.label);
  legend.set(state.legend, { only: state.only, most: state.most });
  const data = toColumns(lines.map((l) => ({ times: l.group.times, values: l.group.values, step: l.step })), state.log);
  picture = {
    labels: names, looks: looksOf(looks, lines), sides: lines.map((l) => l.right), data, range: range(), hidden: new Set(state.hide),
    notes: notes(),
    pins: state.pins, log: state.log, zone: state.tz, theme: state.theme,
  };
  for (const label of legend.left(rows)) picture.hidden.add(label);
  questions.asked.forEach((e, i) => {
    const groups = e?.shown ? [...e.shown.groups.values()] : [];
    const summed = [...new Set(groups.flatMap((g) => g.aggregateTags))];
    controls.rows[i].answered([...new Set([...groups.flatMap((g) => Object.keys(g.tags)), ...summed])].sort(), summed);
  });
  // What one does not see comes behind the drawing.
  if (entries().some((e) => e.answered)) setTimeout(() => { annotations.show(state, windowOf(state, now())); keepHistory(); });
  showNumbers();
  listNotes(picture.notes, state.tz);
}

// keepHistory remembers what has been answered with points.
function keepHistory() {
  const all = everything();
  if (points() === 0 || all.some((e) => !e.answered)) return;
  const hash = toHash({ ...state, zoom: null, pause: null, pins: [], open: [] });
  if (hash === keptHash) return;
  keptHash = hash;
  remember({ text: [...state.queries.filter((q) => q.metric).map(formatM), ...state.formulas.filter((f) => f.expr).map((f) => f.name || f.expr)].join(', '), hash });
}
let keptHash = '';

// rows are the lines as the table of the legend has them.
const rows = () => lines.map((l, i) => ({ label: l.label, look: picture.looks[i], right: l.right, ...summary(l.group, picture.range) }));

// notes asks for the annotations of what is answered, while they are wanted.
function notes() {
  for (const e of entries()) {
    if (state.notes && e.answered) e.about ??= new About(e.query, () => redraw(true));
    else if (!state.notes) { e.about?.close(); e.about = null; }
  }
  const [from, to] = windowOf(state, now());
  const global = state.notes ? annotations.all.filter((n) => n.time >= from && n.time <= to) : [];
  const all = new Map([...merged(entries().map((e) => e.about).filter(Boolean), [from, to]), ...global].map((n) => [`${n.time} ${n.text}`, n]));
  return [...all.values()].sort((a, b) => a.time - b.time);
}

function showNumbers() {
  const sum = (of) => everything().reduce((n, e) => n + of(e), 0);
  $('points').textContent = points();
  const rows = everything().every((e) => e.rows !== null) && questions.asked.length > 0 ? sum((e) => e.rows) : null;
  $('from-rows').hidden = rows === null;
  if (rows !== null) $('rows').textContent = rows;
  const elapsed = Math.max(...everything().map((e) => e.elapsed ?? -1));
  $('elapsed').textContent = elapsed >= 0 ? elapsed : '–';
  const lost = state.log ? lines.reduce((n, l) => n + l.group.values.filter((v) => v !== null && v <= 0).length, 0) : 0;
  const ignored = new Set(everything().flatMap((e) => e.ignored));
  $('lost').textContent = [...(lost > 0 ? [`${plural(lost, 'point')} at or below zero: not on a log scale`] : []), ...ignored].join('. ');
}

let offered = '';
function say() {
  const faults = state.queries.map((q) => q.metric && faultOf(q));
  const queries = questions.ofQueries(state);
  const { kind, text } = describe({ connection, metricsExist, queries, pause: state.pause, zone: state.tz });
  const status = $('status');
  if (status.textContent !== text) status.textContent = text; // said again, it would be read aloud again
  status.dataset.kind = kind;
  controls.rows.forEach((row, i) => {
    const q = queries.find((x) => x.letter === letter(i));
    const told = (queries.length > 1 || faults[i]) && q && !['live', 'complete', 'connecting'].includes(q.kind);
    row.tell(told ? q.text : '', q?.kind ?? '', faults[i]);
    row.offer(q?.near ?? []);
    if (q?.near && i === 0 && offered !== q.text) fold.set(true); // they are to be seen on a phone, too
    if (i === 0) offered = q?.near ? q.text : '';
  });
  questions.ofFormulas().forEach(({ kind, text }, i) => controls.formulas[i].tell(text, kind));
  const before = earlier.said();
  if ($('compare-said').textContent !== before) $('compare-said').textContent = before;
  const empty = picture.data[0].length === 0;
  $('message').hidden = !empty || faults.some(Boolean) || ['live', 'complete', 'paused', 'polling'].includes(kind);
  $('message').textContent = text;
  $('chart').toggleAttribute('data-empty', empty);
  $('chart').toggleAttribute('data-stale', everything().some((e) => !e.answered && e.shown));
  const metrics = [...new Set(entries().map((e) => e.metric))].join(', ');
  $('chart').setAttribute('aria-label', `${metrics || 'No metric'}, ${plural(picture.labels.length, 'line')}`);
}

const range = () => state.zoom || windowOf(state, now());

function showCursor() {
  legend.values(cursor);
  tooltip.show(cursor, picture);
}

// toggle hides or shows a line, or shows it alone, or all again.
function toggle(label, alone) {
  const others = picture.labels.filter((n) => n !== label);
  const isAlone = others.every((n) => state.hide.includes(n)) && !state.hide.includes(label);
  let hide;
  if (alone) hide = isAlone ? [] : others;
  else hide = state.hide.includes(label) ? state.hide.filter((n) => n !== label) : [...state.hide, label];
  go({ hide });
}

// pause makes the range end where it is; what is asked is then the past.
function pause() {
  go({ pause: state.pause === null ? Math.floor(now()) : null });
}

// reset says whether there was a zoom.
function reset() {
  const zoomed = state.zoom !== null;
  if (zoomed) go({ zoom: null });
  return zoomed;
}

// first finds out what there is to look at on a page that names nothing: a dashboard, while nothing but
// this host's metrics is stored, or all metrics.
let next = null;
async function first() {
  clearTimeout(next);
  if (state.queries.some((q) => q.metric)) return;
  let wait = 1000;
  try {
    const { start: board, dashboards } = await api.startPage();
    if (board && !location.hash) return location.replace(`/d/${board}`);
    await loadStart();
    start.offer(dashboards);
    metricsExist = (await api.suggest('metrics', 1)('')).length > 0;
    showStart();
    if (metricsExist) return redraw();
  } catch { wait = 5000; }
  redraw();
  clearTimeout(next);
  next = setTimeout(first, wait);
}
$('queries').addEventListener('input', (e) => { if (e.target.id === 'metric' && starting() && metricsExist) start?.find(e.target.value.trim()); });

function loadAggregators() {
  api.aggregators().then((list) => controls.aggregators(list), () => setTimeout(loadAggregators, 5000));
}

// download runs one of the buttons and tells what went wrong.
function download(id, make) {
  $(id).addEventListener('click', async () => {
    $('download-error').textContent = '';
    try {
      const metric = entries()[0]?.metric ?? '';
      save(await make(), id === 'arrow' ? 'arrows' : id, metric, picture.range[0], state.tz);
    } catch (error) {
      $('download-error').textContent = `No ${$(id).textContent}: ${error.message}.`;
    }
  });
}
const shown = () => lines.filter((l) => !picture.hidden.has(l.label));
download('csv', () => new Blob([csv(shown(), picture.range)], { type: 'text/csv' }));
download('png', () => png(chart.canvas, [...new Set(entries().map((e) => e.metric))].join(', ') + picture.range.map((t, i) => `${i ? ' to ' : ', '}${time(Math.floor(t), state.tz)}`).join(''), picture));
download('arrow', () => arrow(entries().map((e) => e.query)));

for (const details of document.querySelectorAll('details')) {
  details.addEventListener('toggle', () => {
    if (details.open === state.open.includes(details.id)) return;
    go({ open: details.open ? [...state.open, details.id] : state.open.filter((id) => id !== details.id) }, true);
  });
}
$('legend-as').addEventListener('click', () => go({ legend: legend.isTable(picture.labels.length) ? 'list' : 'table' }, true));
options($('compare'), [['', 'Compare with …'], ...shifts.slice(1)]);
$('compare').addEventListener('change', (e) => go({ shift: e.target.value }));
$('link').addEventListener('click', async () => {
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  $('told').textContent = copied ? 'The link is copied.' : 'The link is this page’s address.';
});
$('pause').addEventListener('click', pause);
$('reset-zoom').addEventListener('click', () => { go({ zoom: null }); $('chart').focus(); });
$('keys-open').addEventListener('click', () => keys.open());
for (const event of ['popstate', 'hashchange']) {
  addEventListener(event, () => { state = fromHash(location.hash); apply(); first(); });
}
addEventListener('online', () => live.connect());
document.addEventListener('visibilitychange', () => {
  start?.see(!document.hidden);
  if (document.hidden) return;
  if (connection && !connection.connected) live.connect();
  redraw();
});
setInterval(() => {
  if (state.end || state.zoom || state.pause !== null || document.hidden || picture.labels.length === 0) return;
  chart.move(range());
  earlier.ask(state, state.shift, now());
  if (earlier.due(now())) redraw(true);
}, 1000);
api.onOperator(() => { $('operations').hidden = false; });
api.onRefused(() => { $('token-form').hidden = false; });
$('token-form').addEventListener('submit', (e) => {
  e.preventDefault();
  api.setToken($('token').value.trim());
  $('token-form').hidden = true;
  live.reconnect();
  annotations.forget();
  apply();
  first();
});

// For tests: what is drawn, without looking at pixels.
window.__downpour = {
  points,
  series: () => picture.labels.slice(),
  shown: () => picture.labels.filter((l) => !picture.hidden.has(l)),
  cards: () => start?.drawn() ?? [],
  last: () => {
    const found = lines.map((l) => l.group).filter((g) => g.times.length > 0).sort((a, b) => b.times.at(-1) - a.times.at(-1))[0];
    return found ? { metric: found.metric, tags: found.tags, time: found.times.at(-1), value: found.values.at(-1) } : null;
  },
  columns: () => picture.data,
  status: () => $('status').dataset.kind,
  downsample: (i = 0) => effectiveDownsample(state, state.queries[i], now()),
};

loadAggregators();
apply();
live.connect();
first();
