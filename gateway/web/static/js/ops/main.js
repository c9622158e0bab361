// The operator's page: what /api/ops tells, over the socket of live queries, as tables and strips.
// Names and errors come from whoever put or asked them: they are only ever texts.

import * as api from '../api.js';
import { drawn, make } from '../element.js';
import { plural } from '../format.js';
import { LiveClient } from '../live.js';
import { describe } from '../messages.js';
import { classOf, drawRuns, drawStack } from './strip.js';
import { Table } from './table.js';
import * as words from './words.js';

const $ = (id) => document.getElementById(id);

let report = null;
let connection = null;
let fault = null;   // {kind, text} of the last error, null while reports come
let dirty = false;  // a frame is due
const ending = new Set(); // ids of queries that were ended here

const text = (title, of, look = 'text') => ({ title, text: of, class: () => look });
const figure = (title, of) => ({ title, text: of });

const running = new Table($('running'), [
  text('Query', words.asked, 'text long'), text('Client', words.who),
  figure('Since', (q) => words.duration(q.elapsed)), figure('Points', (q) => words.number(q.points)), figure('Read', (q) => words.size(q.bytes)), figure('Memory', (q) => words.size(q.memory)),
  { title: 'End', button: {
    label: (q) => (isEnding(q) ? 'Ending…' : 'End'), off: isEnding, press: end,
    name: (q) => `${isEnding(q) ? 'Ending' : 'End'} query ${q.id}`,
  } },
], 'No query is running.', (q) => q.id);

const ended = (place, none) => new Table($(place), [
  text('Query', words.asked, 'text long'), text('Client', words.who), text('Began', (q) => words.moment(q.start)),
  figure('Took', (q) => words.duration(q.took)), figure('Points', (q) => words.number(q.points)), figure('Read', (q) => words.size(q.bytes)),
  { title: 'Status', text: (q) => String(q.status), class: (q) => (q?.failure ? 'bad' : '') },
  text('Error', (q) => q.failure ?? '', 'text long'),
], none);
const slowest = ended('slowest', 'No query has ended within the last hour.');
const heaviest = ended('heaviest', 'No query has ended within the last hour.');

const refusals = new Table($('refusals'), [
  text('Refused by', (r) => r.via), text('Reason', (r) => r.reason), figure('Points', (r) => words.number(r.points)), figure('Times', (r) => words.number(r.times)),
  text('Last', (r) => words.moment(r.last)), text('Error', (r) => r.error, 'text long'),
], 'No point was refused since the start.', (r) => `${r.via} ${r.reason}`);

const live = new Table($('live'), [
  text('Query', words.asked, 'text long'), figure('Subscribers', (q) => String(q.subscribers)), figure('Memory', (q) => words.size(q.bytes)), text('Error', (q) => q.error ?? '', 'text long bad'),
  { title: 'End', button: { label: () => 'End', off: (q) => ending.has(q.id), press: endLive, name: (q) => `End live query ${q.id}` } },
], 'There is no live query.', (q) => q.id);

const counted = (place, title, count) => new Table($(place), [text(title, (n) => n.name, 'text long'), figure(count, (n) => words.number(n.count)), figure('New today', (n) => words.number(n.new ?? 0))], 'None was found.', (n) => n.name);
let metrics = null; // tables of the last count of series
let tagKeys = null;

const memory = new Table($('memory'), [
  text('Held by', (h) => words.holders[h.name] ?? h.name), figure('Bytes', (h) => words.size(h.bytes)), figure('Of all', (h) => words.share(h.bytes, report.memory.limit)),
  { title: 'Refused', text: (h) => words.number(h.refused), class: (h) => (h?.refused > 0 ? 'warn' : '') },
], '', (h) => h.name);

const cache = new Table($('cache'), [text('Since the start', (c) => c.what), { title: 'Count', text: (c) => c.text, class: () => 'wrap' }], '', (c) => c.what);

