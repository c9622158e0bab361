// Chromium, and what no test lets a page do: ask another host, fail, complain.

import { chromium } from 'playwright-core';

export const patience = 120_000; // ms, for every wait: a machine may be ten times busier than today

// launch starts Chromium, with arguments in addition to the usual ones: its headless shell, which is the same engine without
// the user interface and takes a quarter of the processor.
export const launch = (...args) => chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: [
    '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync', '--enable-precise-memory-info', ...args,
  ],
});

// until polls a condition, in the page or here.
export async function until(what, condition) {
  const deadline = Date.now() + patience;
  for (;;) {
    if (await condition()) return;
    if (Date.now() > deadline) throw new Error(`waited ${patience} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

// watch collects faults of a page. expected(text) says which complaints of the
// browser a test provokes itself.
export function watch(page, host, expected = () => false) {
  const faults = [];
  page.setDefaultTimeout(patience);
  page.on('request', (request) => {
    const url = new URL(request.url());
    const inside = ['data:', 'blob:', 'about:'].includes(url.protocol);
    if (!inside && url.host !== host) faults.push(`asked another host: ${request.url()}`);
  });
  page.on('websocket', (socket) => {
    if (new URL(socket.url()).host !== host) faults.push(`connected to another host: ${socket.url()}`);
  });
  page.on('pageerror', (error) => faults.push(`page error: ${error}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !expected(message.text())) faults.push(`console: ${message.text()}`);
  });
  return faults;
}

// record keeps each line that the status says, from the next load of the page
// on: a state may pass before a test that asks for it gets its turn.
export const record = (page) => page.addInitScript(() => {
  const lines = [];
  new MutationObserver(() => {
    const line = document.getElementById('status')?.textContent;
    if (line && line !== lines.at(-1)) lines.push(line);
  }).observe(document, { childList: true, characterData: true, subtree: true });
  window.__statusLines = lines;
});

// untilSaid waits for a line of the record that has the pattern.
export const untilSaid = (page, pattern) => until(`the status to say ${pattern}`, async () => (await page.evaluate(() => window.__statusLines)).some((line) => pattern.test(line)));

export const statusOf = (page) => page.evaluate(() => window.__downpour?.status());

export const untilStatus = (page, kind) => until(`status ${kind}`, async () => (await statusOf(page)) === kind);
