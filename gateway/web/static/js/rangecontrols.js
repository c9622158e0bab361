// The controls of the time range: a list of relative ones, or from and to, and Pause's state.

import { time } from './format.js';
import { choose, options } from './queryrow.js';
import { windowOf } from './state.js';
import { isRelative, parse, written } from './zone.js';

const $ = (id) => document.getElementById(id);

const ranges = [['5m', 'last 5 minutes'], ['15m', 'last 15 minutes'], ['30m', 'last 30 minutes'], ['1h', 'last hour'], ['3h', 'last 3 hours'],
  ['6h', 'last 6 hours'], ['12h', 'last 12 hours'], ['1d', 'last day'], ['2d', 'last 2 days'], ['7d', 'last 7 days'], ['30d', 'last 30 days'],
  ['90d', 'last 90 days'], ['1y', 'last year']];

export class RangeControls {
  // onChange gets the parts of the state that changed.
  constructor(onChange) {
    this.onChange = onChange;
    options($('range'), [...ranges.map(([r, text]) => [r + '-ago', text]), ['absolute', 'from … to …']]);
    $('range').addEventListener('change', () => this.#ranged());
    for (const id of ['from', 'to']) $(id).addEventListener('change', () => this.#absolute());
  }

  show(state) {
    this.state = state;
    const relative = !state.end && isRelative(state.start);
    if (relative) choose($('range'), state.start, `last ${state.start.replace('-ago', '')}`);
    else $('range').value = 'absolute';
    document.querySelectorAll('.absolute').forEach((f) => { f.hidden = relative; });
    const [from, to] = windowOf(state, Date.now() / 1000);
    const shown = (text, seconds) => (isRelative(text) ? text : time(Math.floor(seconds), state.tz));
    for (const [id, text] of [['from', shown(state.start, from)], ['to', state.end ? shown(state.end, to) : '']]) {
      $(id).value = text;
      $(id).removeAttribute('aria-invalid');
    }
    this.#say('');
    $('pause').setAttribute('aria-pressed', String(state.pause !== null));
    $('pause').textContent = state.pause === null ? 'Pause' : 'Resume';
  }

  #ranged() {
    const range = $('range').value;
    const still = { zoom: null, pause: null, pins: [] };
    if (range !== 'absolute') return this.onChange({ start: range, end: '', ...still });
    const [from, to] = windowOf(this.state, Date.now() / 1000);
    this.onChange({ start: String(Math.floor(from)), end: String(Math.floor(to)), ...still });
    $('from').focus();
  }

  // absolute takes what was written into From and To; an empty To is now.
  #absolute() {
    const now = Date.now() / 1000;
    const [start, end] = [['from', false], ['to', true]].map(([id, until]) => written($(id).value, now, this.state.tz, until));
    const [from, to] = [start, end].map(({ text }) => (text === undefined ? null : parse(text || 'now', now, this.state.tz)));
    if (!start.fault && !end.fault && from >= to) end.fault = 'The end is not after the start.';
    for (const [id, { fault }] of [['from', start], ['to', end]]) {
      if (fault) $(id).setAttribute('aria-invalid', 'true');
      else $(id).removeAttribute('aria-invalid');
    }
    this.#say(start.fault ?? end.fault ?? '');
    if (!start.fault && !end.fault) this.onChange({ start: start.text, end: end.text, zoom: null, pause: null, pins: [] });
  }

  // say says what is wrong with a time, next to the fields.
  #say(text) {
    if ($('time-said').textContent !== text) $('time-said').textContent = text;
  }
}
