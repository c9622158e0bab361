// Compares the files under gateway/web/static/vendor with the npm packages that
// they are from, in the versions of package-lock.json.
//
// Usage: node vendored.mjs

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

const packages = {
  uplot: { 'uPlot.esm.js': 'dist/uPlot.esm.js', 'uPlot.min.css': 'dist/uPlot.min.css', LICENSE: 'LICENSE' },
};
const vendor = new URL('../../gateway/web/static/vendor/', import.meta.url);

test('every vendored file is that of its package', () => {
  assert.deepEqual(readdirSync(vendor), Object.keys(packages));
  for (const [name, files] of Object.entries(packages)) {
    assert.deepEqual(readdirSync(new URL(`${name}/`, vendor)).sort(), Object.keys(files).sort());
    for (const [ours, theirs] of Object.entries(files)) {
      const [a, b] = [new URL(`${name}/${ours}`, vendor), new URL(`node_modules/${name}/${theirs}`, import.meta.url)].map((u) => readFileSync(u));
      assert.ok(a.equals(b), `vendor/${name}/${ours} differs from ${theirs} of the package`);
    }
  }
});
