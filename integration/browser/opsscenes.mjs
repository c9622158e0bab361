// The states of the operator's page, for the screenshots: a gateway that has a lot to do, one that has
// nothing to do, and one that wants a token.

import { now } from './scripted.mjs';

const seconds = (f) => Array.from({ length: 180 }, (_, i) => Math.max(0, Math.round(f(i))));
const wave = (i, height, base) => base + height * (Math.sin(i / 17) * 0.5 + Math.sin(i / 5) * 0.2);
const asked = (metric, more = '') => `{"start":"1d-ago","queries":[{"aggregator":"sum","downsample":"1m-avg","metric":"${metric}"${more}}]}`;
const ms = () => now() * 1000;

const report = () => ({
  time: ms(), started: ms() - 3 * 86400e3, version: '0.1.0', host: 'gw1.example', store: 'hbase:zk1.example:2181', mode: 'rw',
  queries: {
    running: [
      { id: 'k3xq7a2m-4711', route: '/api/query', query: asked('http.requests', ',"filters":[{"type":"wildcard","tagk":"host","filter":"*","groupBy":true}]'), client: '10.0.0.17:50412', token: 'grafana', request: 'f00d', start: ms() - 8400, elapsed: 8400, points: 412e6, bytes: 5.1e9, memory: 310 * 2 ** 20 },
      { id: 'k3xq7a2m-4790', route: '/q', query: asked('disk.used'), client: '10.0.0.9:51100', token: 'wall', request: 'beef', start: ms() - 320, elapsed: 320, points: 90000, bytes: 1.2e6, memory: 2 ** 20, endedBy: 'alice' },
    ],
    slowest: [
      { route: '/api/query', query: asked('http.requests'), client: '10.0.0.17:50398', token: 'grafana', request: 'a1', start: ms() - 1500e3, took: 28700, status: 200, rows: 2.1e6, points: 940e6, bytes: 11.2e9, answered: 288000 },
      { route: '/api/query', query: asked('<img src=x onerror=alert(1)>'), client: '10.0.0.66:40002', request: 'a2', start: ms() - 600e3, took: 30000, status: 408, failure: 'Query timeout exceeded', rows: 0, points: 1.1e9, bytes: 13.9e9, answered: 0 },
    ],
    heaviest: [],
  },
  live: {
    queries: 64, subscribers: 212, sockets: 51, answers: 96 * 2 ** 20, history: 7 * 2 ** 20, sending: 2 ** 20, more: 62,
    listed: [{ query: asked('cpu.user'), expression: false, subscribers: 50, bytes: 31 * 2 ** 20 }, { query: asked('no.such'), expression: false, subscribers: 1, bytes: 512, error: "No such name for 'metrics': 'no.such'" }],
  },
  memory: { limit: 8 * 2 ** 30, waiting: 0, held: [{ name: 'cache', bytes: 1.2 * 2 ** 30, refused: 0 }, { name: 'query', bytes: 0.4 * 2 ** 30, refused: 3 }, { name: 'write', bytes: 12 * 2 ** 20, refused: 0 }, { name: 'live', bytes: 30 * 2 ** 20, refused: 0 }] },
  resultCache: { limit: 2 ** 27, bytes: 0.9 * 2 ** 27, entries: 8120, hits: 81200, new: 9100, changed: 4200, unproven: 120, evictions: 900, savedRows: 40.2e6, savedBytes: 610e9, shared: 12000 },
  places: {
    list: [
      { address: 'rs1.example:4280', beside: 'rs1.example:16020', state: 'healthy', regions: 5, parts: 40210, failed: 0, bytes: 210e9, mean: 41, longest: 900 },
      { address: 'rs2.example:4280', beside: 'rs2.example:16020', state: 'healthy', regions: 4, parts: 39800, failed: 0, bytes: 208e9, mean: 402, longest: 7100 },
      { address: 'rs3.example:4280', beside: 'rs3.example:16020', state: 'away', regions: 0, parts: 120, failed: 31, bytes: 1e9, mean: 44, longest: 400, lastError: 'connection refused', lastFail: ms() - 4000 },
      { address: 'in-process', regions: 3, parts: 8200, failed: 0, bytes: 44e9, mean: 60, longest: 1200 },
    ],
    regions: [{ place: 0, regions: 3 }, { place: 1, regions: 4 }, { place: 3, regions: 3 }, { place: 0, regions: 2 }],
  },
  puts: {
    from: ms() - 180e3, http: seconds((i) => wave(i, 9000, 41000)), telnet: seconds((i) => wave(i + 40, 4000, 12000)), own: seconds((i) => (i % 10 === 0 ? 90 : 0)),
    refused: seconds((i) => (i > 120 && i < 150 ? 6000 : 0)),
    reasons: [
      { via: 'telnet put', reason: 'unknown name', points: 174000, times: 174000, last: ms() - 31e3, error: "No such name for 'metrics': 'sys.cpu.usr'" },
      { via: '/api/put', reason: 'unauthorized', points: 0, times: 12, last: ms() - 7000e3, error: 'Unauthorized' },
    ],
  },
  uids: [{ kind: 'metrics', used: 41200, most: 16777215, grown: 12, within: 86400e3 }, { kind: 'tagk', used: 310, most: 16777215, grown: 0, within: 86400e3 }, { kind: 'tagv', used: 14900000, most: 16777215, grown: 210000, within: 86400e3, runOut: ms() + 9 * 86400e3 }],
});

const quiet = () => ({
  ...report(), host: 'laptop', store: 'pebble:data', queries: { running: [], slowest: [], heaviest: [] },
  live: { queries: 0, subscribers: 0, sockets: 1, answers: 0, history: 0, sending: 0, more: 0, listed: [] },
  resultCache: { limit: 0, bytes: 0, entries: 0, hits: 0, new: 0, changed: 0, unproven: 0, evictions: 0, savedRows: 0, savedBytes: 0, shared: 0 },
  places: { list: [{ address: 'in-process', regions: 0, parts: 0, failed: 0, bytes: 0, mean: 0, longest: 0 }], regions: [] },
  puts: { from: ms() - 180e3, http: seconds(() => 0), telnet: seconds(() => 0), own: seconds(() => 0), refused: seconds(() => 0), reasons: [] },
  uids: [],
});

const withHeaviest = () => { const r = report(); r.queries.heaviest = r.queries.slowest.toReversed(); return r; };

export const opsScenes = {
  ops: { path: '/ops', status: 'live', script: (s) => { s.operations = withHeaviest; } },
  opsquiet: { path: '/ops', status: 'live', script: (s) => { s.operations = quiet; } },
  opstoken: {
    path: '/ops', status: 'error',
    script: (s) => { s.operations = () => null; s.api = (path) => (path === '/api/ops' ? { status: 403, body: { error: { code: 403, message: 'Forbidden' } } } : null); },
  },
};
