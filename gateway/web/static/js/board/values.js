// Which values a variable may take: some thousand at first, and while one types those that begin
// so. However many values there are, an answer is bounded.

import * as api from '../api.js';
import { match } from '../complete.js';
import { questionOf } from './variables.js';

const valuesListed = 5000; // of a tag
const namesAtMost = 200;   // that begin as what is typed
const fresh = 60_000;      // ms for which a list is remembered
const again = 5_000;       // ms until one that failed is asked for again
const listsAtMost = 100;   // remembered

const inOrder = new Intl.Collator(undefined, { numeric: true }).compare;

// A list is {values, whole, loading, fault, others, since}: whole says that there are no more, others
// that they are names of any metric, since none is known to be of this one; since, if not 0, from which second
// on the series have points.
const nothing = { values: [], whole: true, loading: false, fault: '', others: false, since: 0 };

export class Values {
  // onChange() hears of a list that has come. asking are the requests, those of api.js.
  constructor(onChange, asking = api, now = () => Date.now()) {
    Object.assign(this, { onChange, asking, now });
    this.lists = new Map(); // by the question's text
  }

  // of returns the list for a variable while others are chosen, and asks for one that is not
  // known or old. What was known stays until then.
  of(variable, chosen) {
    const question = questionOf(variable, chosen);
    if (!question) return { ...nothing, loading: true };
    const text = JSON.stringify(question);
    const known = this.lists.get(text);
    if (known && (known.loading || this.now() - known.at < (known.fault ? again : fresh))) return known;
    const list = { ...(known ?? nothing), loading: true, at: this.now() };
    this.lists.delete(text);
    this.lists.set(text, list);
    if (this.lists.size > listsAtMost) this.lists.delete(this.lists.keys().next().value);
    this.#load(question).catch((error) => ({ ...nothing, whole: false, fault: faultOf(error, question) })).then((got) => {
      Object.assign(list, got, { loading: false });
      this.onChange();
      if (list.fault) setTimeout(this.onChange, again);
    });
    return list;
  }

  // known are the values of a variable's list that are certain to be of it.
  known(variable, chosen) {
    const { values, others } = this.of(variable, chosen);
    return others ? [] : values;
  }

  // forget asks for all again, as with another token.
  forget() { this.lists.clear(); }

  async #load(question) {
    const { values, more, since = 0 } = await this.asking.tagValues(question.metric, question.tagk, question.tags, valuesListed);
    if (values.length === 0 && !since) return this.#any();
    return { values: values.sort(inOrder), whole: !more, fault: '', others: false, since };
  }

  // any are names of any metric: where series are not tracked, none is found.
  async #any() {
    const values = await this.asking.suggest('tagv', namesAtMost)('');
    return { values: values.sort(inOrder), whole: values.length === 0, fault: '', others: values.length > 0, since: 0 };
  }

  // search returns values that have a text, those that begin with it first: of a list that is
  // whole from that, else also those that the server has. Of its names only those are values of
  // this tag, and with these filters, with which there is a series.
  async search(variable, chosen, text, signal) {
    const list = this.of(variable, chosen);
    const own = match(list.values, text);
    if (list.whole || text === '') return own;
    const names = await this.asking.suggest('tagv', namesAtMost)(text, signal);
    if (list.others || names.length === 0) return match([...new Set([...own, ...names])], text);
    const question = questionOf(variable, chosen);
    const tags = [...names.map((value) => ({ key: question.tagk, value })), ...question.tags];
    const found = await this.asking.tagValues(question.metric, question.tagk, tags, valuesListed, signal);
    return match([...new Set([...own, ...found.values.sort(inOrder)])], text);
  }
}

// whyNone says why a list has no value that could be chosen, '' while it is on its way.
export const whyNone = ({ fault, loading, others }) => fault || (loading ? '' : others ? 'no series of its metric is known here: choose a value.' : 'no value is known yet.');

function faultOf({ status, message }, { metric, tagk }) {
  if (status === 404) return `There is no metric ${metric}, or no tag ${tagk}, or no such value of a filter yet.`;
  return `The values of ${tagk} cannot be read: ${message}.`;
}
