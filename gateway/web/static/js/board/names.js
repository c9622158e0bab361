// Names of dashboards. They stand in addresses.

const longest = 64;

// nameOf is a name made of a title, which is none of those that are taken.
export function nameOf(title, taken = []) {
  const plain = title.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  const name = plain.replace(/[^a-z0-9._-]+/g, '-').replace(/^[^a-z0-9]+/, '').slice(0, longest).replace(/[^a-z0-9]+$/, '') || 'dashboard';
  for (let n = 1; ; n++) {
    const tail = n > 1 ? `-${n}` : '';
    const one = name.slice(0, longest - tail.length) + tail;
    if (!taken.includes(one)) return one;
  }
}
