// Asking by HTTP, for where a proxy lets no WebSocket through: the queries of
// all subscriptions, one after the other, every few seconds. An answer is given
// on as the snapshot it is. Nothing is asked while nobody looks, nor while the
// last answer is under way.

import { parse } from './answer.js';

const every = 5000; // ms from one answer to the next question
export const pollSeconds = every / 1000;

export class Poller {
  // address is where queries are asked, and expressions below it; deliver(sub, message);
  // onRound({works, reason}).
  constructor(env, address, token, subs, deliver, onRound) {
    Object.assign(this, { env, address, token, subs, deliver, onRound });
    this.running = false;
    this.works = false;
    this.round = 0; // ends what an earlier start still waits for
  }

  start() {
    if (this.running) return;
    this.running = true;
    this.#go(++this.round);
  }

  // stop tells whether it ran.
  stop() {
    const ran = this.running;
    this.running = this.works = false;
    this.round++;
    this.env.clearTimeout(this.timer);
    return ran;
  }

  // now asks without waiting, as for a new subscription.
  now() {
    if (!this.running) return;
    this.env.clearTimeout(this.timer);
    this.#go(++this.round);
  }

  async #go(round) {
    const result = this.env.hidden() ? null : await this.#all(round);
    if (round !== this.round) return;
    if (result) {
      this.works = result.works;
      this.onRound(result);
    }
    this.timer = this.env.setTimeout(() => this.#go(round), every);
  }

  async #all(round) {
    const subs = this.subs();
    for (const sub of subs) {
      const r = await this.#ask(sub).catch(() => null); // the network's own words say nothing
      if (round !== this.round) return null;
      if (!r) return { works: false };
      if (r.refused) return { works: false, reason: r.refused };
      for (const message of r) this.deliver(sub, message);
    }
    return subs.length > 0 ? { works: true } : null;
  }

  async #ask(sub) {
    if (sub.kind === 'ops') return this.#askOps();
    const { path, headers, body } = requestOf(sub, this.token());
    const response = await this.env.fetch(this.address + path, { method: 'POST', headers, body });
    return answerOf(sub, response.status, await response.text());
  }

  // askOps asks for what operators see.
  async #askOps() {
    const response = await this.env.fetch(this.address.replace(/query$/, 'ops'), { headers: headersOf(this.token()) });
    const text = await response.text();
    return faultOf(response.status, text) ?? [{ type: 'ops', ops: JSON.parse(text) }];
  }

  // atOnce asks for some subscriptions while the page waits, up to a time in ms. It is for what
  // cannot wait itself, as printing: a request that stalls stalls the page.
  atOnce(subs, until) {
    for (const sub of subs) {
      if (Date.now() > until) return;
      const { path, headers, body } = requestOf(sub, this.token());
      const request = new this.env.XMLHttpRequest();
      request.open('POST', this.address + path, false);
      for (const [k, v] of Object.entries(headers)) request.setRequestHeader(k, v);
      try {
        request.send(body);
      } catch {
        return; // the network does not get through, or the browser does not let it
      }
      const messages = answerOf(sub, request.status, request.responseText);
      if (!messages.refused) for (const message of messages) this.deliver(sub, message);
    }
  }
}

// headersOf are the headers of a request.
function headersOf(token) {
  return { 'Content-Type': 'application/json', ...(token ? { Authorization: 'Bearer ' + token } : {}) };
}

// requestOf is what to ask over HTTP for a subscription.
function requestOf(sub, token) {
  const headers = headersOf(token);
  const [path, body] = sub.kind === 'exp' ? ['/exp', sub.query] : ['?arrays=true', { ...sub.query, showSummary: true }];
  return { path, headers, body: JSON.stringify(body) };
}

// answerOf is the answer as messages of a socket, or {refused}.
function answerOf(sub, status, text) {
  const fault = faultOf(status, text);
  if (fault) return fault;
  const all = parse(text);
  if (sub.kind === 'exp') return whole({ type: 'snapshot', results: ofTables(all.outputs) }, sub.query.time.end);
  const rows = all.find((r) => r.statsSummary)?.statsSummary.rowsPreFilter;
  return whole({ type: 'snapshot', results: all.filter((r) => r.dps), rows }, sub.query.end);
}

// faultOf is what an answer that is none leads to: the end of asking, or an error of the one
// subscription. undefined for an answer.
function faultOf(status, text) {
  if (status === 401) return { refused: 'the server wants a token' };
  if (status === 403) return { refused: `the server refuses this page: ${message(text)}` };
  if (status < 200 || status > 299) return [{ type: 'error', error: { code: status, message: message(text), temporary: mayHeal(status, text) } }];
  return undefined;
}

// whole ends the answer to a query with an end.
const whole = (snapshot, end) => (end === undefined ? [snapshot] : [snapshot, { type: 'complete' }]);

// ofTables makes of the tables of expressions what a socket's snapshot has: a result for
// each column. The first column and its description are the times.
export const ofTables = (tables) => tables.flatMap(({ id, dps, meta = [] }, queryIndex) => meta.slice(1).map(({ index, commonTags, aggregatedTags }) => (
  { queryIndex, metric: id, tags: commonTags, aggregateTags: aggregatedTags, dps: dps.map((row) => [row[0], row[index]]) })));

function message(text) {
  try {
    const { message: m, details = '' } = JSON.parse(text).error;
    return details && !m.includes(details) && details.length < 200 && details !== m ? `${m}. ${details}` : m;
  } catch {
    return text.slice(0, 200) || 'no answer';
  }
}

// mayHeal: a name may come to exist, a store come back. The same are temporary
// on the socket.
const mayHeal = (status, text) => [408, 424, 503].includes(status) || /No such name|No intersections found|cannot evaluate|Expression returned/.test(text);
