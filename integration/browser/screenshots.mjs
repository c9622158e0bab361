// Makes a picture of each state of the page, light and dark, wide and narrow.
//
// Usage: node integration/browser/screenshots.mjs DIRECTORY [SCENE…]

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { boards } from './boards.mjs';
import { launch, untilStatus } from './chromium.mjs';
import { docsScenes } from './docsscenes.mjs';
import { opsScenes } from './opsscenes.mjs';
import { panelBoards } from './panelboards.mjs';
import { play, scenes } from './scenes.mjs';
import { Scripted } from './scripted.mjs';

const [out, ...only] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const server = await new Scripted().start();
const browser = await launch();
const sizes = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 800 } };
for (const [size, viewport] of Object.entries(sizes)) {
  for (const colorScheme of ['light', 'dark']) {
    const page = await browser.newPage({ viewport, colorScheme });
    for (const [name, scene] of Object.entries({ ...scenes, ...boards, ...panelBoards, ...opsScenes, ...docsScenes })) {
      if (only.length > 0 && !only.includes(name)) continue;
      await play(page, server, scene, untilStatus);
      await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
      await page.screenshot({ path: join(out, `${name}-${size}-${colorScheme}.png`), fullPage: true });
    }
    await page.close();
  }
}
await browser.close();
server.close();
