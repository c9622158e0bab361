import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

// The colours of app.css: name -> [light, dark].
const colours = Object.fromEntries([...readFileSync(new URL('../static/app.css', import.meta.url), 'utf8')
  .matchAll(/--([a-z0-9]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)].map(([, name, ...both]) => [name, both]));

const linear = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
const luminance = (hex) => linear(hex).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };

test('text is 4.5:1 and lines are 3:1 against both grounds, light and dark', () => {
  for (const scheme of [0, 1]) {
    for (const ground of ['ground', 'panel']) {
      for (const name of ['text', 'faint', 'accent', 'good', 'bad', 'warn', 'note']) {
        assert.ok(contrast(colours[name][scheme], colours[ground][scheme]) >= 4.5, `${name} on ${ground}, ${scheme}: ${contrast(colours[name][scheme], colours[ground][scheme])}`);
      }
    }
    for (let i = 0; i < 8; i++) assert.ok(contrast(colours[`c${i}`][scheme], colours.panel[scheme]) >= 3, `c${i}, ${scheme}: ${contrast(colours[`c${i}`][scheme], colours.panel[scheme])}`);
  }
});

// How dichromats see a linear colour, by Machado, Oliveira and Fernandes (2009),
// severity 1.
const sight = {
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

const lab = ([r, g, b]) => {
  const f = (v) => (v > 0.008856 ? Math.cbrt(v) : 7.787 * v + 16 / 116);
  const [x, y, z] = [0.4124 * r + 0.3576 * g + 0.1805 * b, 0.2126 * r + 0.7152 * g + 0.0722 * b, 0.0193 * r + 0.1192 * g + 0.9505 * b];
  return [116 * f(y) - 16, 500 * (f(x / 0.9505) - f(y)), 200 * (f(y) - f(z / 1.089))];
};

test('colour-blind people tell eight lines apart by colour', () => {
  for (const scheme of [0, 1]) {
    for (const [kind, m] of Object.entries(sight)) {
      const seen = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => { const c = linear(colours[`c${i}`][scheme]); return lab(m.map((row) => Math.max(0, row.reduce((s, v, k) => s + v * c[k], 0)))); });
      for (let a = 0; a < seen.length; a++) {
        for (let b = 0; b < a; b++) {
          const distance = Math.hypot(...seen[a].map((v, k) => v - seen[b][k]));
          assert.ok(distance >= 15, `${kind}, ${scheme}: lines ${b} and ${a} are ${distance.toFixed(1)} apart`);
        }
      }
    }
  }
});

test('each level of a heat map is farther from the ground than the last', () => {
  for (const scheme of [0, 1]) {
    let before = { name: 'panel', far: 1 };
    for (let i = 0; i < 6; i++) {
      const far = contrast(colours[`h${i}`][scheme], colours.panel[scheme]);
      assert.ok(far >= before.far * 1.25, `h${i}, ${scheme}: ${far.toFixed(2)} from the ground, ${before.name} is ${before.far.toFixed(2)}`);
      before = { name: `h${i}`, far };
    }
    assert.ok(before.far >= 7, `h5, ${scheme}: ${before.far.toFixed(2)}`);
  }
});