const uids = new Table($('uids'), [
  text('Kind', (u) => words.kinds[u.kind] ?? u.kind), figure('Used', (u) => words.number(u.used)),
  { title: 'Of all', text: (u) => words.share(u.used, u.most), class: (u) => (u && u.used > 0.8 * u.most ? 'bad' : '') },
  figure('New', words.grown), { title: 'Run out', text: words.runsOut, class: (u) => (u?.runOut ? 'warn' : '') },
], 'Their counts are not known.', (u) => u.kind);

const states = { healthy: '', away: 'bad', unchecked: 'warn' };
const places = new Table($('places'), [
  text('Place', (p) => p.address), text('Beside', (p) => p.beside ?? ''), { title: 'State', text: (p) => p.state ?? 'this process', class: (p) => `text ${states[p?.state] ?? ''}`.trim() },
  figure('Regions', (p) => words.number(p.regions)), figure('Parts', (p) => words.number(p.parts)), { title: 'Failed', text: (p) => words.number(p.failed), class: (p) => (p?.failed > 0 ? 'bad' : '') },
  figure('Read', (p) => words.size(p.bytes)),
  { title: 'Mean', text: (p) => words.duration(p.mean), class: (p, all) => (p && words.slow(p, all) ? 'warn' : '') }, figure('Longest', (p) => words.duration(p.longest)),
  text('Last error', (p) => (p.lastError ? `${words.moment(p.lastFail)} ${p.lastError}` : ''), 'text long'),
], '', (p) => p.address);

function isEnding(q) { return ending.has(q.id) || Boolean(q.endedBy); }

// end ends a query. The row goes once the query has stopped.
async function end(q) {
  ending.add(q.id);
  redraw();
  try {
    await api.endQuery(q.id);
    tell(`Query ${q.id} is told to end.`);
  } catch (error) {
    ending.delete(q.id);
    tell(`Query ${q.id} was not ended: ${error.message}.`, 'error');
  }
  redraw();
}

// endLive ends a live query: its clients are told, and do not ask it again by themselves.
async function endLive(q) {
  ending.add(q.id);
  redraw();
  try {
    await api.endLive(q.id);
    tell(`Live query ${q.id} was ended.`);
  } catch (error) {
    tell(`Live query ${q.id} was not ended: ${error.message}.`, 'error');
  }
  ending.delete(q.id);
  redraw();
}

// countSeries counts the series of the meta table: it reads the keys of them all, so it is done when
// somebody asks for it.
$('count-series').addEventListener('click', async () => {
  $('count-series').disabled = true;
  set('series-said', 'Counting…');
  try {
    const counts = await api.countSeries();
    metrics ??= counted('top-metrics', 'Metric', 'Series');
    tagKeys ??= counted('top-tagks', 'Tag key', 'Values');
    metrics.draw(counts.metrics);
    tagKeys.draw(counts.tagKeys);
    set('series-said', words.series(counts));
  } catch (error) {
    set('series-said', `They were not counted: ${error.message}.`);
  }
  $('count-series').disabled = false;
});

function tell(said, kind = '') {
  $('told').textContent = said;
  $('told').dataset.kind = kind;
}

// redraw draws in the next frame; a hidden page gets no frames and costs nothing.
function redraw() {
  if (dirty) return;
  dirty = true;
  requestAnimationFrame(() => { dirty = false; draw(); });
}

function draw() {
  say();
  if (!report) return;
  set('about', words.about(report));
  for (const id of ending) if (![...report.queries.running, ...report.live.listed].some((q) => q.id === id)) ending.delete(id);
  running.draw(report.queries.running);
  slowest.draw(report.queries.slowest);
  heaviest.draw(report.queries.heaviest);
  drawPuts(report.puts);
  set('live-said', words.live(report.live));
  live.draw(report.live.listed);
  set('memory-said', words.memory(report.memory));
  memory.draw(report.memory.held);
  set('cache-said', words.cache(report.resultCache));
  cache.draw(words.cacheRows(report.resultCache));
  set('uids-said', report.uidsFailed ?? '');
  uids.draw(report.uids ?? []);
  drawPlaces(report.places);
}

