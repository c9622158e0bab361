// What the page says, in words. Each situation has its own: a name that does not
// exist, no data, an error, too many series and a lost connection are five
// different things to whoever has to act on them.

import { clock, plural } from './format.js';
import { pollSeconds } from './poll.js';

export const seriesLimit = 200; // lines drawn at most

// Kinds, the most pressing first.
const order = ['error', 'unknown', 'toomany', 'nodata', 'connecting', 'live', 'complete'];

const say = (kind, text) => ({ kind, text });

// describe returns {kind, text} for the whole page; kind is one of idle,
// nometrics, disconnected, paused, polling, and those of ofQuery. queries are
// {letter, kind, text}, those of ofQuery.
export function describe({ connection, metricsExist, queries, pause = null, zone = '' }) {
  if (connection && !connection.connected) return say('disconnected', disconnected(connection));
  if (queries.length === 0) {
    return metricsExist === false
      ? say('nometrics', 'Nothing is stored yet. The page will show the first metric as soon as it arrives.')
      : say('idle', 'Choose a metric.');
  }
  const worst = queries.reduce((a, b) => (order.indexOf(b.kind) < order.indexOf(a.kind) ? b : a));
  const fine = ['live', 'complete'].includes(worst.kind);
  if (!fine) return say(worst.kind, queries.length > 1 && worst.kind !== 'connecting' ? `${worst.letter}: ${worst.text}` : worst.text);
  if (pause !== null) return say('paused', `Paused at ${clock(pause, zone)}.`);
  if (worst.kind === 'live' && connection?.polling) return say('polling', `Live, asking every ${pollSeconds} s: WebSocket connections do not get through.`);
  return say(worst.kind, worst.text);
}

// ofQuery returns {kind, text} for one query, and the metrics that may be meant by one that does not exist (near).
// fault is what the page itself has found.
export function ofQuery({ metric, fault, error, answered, groups, points, complete, histograms, limit = seriesLimit }) {
  if (fault) return say('error', fault);
  if (error) return failed(error);
  if (!answered) return say('connecting', 'Asking…');
  if (points === 0) return say('nodata', `No data: ${metric} has no ${histograms ? 'histograms' : 'points'} in this range with these tags.`);
  if (groups > limit) {
    return say('toomany', `Too many series: the answer has ${plural(groups, 'series')}, the first ${limit.toLocaleString('en')} are drawn. Filter by a tag, or group by fewer.`);
  }
  return complete ? say('complete', 'Complete: this range lies in the past.') : say('live', 'Live');
}

// ofFormula returns {kind, text} for one formula, whose fault, if there is one, the page
// has found by itself. blank says that no point has a value.
export function ofFormula({ fault, error, answered, groups, points, blank, limit = seriesLimit }) {
  if (fault) return say('error', at(fault.at, fault.text));
  if (error) return failedFormula(error);
  if (!answered) return say('connecting', 'Asking…');
  if (points === 0) return say('nodata', 'No data: its queries have no points in this range.');
  if (blank) return say('nodata', 'Nothing to draw: its queries have no points at the same times. A downsample puts them there.');
  if (groups > limit) return say('toomany', `Too many lines: the formula has ${plural(groups, 'line')}, the first ${limit.toLocaleString('en')} are drawn.`);
  return say('live', '');
}

// at says where in a formula something is, counted from 1.
const at = (place, text) => (place === undefined ? text : `Character ${place + 1}: ${text}`);

function failedFormula(error) {
  const [, column, reason] = /^1:(\d+) parsing error in '.*': (.*)$/s.exec(error.message) || [];
  if (column) return say('error', at(column - 1, `${reason.replace(/\.$/, '')}.`));
  const [, sizes] = /^No intersections found: (.*)$/.exec(error.message) || [];
  if (sizes) return say('nodata', `No line of one query belongs to one of another: they want equal values of the tags with a line each. ${sizes.replace(/\b([a-z]) has/g, (_, id) => `${id.toUpperCase()} has`)}.`);
  if (/^Expression returned a result of type/.test(error.message)) return say('error', 'A number by itself cannot be a result: write 0d for 0.');
  return failed(error);
}

// or joins names: a, b or c.
const or = (names) => (names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`);

function failed({ code, message, temporary, suggestions = [] }) {
  const name = /No such name for '?([^':]*)'?:? '([^']*)'/.exec(message);
  if (name) {
    const what = { metrics: 'metric', metric: 'metric', tagk: 'tag key', tagv: 'tag value' }[name[1]] || 'name';
    const near = what === 'metric' && suggestions.length > 0 ? { near: suggestions } : {};
    return { ...say('unknown', `No ${what} is called “${name[2]}” yet.${suggestions.length ? ` Did you mean ${or(suggestions.map((s) => `“${s}”`))}?` : ''}${temporary ? ' Asking again every second.' : ''}`), ...near };
  }
  if (code === 413) return say('toomany', `Too much for one answer: ${message}`);
  const sentence = /[.!?]$/.test(message) ? message : message + '.';
  return say('error', `The server says: ${sentence}${temporary ? ' Trying again.' : ''}`);
}

function disconnected({ retryIn, attempts, code, reason }) {
  const seconds = Math.max(1, Math.round(retryIn / 1000));
  if (code === 1008) return `Disconnected: the server refuses this token. Trying again in ${seconds} s.`;
  const text = `Disconnected${reason ? ': ' + reason.replace(/\.$/, '') : ''}. Trying again in ${seconds} s.`;
  return attempts > 2 && !reason ? text + ' Neither WebSocket nor HTTP gets through: is the server running?' : text;
}
