// Figures of dashboards in a real Chromium. Each mode prints one line of JSON.
//
// Usage: node figures.mjs URL paint NAME PANELS TIMES: from the start of the navigation until all
// panels have drawn lines, each time in a new profile;
// or node figures.mjs URL wall NAME PANELS SECONDS: what live panels cost the main thread and the
// tab's memory, while all are in view.

import { readFileSync } from 'node:fs';
import { launch, patience } from './chromium.mjs';

const [base, mode, name, panels, number] = process.argv.slice(2).map((a, i) => (i > 2 ? Number(a) : a.replace(/\/$/, '')));
const viewport = { width: 1920, height: 2600 };

// painted notes the time at which all panels have drawn: the frame after the one that draws the
// last answer.
const painted = (wanted) => {
  const look = () => {
    const all = window.__downpour?.panels?.() ?? [];
    if (all.length === wanted && all.every((p) => p.kind === 'live' && p.points > 0)) requestAnimationFrame(() => { window.__painted = performance.now(); });
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
};

const browser = await launch();

async function open() {
  const context = await browser.newContext({ viewport });
  const page = await context.newPage();
  await page.addInitScript(painted, panels);
  await page.goto(`${base}/d/${name}`);
  await page.waitForFunction(() => window.__painted, null, { timeout: patience });
  return { context, page };
}

async function paint() {
  const ms = [];
  for (let i = 0; i < number; i++) {
    const { context, page } = await open();
    ms.push(await page.evaluate(() => window.__painted));
    await context.close();
  }
  return { ms };
}

// resident is the memory of all renderers, in bytes.
async function resident(session) {
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  const kib = processInfo.filter((p) => p.type === 'renderer').map((p) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${p.id}/status`, 'utf8'))?.[1] ?? 0));
  return 1024 * kib.reduce((a, b) => a + b, 0);
}

async function wall() {
  const { page } = await open();
  const session = await page.context().newCDPSession(page);
  const whole = await browser.newBrowserCDPSession();
  await session.send('Performance.enable');
  await session.send('HeapProfiler.enable');
  const metrics = async () => Object.fromEntries((await session.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]));
  const samples = [];
  const began = Date.now();
  const spent = { wall: 0, task: 0, script: 0 };
  for (let i = 1; i <= 12; i++) {
    const before = await metrics();
    const from = Date.now();
    const due = began + (i * number * 1000) / 12;
    await new Promise((resolve) => setTimeout(resolve, due - Date.now())); // in an hour's wall 5 minutes, longer than patience
    const after = await metrics();
    spent.wall += (Date.now() - from) / 1000;
    spent.task += after.TaskDuration - before.TaskDuration;
    spent.script += after.ScriptDuration - before.ScriptDuration;
    await session.send('HeapProfiler.collectGarbage'); // outside what is measured of the main thread
    samples.push({ seconds: (Date.now() - began) / 1000, heap: (await metrics()).JSHeapUsedSize, resident: await resident(whole) });
  }
  const points = await page.evaluate(() => window.__downpour.panels().reduce((n, p) => n + p.points, 0));
  return { taskMS: (1000 * spent.task) / spent.wall, scriptMS: (1000 * spent.script) / spent.wall, points, samples };
}

try {
  console.log(JSON.stringify(await { paint, wall }[mode]()));
} finally {
  await browser.close();
}
