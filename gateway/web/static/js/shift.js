// The lines of a panel as they were some time before, drawn at the present time: its queries are
// asked a second time, for a range that lies so far back and reaches a while beyond what is
// shown. What has not come round again yet is kept back.

import { labels } from './columns.js';
import { ofEarlier } from './look.js';
import { Questions } from './questions.js';
import { earlier } from './query.js';
import { windowOf } from './state.js';
import { parse } from './zone.js';

// shifts are those that one can choose, with their names.
export const shifts = [['', 'nothing'], ['1h', 'an hour ago'], ['1d', 'a day ago'], ['1w', 'a week ago'], ['4w', 'four weeks ago']];

const leastBeyond = 300; // s that are asked for beyond what is shown

// secondsOf is a shift in s: a week is always seven days, whatever clocks do.
export const secondsOf = (shift) => parse(`${shift}-ago`, 0, 'UTC') * -1;

export class Earlier {
  // onChange(fresh) hears of answers.
  constructor(live, onChange) {
    this.questions = new Questions(live, onChange);
    this.shift = '';
  }

  // ask asks for a state by a shift before t; '' asks nothing. What is asked already is kept
  // while it reaches as far as is shown, and belongs to the same state.
  ask(state, shift, t) {
    if (!shift) return this.close();
    const [from, to] = state.zoom ?? windowOf(state, t);
    const asked = JSON.stringify([shift, state.start, state.end, state.zoom, state.pause, state.tz, state.queries, state.formulas]);
    if (asked === this.asked && (t <= this.until || to < t)) return;
    const by = secondsOf(shift);
    // Half of a short shift at most: what has just happened may not be there yet.
    const beyond = to < t ? 0 : Math.min(by / 2, Math.max(leastBeyond, (to - from) / 4));
    Object.assign(this, { asked, shift, by, until: t + beyond, state: earlier(state, by, beyond, t) });
    this.questions.ask(this.state, t);
  }

  close() {
    this.questions.close();
    Object.assign(this, { asked: '', shift: '', next: Infinity });
  }

  // lines are those of the questions, moved to the present and up to the time t.
  lines(t) {
    if (!this.shift) return [];
    this.next = Infinity;
    return this.questions.lines(this.state).map((line) => {
      const { times, values } = line.group;
      const end = this.#countTo(times, t);
      return { ...line, earlier: this.shift, group: { ...line.group, times: times.slice(0, end).map((x) => x + this.by), values: values.slice(0, end) } };
    });
  }

  // countTo is how many times have come round at t; next is when the first of the others will.
  #countTo(times, t) {
    let n = times.length;
    while (n > 0 && times[n - 1] + this.by > t) n--;
    if (n < times.length) this.next = Math.min(this.next, times[n] + this.by);
    return n;
  }

  // said tells why there are no earlier lines, '' if there are.
  said() {
    if (!this.shift) return '';
    const bad = this.questions.ofQueries(this.state).find((q) => ['error', 'unknown', 'nodata', 'toomany'].includes(q.kind));
    return bad ? `${this.shift} ago: ${bad.text}` : '';
  }

  // due says that at time t there is more to show.
  due(t) { return t >= this.next; }
}

// labelled gives lines their labels; an earlier one has that of the present one (present), and
// says how long ago it was.
export function labelled(lines) {
  const keyOf = ({ letter, group: { metric, percentile, tags } }) => JSON.stringify([letter, metric, percentile, tags]);
  const first = new Map(lines.map((l) => [keyOf(l), l]));
  const names = labels([...first.values()].map((l) => ({ ...l.group, letter: l.letter })));
  const byKey = new Map([...first.keys()].map((key, i) => [key, names[i]]));
  for (const l of lines) {
    l.present = byKey.get(keyOf(l));
    l.label = l.present + (l.earlier ? ` (${l.earlier} ago)` : '');
  }
}

// looksOf gives labelled lines their looks; an earlier one has that of the present one, paler.
export const looksOf = (looks, lines) => looks.assign(lines.map((l) => l.present)).map((look, i) => (lines[i].earlier ? ofEarlier(look) : look));