const sources = [['http', 'p0', 'HTTP'], ['telnet', 'p1', 'telnet'], ['own', 'p6', 'this host’s own'], ['refused', 'refused', 'refused']];

function drawPuts(puts) {
  set('puts-said', words.puts(puts));
  drawStack($('puts-strip'), sources.map(([name]) => puts[name]), sources.map(([, look]) => look), `Points by second, ${puts.http.length} s: ${words.puts(puts)}`);
  key($('puts-key'), sources.map(([, look, name]) => [look, name]));
  refusals.draw(puts.reasons);
}

function drawPlaces(all) {
  set('places-said', words.places(all));
  drawRuns($('regions-strip'), all.regions, `Regions by place: ${all.list.map((p) => `${p.address} ${plural(p.regions, 'region')}`).join(', ')}`);
  places.draw(all.list);
  all.list.forEach((p, i) => mark(places.rows.get(p.address).cells[0], all.regions.length > 0 ? classOf(i) : ''));
}

// mark puts a sign of a place's colour in front of its name.
function mark(cell, look) {
  const there = cell.querySelector('svg');
  if (!look) there?.remove();
  else if (there?.firstChild.getAttribute('class') !== look) {
    there?.remove();
    cell.prepend(sign(look));
  }
}

function sign(look) {
  const svg = drawn('svg', { viewBox: '0 0 1 1', width: 10, height: 10, 'aria-hidden': 'true' });
  svg.append(drawn('rect', { width: 1, height: 1, class: look }));
  return svg;
}

// key lists the colours of a strip, once.
function key(list, entries) {
  if (list.children.length > 0) return;
  for (const [look, name] of entries) {
    const li = make('li');
    li.append(sign(look), name);
    list.append(li);
  }
}

function set(id, said) { if ($(id).textContent !== said) $(id).textContent = said; }

function say() {
  const state = fault ?? (report ? { kind: 'live', text: 'Live' } : { kind: 'connecting', text: 'Asking…' });
  const { kind, text: said } = describe({ connection: fault?.final ? null : connection, queries: [{ letter: '', ...state }] });
  set('status', said);
  $('status').dataset.kind = kind;
}

function take(next) {
  fault = null;
  report = next;
  redraw();
}

// failed takes in an error. One that is final, as of a token without the scope, is not followed by
// reports until there is another token.
function failed({ code, message, temporary }) {
  if (code === 401 || code === 403) $('token-form').hidden = false;
  fault = { kind: 'error', text: `The server says: ${message}.`, final: !temporary };
  redraw();
}

const client = new LiveClient(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/ws`, {
  token: api.token,
  onState: (c) => { connection = c; if (c.code === 1008) $('token-form').hidden = false; redraw(); },
});

let subscription = null;
function subscribe() {
  subscription?.close();
  subscription = client.subscribe(true, { onData: take, onError: failed }, 'ops');
  // At once, and a browser says nothing of a socket that wants a token.
  api.operations().then((first) => { if (!report) take(first); }, ({ status, message }) => { if (status) failed({ code: status, message, temporary: status >= 500 }); });
}

api.onRefused(() => { $('token-form').hidden = false; });
$('token-form').addEventListener('submit', (e) => {
  e.preventDefault();
  api.setToken($('token').value.trim());
  $('token-form').hidden = true;
  fault = null;
  client.reconnect();
  subscribe();
});
addEventListener('online', () => client.connect());
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return;
  if (connection && !connection.connected) client.connect();
  redraw();
});

// For tests: what is known, without looking at pixels.
window.__downpour = { status: () => $('status').dataset.kind, report: () => report };

subscribe();
