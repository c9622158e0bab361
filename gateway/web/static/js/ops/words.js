// What the operator's page says of a report of /api/ops, as texts: nothing here knows the document.

import { plural, time, value } from '../format.js';

export const size = (bytes) => value(bytes, 'bytes', 3);
export const number = (n) => value(n, 'none', 4);
export const duration = (ms) => value(ms, 'ms', 3);
export const moment = (ms) => (ms ? time(Math.floor(ms / 1000)) : '');
export const share = (part, whole) => (whole > 0 ? value((100 * part) / whole, '%', 3) : '–');

// who is a client, with the name of its token.
export const who = ({ client, token }) => (token ? `${client} (${token})` : client);

// range is when a query is of, in words: its times as they were asked, those in numbers as dates.
function range({ start, end }) {
  const at = (text) => (/^\d+(ms)?$/.test(text) ? moment(Number.parseInt(text, 10) * (text.length > 10 ? 1 : 1000)) : String(text));
  const ago = /^(.*)-ago$/.exec(start ?? '');
  if (!end || end === 'now') return ago ? `last ${ago[1]}` : `since ${at(start ?? '')}`;
  return `${at(start ?? '')} – ${at(end)}`;
}

const filterText = ({ tagk, filter, type }) => `${tagk}=${['literal_or', 'wildcard'].includes(type) ? filter : `${type}(${filter})`}`;

// braces are a sub-query's filters, as m= has them: those that it groups by, then others.
function braces({ filters }) {
  const [by, other] = [true, false].map((group) => (filters ?? []).filter((f) => Boolean(f.group_by ?? f.groupBy) === group).map(filterText).join(', '));
  return `${by || other ? `{${by}}` : ''}${other ? `{${other}}` : ''}`;
}

// partOf is a sub-query in words.
function partOf(q) {
  const of = q.metric ?? plural(q.tsuids?.length ?? 0, 'series');
  const [every, by, fill] = (q.downsample ?? '').split('-');
  const step = every && (every.includes('all') ? `${by} of all` : `${by} of each ${every}`);
  return [`${q.aggregator === 'none' ? 'each series' : q.aggregator} of ${of}${braces(q)}`, q.rate && 'rate', (q.percentiles ?? []).map((p) => `p${p}`).join(' '), step, fill && `${fill} in gaps`].filter(Boolean).join(', ');
}

const partsAtMost = 3;

// asked is a query, {route, query}, in words. One that is no JSON, because it was cut, stays as it is.
export function asked({ route = '', query }) {
  let q;
  try { q = JSON.parse(query); } catch { return `${route} ${query}`.trim(); }
  const where = ['', '/api/query'].includes(route) ? '' : ` (${route})`;
  if (q?.time) { // expressions
    const metrics = (q.metrics ?? []).map((m) => m.metric).join(', ');
    return `${(q.expressions ?? []).map((e) => e.expr).join('; ') || 'expressions'} over ${metrics}; ${range(q.time)}${where}`;
  }
  if (!Array.isArray(q?.queries) || q.queries.length === 0) return `${route} ${query}`.trim();
  const more = q.queries.length - partsAtMost;
  return `${q.queries.slice(0, partsAtMost).map(partOf).join('; ')}${more > 0 ? `; ${more} more` : ''}; ${range(q)}${where}`;
}

// about is the line below the title.
export const about = ({ version, host, store, mode, started, time: now }) => `${host || 'This gateway'} on ${store}${mode === 'rw' ? '' : `, mode ${mode}`}, Downpour ${version}, started ${moment(started)}, ${duration(now - started)} ago`;

const last = (list) => list.at(-1) ?? 0;
const most = (list) => list.reduce((a, b) => Math.max(a, b), 0);

// sums adds lists of equal length.
export const sums = (...lists) => lists[0].map((_, i) => lists.reduce((sum, l) => sum + l[i], 0));

// puts tells of the points of the last seconds.
export function puts({ http, telnet, own, refused }) {
  const all = sums(http, telnet, own);
  return `${number(last(all))} points in the last second (HTTP ${number(last(http))}, telnet ${number(last(telnet))}, this host’s own ${number(last(own))}), ${number(last(refused))} refused; at most ${number(most(all))} a second within ${all.length} s`;
}

export const live = ({ queries, subscribers, sockets, answers, history, sending, more }) => `${plural(queries, 'query').replace('querys', 'queries')}, ${plural(subscribers, 'subscriber')}, ${plural(sockets, 'socket')}; answers ${size(answers)}, history ${size(history)}, on their way ${size(sending)}${more > 0 ? `; ${more} more than are listed` : ''}`;

export function memory({ limit, held, waiting }) {
  const all = held.reduce((sum, h) => sum + h.bytes, 0);
  return `${size(all)} of ${size(limit)} (${share(all, limit)})${waiting > 0 ? `, ${plural(waiting, 'reservation')} waiting` : ''}`;
}

export const holders = { query: 'queries', write: 'puts', live: 'live queries', cache: 'caches, at most' };

// cache tells what the result cache saves.
export function cache(c) {
  if (c.limit === 0) return 'It is off.';
  const asked = c.hits + c.new + c.changed + c.unproven;
  return `${share(c.hits, asked)} of ${number(asked)} asks answered from memory`;
}

export const cacheRows = (c) => (c.limit === 0 ? [] : [
  ['Answered from memory', number(c.hits)], ['Not read again', `${size(c.savedBytes)}, ${number(c.savedRows)} rows`],
  ['Shared with an equal query', number(c.shared)], ['Asked for the first time', number(c.new)], ['Rows had changed', number(c.changed)],
  ['Not provable', number(c.unproven)], ['Evicted', number(c.evictions)], ['Held', `${size(c.bytes)} of ${size(c.limit)}, ${number(c.entries)} entries`],
].map(([what, text]) => ({ what, text })));

export const kinds = { metrics: 'metrics', tagk: 'tag keys', tagv: 'tag values' };

// runsOut tells when UIDs run out.
export const runsOut = ({ runOut, used, most: of }) => (used >= of ? 'none is left' : runOut ? moment(runOut) : 'not soon');

export const grown = ({ grown: n, within }) => (within > 0 ? `${number(n)} in ${duration(within)}` : '–');

// series tells of a count of series.
export const series = ({ series: all, complete, allMetrics, allTagKeys, hour }) => (all === 0 && complete ? 'The meta table has no series, nor has the last hour: puts record them with DOWNPOUR_META_TRACKING, and gateway uid metasync those that are there.'
  : `${complete ? '' : 'More than '}${number(all)} series${hour ? ` with points from ${new Date(hour * 1000).toLocaleTimeString()} on, for an hour,` : ''} of ${number(allMetrics)} metrics with ${number(allTagKeys)} tag keys${complete ? '' : ': the time was over before all were read'}.`);

// places tells of pushdown servers.
export function places({ list, regions }) {
  const servers = list.length - 1;
  const away = list.filter((p) => p.state === 'away').length;
  const all = regions.reduce((sum, r) => sum + r.regions, 0);
  const said = servers === 0 ? 'No pushdown server is configured: this process reads all parts.' : `${plural(servers, 'pushdown server')}, ${away === 0 ? 'none is away' : `${away} away`}.`;
  return all > 0 ? `${said} ${plural(all, 'region')} of the data table, in the order of their keys:` : said;
}

// slow says of a place that its parts take far longer than those of the quickest.
export function slow(place, list) {
  const means = list.filter((p) => p.parts >= 10).map((p) => p.mean);
  return place.parts >= 10 && place.mean > 20 && place.mean > 3 * Math.min(...means);
}
