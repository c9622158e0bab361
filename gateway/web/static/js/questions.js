// What a state asks, as live subscriptions: one for each query and formula. A change of the
// state keeps what is asked already, asks what is new, and ends the rest.

import { letter, withPercentile } from './columns.js';
import { named, toFormula } from './formula.js';
import { ofFormula, ofQuery, seriesLimit } from './messages.js';
import { faultOf, meeting, stepOf, toQuery } from './query.js';

export class Questions {
  // onChange(fresh) hears of answers; fresh says that points have changed. onClosed(entry)
  // hears of the end of one.
  constructor(live, onChange, onClosed = () => {}) {
    Object.assign(this, { live, onChange, onClosed });
    this.limit = seriesLimit; // of the lines of each question
    this.asked = [];   // for each query of the state: its entry, or null without a metric, or with a fault
    this.figured = []; // for each formula: {entry, keys, step}, {fault}, or null for an empty one
  }

  // ask makes the subscriptions those of a state at time t.
  ask(state, t) {
    const [before, figuredBefore] = [this.asked, this.figured];
    const byText = new Map(this.everything().map((e) => [e.text, e]));
    this.asked = state.queries.map((q, i) => {
      if (!q.metric || faultOf(q)) return null;
      const query = toQuery(state, q, t);
      const text = JSON.stringify(query);
      if (!byText.has(text)) byText.set(text, this.#subscribe(query, text, q.metric, before[i]));
      return byText.get(text);
    });
    this.figured = state.formulas.map((f, i) => {
      if (!f.expr) return null;
      const { exp, keys, step, fault } = toFormula(state, f.expr, t);
      if (fault) return { fault };
      const text = JSON.stringify(exp);
      if (!byText.has(text)) byText.set(text, this.#subscribe(exp, text, f.expr, figuredBefore[i]?.entry, 'exp'));
      return { entry: byText.get(text), keys, step };
    });
    const kept = this.everything();
    for (const e of byText.values()) if (!kept.includes(e)) this.#close(e);
  }

  // close ends all.
  close() {
    this.everything().forEach((e) => this.#close(e));
    [this.asked, this.figured] = [[], []];
  }

  // entries are those of the queries, everything also those of the formulas.
  entries() { return [...new Set(this.asked)].filter(Boolean); }

  everything() { return [...new Set([...this.asked, ...this.figured.map((f) => f?.entry)])].filter(Boolean); }

  // An entry is one subscription. Until it is answered it shows what the query
  // before it did, if that was of the same metric, or the same formula.
  #subscribe(query, text, metric, before, kind) {
    const e = { query, text, metric, answered: false, complete: false, error: null, about: null, rows: null, ignored: [], elapsed: null, shown: null };
    if (before?.metric === metric) e.shown = before.shown;
    e.sub = this.live.subscribe(query, {
      onData: (answer, message) => {
        if (message.type === 'snapshot') e.elapsed ??= Math.round(performance.now() - e.sub.askedAt);
        if (message.type === 'snapshot') Object.assign(e, { rows: message.rows ?? null, ignored: message.ignored ?? [] });
        Object.assign(e, { answered: true, error: null, shown: answer });
        this.onChange(true);
      },
      onError: (error) => { Object.assign(e, { error, shown: e.answered ? e.shown : null }); this.onChange(true); },
      onComplete: () => { e.complete = true; this.onChange(false); },
    }, kind);
    return e;
  }

  #close(e) {
    e.sub.close();
    this.onClosed(e);
  }

  // lines are the answers' groups: {group, letter, right, step} each. A group says by which tags it was grouped, and
  // what its query calls its lines.
  lines(state) {
    const groupsOf = (e) => (e?.shown ? [...e.shown.groups.values()].slice(0, this.limit) : []);
    return [
      ...this.asked.flatMap((e, i) => groupsOf(e).map((group) => (
        { group: { ...(e.query.queries[0].percentiles ? withPercentile(group) : group), ...namesOf(state.queries[i]) }, letter: letter(i), right: state.queries[i].right, step: known(e.query.queries[0].downsample ?? '') }))),
      ...this.figured.flatMap((f, i) => groupsOf(f?.entry).map((group) => (
        { group: { ...named(group, state.formulas[i].name || state.formulas[i].expr, f.keys), grouped: [...f.keys ?? []] }, letter: `ƒ${i + 1}`, right: state.formulas[i].right, step: known(f.step) }))),
    ];
  }

  points() { return this.everything().reduce((n, e) => n + (e.shown?.points ?? 0), 0); }

  // ofQueries says of each query that is asked, or cannot be: {letter, kind, text}.
  ofQueries(state) {
    return this.asked.flatMap((e, i) => {
      const fault = state.queries[i].metric && faultOf(state.queries[i]);
      return e || fault ? [{ letter: letter(i), ...ofQuery({
        fault, ...e, groups: e?.shown?.groups.size ?? 0, points: e?.shown?.points ?? 0, limit: this.limit,
        histograms: e && (e.query.queries[0].percentiles ?? e.query.queries[0].showHistogramBuckets),
      }) }] : [];
    });
  }

  // ofFormulas says {kind, text} of each formula.
  ofFormulas() {
    return this.figured.map((f) => {
      const e = f?.entry;
      const groups = [...e?.shown?.groups.values() ?? []];
      const blank = !groups.some((g) => g.values.some((v) => !Number.isNaN(v)));
      return f ? ofFormula({ fault: f.fault, ...e, limit: this.limit, groups: groups.length, points: e?.shown?.points ?? 0, blank }) : { kind: '', text: '' };
    });
  }
}

const namesOf = ({ tags, alias = '' }) => ({ grouped: tags.filter((t) => t.group).map((t) => t.key), alias });

// known is the distance of points after a downsample, 0 where they may be farther apart: one that
// is there for the points to meet says nothing about how often they come.
const known = (downsample) => (downsample === meeting ? 0 : stepOf(downsample));
