// Makes the pictures of gateway/web/README.md, gateway/docs/dashboards.md and gateway/docs/ops.md that show what no gateway has by itself.
//
// Usage: node integration/browser/pictures.mjs DIRECTORY

import { join } from 'node:path';
import { boards } from './boards.mjs';
import { launch, untilStatus } from './chromium.mjs';
import { opsScenes } from './opsscenes.mjs';
import { panelBoards } from './panelboards.mjs';
import { play, scenes } from './scenes.mjs';
import { Scripted } from './scripted.mjs';

const server = await new Scripted().start();
const browser = await launch();
for (const [name, height] of [['formula', 790], ['percentiles', 760], ['board', 800], ['types', 800], ['ops', 1000], ['changed', 1010]]) {
  const page = await browser.newPage({ viewport: { width: 1200, height }, colorScheme: 'light' });
  await play(page, server, scenes[name] ?? boards[name] ?? panelBoards[name] ?? opsScenes[name], untilStatus);
  await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
  await page.screenshot({ path: join(process.argv[2], `${name}.png`) });
}
await browser.close();
server.close();
