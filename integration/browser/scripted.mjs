// A gateway in the test's hands: it serves the page's files as the real one
// does, and says over the socket and HTTP what the script tells it to.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WebSocketServer } from 'ws';
import { siteFile } from '../../gateway/web/site.mjs';

const web = join(dirname(fileURLToPath(import.meta.url)), '../../gateway/web');
const policy = /const policy = "(.*)"/.exec(readFileSync(join(web, 'web.go'), 'utf8'))[1];
const types = { '.html': 'text/html; charset=utf-8', '.css': 'text/css', '.js': 'text/javascript', '.svg': 'image/svg+xml', '.json': 'application/json', '.png': 'image/png' };

export const now = () => Math.floor(Date.now() / 1000);

// result is one result as the snapshot has it; value(t) is asked each step s.
export function result(metric, tags, { from, to = now(), step = 10, value = () => 1, aggregateTags = [], queryIndex = 0 }) {
  const dps = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    const v = value(t);
    if (v !== undefined) dps.push([t, v]);
  }
  return { queryIndex, metric, tags, aggregateTags, dps };
}

export class Scripted {
  constructor() {
    this.reset();
    this.http = createServer((request, response) => this.#serve(request, response));
    this.sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'downpour.v1' });
    this.http.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  async start() {
    await new Promise((resolve) => { this.http.listen(0, '127.0.0.1', resolve); });
    this.url = `http://127.0.0.1:${this.http.address().port}`;
    return this;
  }

  close() {
    this.sockets.clients.forEach((c) => c.terminate());
    this.http.closeAllConnections();
    this.http.close();
  }

  // reset forgets the last script. answer(query) gives the results, or {error};
  // api(path, query, body) what HTTP answers, {status, body}, or null for the
  // usual; refuse is the status of a refused socket.
  reset() {
    this.sockets?.clients.forEach((c) => c.terminate());
    this.answer = () => [];
    this.api = () => null;
    this.refuse = 0;
    this.mute = false;
    this.epoch = 'e1';
    this.subs = [];      // {socket, id, query, resume, seq} in order of subscription; query may be a request for expressions
    this.received = [];  // all messages of clients
    this.asked = [];     // paths and bodies asked over HTTP
    this.dashboards = new Map(); // the versions of each by its name, texts
    this.metrics = ['cpu.user', 'disk.used', 'proc.loadavg.1min'];
    this.names = ['other', 'web01', 'web02']; // tag values
    this.series = ['web01', 'web02', 'web03'].map((host) => ({ host })); // tags of each
    this.annotations = [];
    this.mayWrite = true;
    this.operations = () => null; // what operators see; null refuses the token
  }

  drop(code = 1012) {
    this.sockets.clients.forEach((c) => (code === 0 ? c.terminate() : c.close(code, 'the server restarts')));
  }

  // delta goes to a subscription.
  delta(sub, change) {
    sub.seq++;
    sub.socket.send(JSON.stringify({ type: 'delta', id: sub.id, epoch: this.epoch, seq: sub.seq, groups: [], removed: [], upserts: [], deletes: [], ...change }));
  }

