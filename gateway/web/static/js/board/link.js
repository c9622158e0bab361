// What an address carries: what is chosen for the variables, a time before to compare with; and a
// whole dashboard, its document deflated and in the letters of an address.

import { isShift } from '../zone.js';
import { valuesAtMost } from './variables.js';

const most = 1 << 20; // bytes of a document

const through = (bytes, transform) => new Blob([bytes]).stream().pipeThrough(transform);

const namesAtMost = 20; // of variables

// sharedOf reads var-NAME=value, once for each value of a variable, and shift=1w.
export function sharedOf(params) {
  const given = Object.create(null);
  for (const [key, value] of params) {
    if (!key.startsWith('var-') || value === '') continue;
    const name = key.slice(4);
    if (!(name in given) && Object.keys(given).length >= namesAtMost) continue;
    given[name] ??= [];
    if (given[name].length < valuesAtMost) given[name].push(value);
  }
  const shift = params.get('shift') ?? '';
  return { given, shift: isShift(shift) ? shift : '' };
}

// putShared writes them.
export function putShared(params, { given, shift }) {
  for (const [name, values] of Object.entries(given)) for (const v of values) params.append(`var-${name}`, v);
  if (shift) params.set('shift', shift);
}

// encode returns a document's text as doc has it.
export async function encode(text) {
  const bytes = new Uint8Array(await new Response(through(text, new CompressionStream('deflate-raw'))).arrayBuffer());
  let letters = '';
  for (let i = 0; i < bytes.length; i += 0x8000) letters += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(letters).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

// decode throws for what is none. It reads no more than a document may have: few letters can
// stand for very much.
export async function decode(letters) {
  const bytes = Uint8Array.from(atob(letters.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
  const reader = through(bytes, new DecompressionStream('deflate-raw')).getReader();
  const parts = [];
  let read = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    read += value.length;
    if (read > most) {
      await reader.cancel();
      throw new Error('more than 1 MiB');
    }
    parts.push(value);
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(await new Blob(parts).arrayBuffer());
}

const marked = { '&': '&amp;', '<': '&lt;', '"': '&quot;' };
const attribute = ([name, text]) => `${name}="${text.replace(/[&<"]/g, (sign) => marked[sign])}"`;
const tag = (name, attributes) => `<${name} ${Object.entries(attributes).map(attribute).join(' ')}></${name}>`;

// elementOf is what draws a panel of a dashboard in a page of others, see embed.js.
export const elementOf = (origin, dashboard, panel) => tag('div', { 'data-dashboard': dashboard, 'data-panel': panel }) + tag('script', { type: 'module', src: `${origin}/ui/embed.js` });
