// Requests to the gateway that are not live.

import { parse } from './answer.js';

const key = 'downpour.token';
let refused = () => {};
let operates = () => {};

export const token = () => sessionStorage.getItem(key) || '';
export const setToken = (text) => sessionStorage.setItem(key, text);

// onRefused is called when the gateway wants another token.
export const onRefused = (f) => { refused = f; };

// onOperator is called when an answer tells that the token is an operator's.
export const onOperator = (f) => { operates = f; };

// sent is the answer to a request with a token; heard gets every one, also what becomes an error.
async function sent(url, options, bearer, heard = () => {}) {
  const headers = { ...options.headers, ...(bearer ? { Authorization: 'Bearer ' + bearer } : {}) };
  const response = await fetch(url, { ...options, headers });
  heard(response);
  if (response.ok) return response;
  const text = await response.text();
  let message = `${response.status} ${response.statusText}`;
  try { message = JSON.parse(text).error.message; } catch { /* not JSON: the status has to do */ }
  throw Object.assign(new Error(message), { status: response.status });
}

const request = (path, options = {}) => sent(path, options, token(), (response) => {
  if (response.status === 401 || response.status === 403) refused();
  if (response.headers?.get('Downpour-Operator')) operates();
});

const get = async (path, signal) => (await request(path, { signal })).json();

const dashboards = '/api/dashboards';

// readers are the requests that a panel needs, by a function that sends them.
const readers = (request) => ({
  // suggest finds names that hold the words of a text, the best first, or for the order "newest" the newest: a list,
  // and as its members how many others there are (more), and whether it is in that order (newest).
  suggest: (type, max = 40, order = '') => async (q, signal) => {
    const response = await request(`/api/suggest?${new URLSearchParams({ type, q, max, match: 'substring', ...(order ? { order } : {}) })}`, { signal });
    const names = await response.json();
    const [total, inOrder] = ['Total', 'Order'].map((h) => response.headers.get(`Downpour-${h}`));
    return Object.assign(names, { more: Math.max(0, Number(total) - names.length), newest: inOrder === 'newest' });
  },

  // tagValues returns {values, more, since}: those of a tag in the series of a metric that have some tags {key, value};
  // those of one key are alternatives. since, in seconds, is there if they are those of rows from then on.
  tagValues: async (metric, tagk, tags, limit, signal) => (await request(`/api/search/values?${new URLSearchParams({ tagk })}`, {
    method: 'POST', signal, body: JSON.stringify({ metric, tags, limit }), headers: { 'Content-Type': 'application/json' },
  })).json(),

  // dashboard is the one in force, or an earlier version: a text, whose version is the ETag.
  dashboard: async (name, version = 0) => {
    const response = await request(`${dashboards}/${encodeURIComponent(name)}${version > 0 ? `?version=${version}` : ''}`);
    return { text: await response.text(), version: versionOf(response) };
  },
});

export const { suggest, tagValues, dashboard } = readers(request);

// readersOf are those of a gateway that is not the page's own.
export const readersOf = (gateway, bearer) => readers((path, options = {}) => sent(new URL(path.slice(1), gateway), options, bearer));

export const aggregators = () => get('/api/aggregators');

const post = (query, parameters, accept) => request(`/api/query?${parameters}`, {
  method: 'POST', body: JSON.stringify(query), headers: { 'Content-Type': 'application/json', ...(accept ? { Accept: accept } : {}) },
});

// query answers as JSON.
export const query = async (body, parameters = 'arrays=true') => parse(await (await post(body, parameters)).text());

export const arrowType = 'application/vnd.apache.arrow.stream';

// arrow answers as a Blob holding an IPC stream.
export const arrow = async (body) => (await post(body, 'integers=true', arrowType)).blob();

// changes are the series that changed most.
export const changes = (parameters, signal) => get(`/api/changes?${new URLSearchParams(parameters)}`, signal);

// globalAnnotations returns those of a time, in s, to another or to now (null), and whether the
// token may make one.
export async function globalAnnotations(from, to) {
  const response = await request(`/api/annotations?${new URLSearchParams({ start_time: from, ...(to === null ? {} : { end_time: to }) })}`);
  return { notes: await response.json(), may: /\bPOST\b/.test(response.headers.get('Allow') ?? '') };
}

export const annotate = (annotation) => request('/api/annotation', { method: 'POST', body: JSON.stringify(annotation), headers: { 'Content-Type': 'application/json' } });

export const dashboardList = async () => (await get(dashboards)).dashboards;

// startPage is {start, dashboards}: the name of the dashboard to which the page at / leads, '' if there is none, and all
// of them. Where dashboards cannot be listed there are none.
export const startPage = async () => {
  const { start = '', dashboards: all = [] } = await get(dashboards).catch((error) => {
    if (error.status === 401 || error.status === 403 || error.status === undefined) throw error;
    return {};
  });
  return { start, dashboards: all };
};

const versionOf = (response) => Number(/\d+/.exec(response.headers.get('ETag') ?? '')?.[0] ?? 0);

// dashboardVersions are those that are kept, the newest first.
export const dashboardVersions = async (name) => (await get(`${dashboards}/${name}/versions`)).versions;

// saveDashboard saves what was made from a version, 0 for a new one, and returns its version. If
// another is in force, the error's status is 409.
export async function saveDashboard(name, text, from) {
  const made = from > 0 ? { 'If-Match': `"${from}"` } : { 'If-None-Match': '*' };
  return versionOf(await request(`${dashboards}/${name}`, { method: 'PUT', body: text, headers: { 'Content-Type': 'application/json', ...made } }));
}

// operations is what /api/ops tells an operator.
export const operations = () => get('/api/ops');

// endQuery ends a running query, endLive a live query.
export const endQuery = (id) => request(`/api/ops/queries/${encodeURIComponent(id)}`, { method: 'DELETE' });
export const endLive = (id) => request(`/api/ops/live/${encodeURIComponent(id)}`, { method: 'DELETE' });

// countSeries counts the series of the meta table.
export const countSeries = () => get('/api/ops/series');