  #upgrade(request, socket, head) {
    if (this.refuse) return socket.end(`HTTP/1.1 ${this.refuse} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    this.sockets.handleUpgrade(request, socket, head, (ws) => ws.on('message', (text) => this.#take(ws, JSON.parse(text))));
  }

  #take(socket, message) {
    this.received.push(message);
    const gone = this.subs.findIndex((s) => s.socket === socket && s.id === message.id);
    if (gone >= 0) this.subs.splice(gone, 1);
    if (message.type !== 'subscribe' || this.mute) return;
    if (message.ops) return this.#tellOperator(socket, message.id);
    const sub = { socket, id: message.id, query: message.query ?? message.exp, resume: message.resume, seq: message.resume?.seq ?? 0 };
    this.subs.push(sub);
    if (message.resume?.epoch === this.epoch) return;
    this.snapshot(sub);
  }

  #tellOperator(socket, id) {
    const ops = this.operations();
    socket.send(JSON.stringify(ops ? { type: 'ops', id, ops } : { type: 'error', id, error: { code: 403, message: 'A token with scope admin is wanted', temporary: false } }));
  }

  // snapshot answers a subscription, whole.
  snapshot(sub) {
    const answer = this.answer(sub.query);
    const send = (m) => sub.socket.send(JSON.stringify({ id: sub.id, ...m }));
    if (answer.error) return send({ type: 'error', error: answer.error });
    sub.seq = 1;
    send({ type: 'snapshot', epoch: this.epoch, seq: 1, results: answer, rows: 4, ignored: answer.ignored });
    if ((sub.query.time ?? sub.query).end !== undefined) send({ type: 'complete' });
  }

  async #serve(request, response) {
    const url = new URL(request.url, this.url);
    const chunks = [];
    for await (const c of request) chunks.push(c);
    const text = Buffer.concat(chunks).toString();
    const body = text ? JSON.parse(text) : null;
    if (!url.pathname.startsWith('/api/')) return this.#file(url.pathname, response);
    this.asked.push({ path: url.pathname, query: url.search, body });
    const told = this.api(url.pathname, url.searchParams, body, request.method);
    if (!told && url.pathname.startsWith('/api/dashboards')) return this.#dashboard(url.pathname.split('/').slice(3), Number(url.searchParams.get('version') ?? 0), request, text, response);
    const { status = 200, body: out, headers } = told ?? this.#usual(url, body);
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(out));
  }

  #usual({ pathname, searchParams }, body) {
    if (pathname === '/api/ops') return { body: this.operations() };
    if (pathname === '/api/aggregators') return { body: ['avg', 'count', 'max', 'min', 'p99', 'sum', 'zimsum'] };
    if (pathname === '/api/suggest') {
      const names = { metrics: this.metrics, tagk: ['dc', 'host', 'type'], tagv: this.names }[searchParams.get('type')];
      const words = (searchParams.get('q') ?? '').toLowerCase().split(' ');
      const found = names.filter((n) => words.every((w) => n.toLowerCase().includes(w)));
      const newest = searchParams.get('order') === 'newest';
      return {
        body: (newest ? found.toReversed() : found).slice(0, searchParams.get('max') ?? 25),
        headers: { 'Downpour-Total': String(found.length), ...(newest ? { 'Downpour-Order': 'newest' } : {}) },
      };
    }
    if (pathname === '/api/search/values') {
      const tagk = searchParams.get('tagk');
      const tags = body.tags.some(({ key }) => key === tagk) ? body.tags : [{ key: tagk, value: '*' }, ...body.tags];
      const values = [...new Set(this.#with(tags).map((s) => s[tagk]))].sort();
      return { body: { values: values.slice(0, body.limit), more: values.length > body.limit } };
    }
    if (pathname === '/api/annotations') {
      const [from, to] = ['start_time', 'end_time'].map((n) => Number(searchParams.get(n) ?? now()));
      return { body: this.annotations.filter((a) => a.startTime >= from && a.startTime <= to), headers: { Allow: this.mayWrite ? 'GET, POST, PUT, DELETE' : 'GET' } };
    }
    if (pathname === '/api/annotation') { this.annotations.push(body); return { body }; }
    if (pathname !== '/api/query') return { status: 404, body: { error: { code: 404, message: 'not scripted' } } };
    const answer = this.answer(body);
    if (answer.error) return { status: answer.error.code, body: { error: answer.error } };
    if (body.globalAnnotations) return { body: answer.map((r) => ({ ...r, dps: [[now(), r.dps.length]] })) };
    if (body.showSummary) return { body: [...answer, { statsSummary: { rowsPreFilter: 12, dpsPreFilter: 340, emittedDPs: answer.length, totalTime: 1.5 } }] };
    return { body: answer };
  }

  // with returns the series that have some tags; tags of one key are alternatives.
  #with(tags) {
    const wanted = new Map(tags.map(({ key }) => [key, new Set(tags.filter((t) => t.key === key).map((t) => t.value))]));
    return this.series.filter((s) => [...wanted].every(([k, values]) => s[k] !== undefined && (values.has('*') || values.has(s[k]))));
  }

  // dashboard keeps dashboards as the gateway does.
  #dashboard([name, path], number, { method, headers }, text, response) {
    const answer = (status, body, version) => response.writeHead(status, { 'Content-Type': 'application/json', ...(version ? { ETag: `"${version}"` } : {}) }).end(body);
    const fail = (code, message) => answer(code, JSON.stringify({ error: { code, message } }));
    if (path === 'versions') {
      const saved = (text) => { const { title, panels } = JSON.parse(text); return { title, panels: panels.length }; };
      const all = (this.dashboards.get(name) ?? []).map((t, i) => ({ version: i + 1, saved: '2026-11-21T10:30:00Z', by: '', ...saved(t) }));
      return answer(200, JSON.stringify({ name, versions: all.reverse() }));
    }
    if (!name) return answer(200, JSON.stringify({ dashboards: [...this.dashboards].map(([n, v]) => ({ name: n, version: v.length, saved: '2026-11-21T10:30:00Z', by: '', title: JSON.parse(v.at(-1)).title, panels: JSON.parse(v.at(-1)).panels.length, tags: JSON.parse(v.at(-1)).tags })) }));
    const versions = this.dashboards.get(name) ?? [];
    if (method === 'GET') return versions.length > 0 ? answer(200, versions.at(number - 1), number || versions.length) : fail(404, `no such dashboard: ${name}`);
    const from = headers['if-none-match'] === '*' ? 0 : Number(headers['if-match'].replaceAll('"', ''));
    if (from !== versions.length) return fail(409, `dashboard ${name}: version ${versions.length} was saved at 2026-11-21 10:30:00 UTC, this change is made from version ${from}`);
    this.dashboards.set(name, [...versions, text]);
    answer(200, JSON.stringify({ name, version: versions.length + 1 }), versions.length + 1);
  }

  #file(path, response) {
    try {
      const name = fileOf(path);
      const content = name.startsWith('site/') ? siteFile(name.slice('site/'.length)) : readFileSync(join(web, name));
      response.writeHead(200, { 'Content-Type': types[extname(name)] ?? 'text/plain', 'Content-Security-Policy': policy, 'Cache-Control': 'no-store' }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  }
}

// fileOf is the file below gateway/web that a path of a page stands for; those of site/ are made.
function fileOf(path) {
  const ofDocs = /^\/docs(?:\/(.*))?$/.exec(path);
  if (ofDocs) {
    const name = ofDocs[1] || 'index';
    return extname(name) === '.png' ? `docs/${name}` : `site/${extname(name) ? name : `${name}.html`}`;
  }
  if (path === '/') return 'static/index.html';
  if (path === '/ops') return 'static/ops.html';
  return /^\/d(\/|$)/.test(path) ? 'static/dashboard.html' : path.replace('/ui/', 'static/');
}
