// The client side of /api/ws, subprotocol downpour.v1: one socket, any number
// of subscriptions, each an Answer that is kept up to date. After a break it
// connects again, at growing and random intervals, and asks to go on from the
// last message it had; the server then sends what was missed, or everything.
// Where sockets do not get through at all, it asks by HTTP (poll.js) until one does.

import { Answer, parse } from './answer.js';
import { Poller } from './poll.js';

const first = 500;       // ms to the first new attempt, at most
const longest = 30_000;  // ms between attempts, at most
const silence = 70_000;  // ms without a message: the server sends one every 20 s
const patience = 2;      // attempts without a word before it asks by HTTP

export class LiveClient {
  // onState gets {connected, polling} or {connected: false, retryIn, attempts,
  // code, reason}. env replaces the browser's clock, chance, socket and
  // fetch in tests.
  constructor(url, { token = () => '', onState = () => {}, env = {} } = {}) {
    this.url = url;
    this.token = token;
    this.onState = onState;
    this.env = {
      WebSocket: globalThis.WebSocket, XMLHttpRequest: globalThis.XMLHttpRequest, random: Math.random, fetch: (...a) => fetch(...a), hidden: () => globalThis.document?.hidden,
      setTimeout: (f, ms) => setTimeout(f, ms), clearTimeout: (id) => clearTimeout(id), ...env,
    };
    this.subs = new Map();
    this.made = 0;
    this.attempts = 0;
    this.socket = null;
    this.timer = null;
    this.poller = new Poller(this.env, url.replace(/^ws(.*)\/ws$/, 'http$1/query'), token, () => [...this.subs.values()], (sub, message) => this.#deliver(sub, message), (s) => this.#polled(s));
  }

  // subscribe returns a subscription; handlers: onData(answer, message),
  // onError({code, message, temporary}), onComplete(). query is the body of a POST
  // /api/query, or with kind 'exp' that of a POST /api/query/exp. With kind 'ops' and the query true
  // onData gets what /api/ops tells.
  subscribe(query, handlers, kind = 'query') {
    const sub = { id: String(++this.made), query, kind, handlers, answer: new Answer(), place: null, greeted: false };
    this.subs.set(sub.id, sub);
    if (!this.socket && this.timer === null) this.connect();
    else if (this.ready) this.#ask(sub);
    else this.poller.now();
    sub.askedAt ??= performance.now();
    sub.close = () => this.#unsubscribe(sub);
    return sub;
  }

  get ready() { return this.socket?.readyState === 1; }

  // connect tries at once, whatever wait was planned.
  connect() {
    if (this.socket) return;
    this.env.clearTimeout(this.timer);
    this.timer = null;
    const token = this.token();
    const socket = new this.env.WebSocket(this.url, token ? ['downpour.v1', 'bearer.' + token] : ['downpour.v1']);
    this.socket = socket;
    socket.onopen = () => this.#opened();
    socket.onmessage = (event) => this.#take(parse(event.data));
    socket.onclose = (event) => this.#lost(socket, event);
  }

  // reconnect drops the connection, as after a change of the token.
  reconnect() {
    if (this.socket) this.socket.close();
    else this.connect();
    this.poller.now();
  }

  // answerAtOnce asks by HTTP, while the page waits, for what has no answer yet, up to a time in ms.
  // The socket's own answers follow.
  answerAtOnce(until) {
    const waiting = [...this.subs.values()].filter((s) => s.place === null);
    this.poller.atOnce(waiting, until);
    for (const s of waiting) Object.assign(s, { place: null, greeted: false });
  }

  #opened() {
    this.#listen();
    if (this.poller.stop()) this.subs.forEach((s) => { s.place = null; }); // what was polled is not what the socket knows
    this.onState({ connected: true });
    this.subs.forEach((s) => this.#ask(s));
  }

  #ask(sub) {
    sub.askedAt = performance.now();
    sub.greeted = sub.place !== null; // after a snapshot, deltas may come straight away
    const message = { type: 'subscribe', id: sub.id, [sub.kind]: sub.query };
    if (sub.place) message.resume = sub.place;
    this.socket.send(JSON.stringify(message));
  }

  #unsubscribe(sub) {
    if (this.subs.delete(sub.id) && this.ready) this.socket.send(JSON.stringify({ type: 'unsubscribe', id: sub.id }));
  }

  #take(message) {
    this.attempts = 0;
    this.#listen();
    const sub = this.subs.get(message.id);
    if (sub) this.#deliver(sub, message);
  }

  #deliver(sub, message) {
    switch (message.type) {
      case 'snapshot':
        sub.place = { epoch: message.epoch, seq: message.seq };
        sub.greeted = true;
        sub.answer.apply(message);
        sub.handlers.onData?.(sub.answer, message);
        break;
      case 'delta':
        if (!sub.greeted) return;
        sub.place.seq = message.seq;
        sub.answer.apply(message);
        sub.handlers.onData?.(sub.answer, message);
        break;
      case 'ops':
        sub.handlers.onData?.(message.ops);
        break;
      case 'error':
        if (!message.error.temporary) this.subs.delete(sub.id);
        sub.handlers.onError?.(message.error);
        break;
      case 'complete':
        this.subs.delete(sub.id);
        sub.handlers.onComplete?.();
        break;
    }
  }

  // listen waits for the next sign of life; a dead connection says nothing.
  #listen() {
    this.env.clearTimeout(this.watch);
    const { socket } = this;
    this.watch = this.env.setTimeout(() => socket.close(), silence);
  }

  #lost(socket, { code, reason }) {
    if (socket !== this.socket) return;
    this.socket = null;
    this.env.clearTimeout(this.watch);
    const ceiling = Math.min(longest, first * 2 ** this.attempts++);
    const retryIn = Math.round(ceiling / 2 + (ceiling / 2) * this.env.random());
    this.timer = this.env.setTimeout(() => { this.timer = null; this.connect(); }, retryIn);
    this.loss = { connected: false, retryIn, attempts: this.attempts, code, reason };
    if (this.attempts >= patience) this.poller.start();
    if (!this.poller.works) this.onState(this.loss);
  }

  // polled hears after each round of HTTP whether the answers came.
  #polled({ works, reason }) {
    if (works) this.onState({ connected: true, polling: true });
    else if (this.loss && !this.ready) this.onState({ ...this.loss, reason: reason || this.loss.reason });
  }
}
