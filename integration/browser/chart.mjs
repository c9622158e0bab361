// Opens the gateway's page in a real Chromium, picks a metric by completion and
// watches the chart move after a put.
//
// Usage: node chart.mjs URL SCREENSHOT
//
// Every step that does not happen ends the script with status 1 and says what
// was waited for; SCREENSHOT is written then.

import { launch } from './chromium.mjs';

const [base, screenshot] = process.argv.slice(2);
const host = new URL(base).host;
const metric = 'browser.test.load';
const surprise = 424242; // a value that nothing else on the page has
const patience = 120_000; // ms, for every wait

// What a page must not do: ask another host, fail, or complain.
const faults = [];
// Every message of the live connection, as text.
const messages = [];

async function put(points) {
  const answer = await fetch(`${base}/api/put`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(points),
  });
  if (!answer.ok) throw new Error(`put: ${answer.status} ${await answer.text()}`);
}

function point(secondsAgo, value, tags = { host: 'web01' }) {
  return { metric, timestamp: Math.floor(Date.now() / 1000) - secondsAgo, value, tags };
}

// until polls a condition, in the page or here.
async function until(what, condition) {
  const deadline = Date.now() + patience;
  for (;;) {
    if (await condition()) return;
    if (Date.now() > deadline) throw new Error(`waited ${patience} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function watch(page) {
  page.on('request', (request) => {
    const url = new URL(request.url());
    const inside = ['data:', 'blob:', 'about:'].includes(url.protocol);
    if (!inside && url.host !== host) faults.push(`asked another host: ${request.url()}`);
  });
  page.on('pageerror', (error) => faults.push(`page error: ${error}`));
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(`console: ${message.text()}`);
  });
  page.on('websocket', (socket) => {
    socket.on('framereceived', ({ payload }) => messages.push(String(payload)));
  });
}

// picture is the chart as drawn, to tell whether it has changed.
function picture(page) {
  return page.evaluate(() => {
    const canvas = document.querySelector('.uplot canvas');
    return canvas ? canvas.toDataURL() : '';
  });
}

// inked says that the chart shows more than one colour.
function inked(page) {
  return page.evaluate(() => {
    const canvas = document.querySelector('.uplot canvas');
    if (!canvas || canvas.width === 0) return false;
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Set();
    for (let i = 0; i < data.length; i += 4) {
      colours.add((data[i] << 24) | (data[i + 1] << 16) | (data[i + 2] << 8) | data[i + 3]);
    }
    return colours.size > 3;
  });
}

async function pickMetric(page) {
  const input = page.getByRole('combobox', { name: 'Metric' });
  await input.click({ timeout: patience });
  await input.fill('');
  await input.pressSequentially('browser.te');
  const option = page.getByRole('option', { name: metric });
  await option.first().waitFor({ timeout: patience });
  await option.first().click();
}

async function run(page) {
  await put([point(240, 1), point(180, 5), point(120, 3), point(60, 4), point(60, 9, { host: 'web02' })]);
  await page.goto(base, { timeout: patience });

  await pickMetric(page);
  await until('the metric in the address', () => decodeURIComponent(page.url()).includes(metric));
  await until('a snapshot with the metric', () =>
    messages.some((m) => m.includes('"snapshot"') && m.includes(metric)));
  await until('a drawn chart', () => inked(page));

  const before = await picture(page);
  const seen = messages.length;
  await put([point(0, surprise)]);
  await until('the new point on the live connection', () =>
    messages.slice(seen).some((m) => m.includes(String(surprise))));
  await until('the new value as the last point of the chart', () =>
    page.evaluate((value) => window.__downpour.last()?.value === value, surprise));
  await until('a changed chart', async () => (await picture(page)) !== before);

  // The whole state is in the address: opened again, it shows the same chart.
  messages.length = 0;
  const address = page.url();
  await page.goto('about:blank');
  await page.goto(address, { timeout: patience });
  await until('the same chart after opening its address again', async () =>
    messages.some((m) => m.includes('"snapshot"') && m.includes(metric)) && (await inked(page)));

  if (faults.length > 0) throw new Error(faults.join('\n'));
}

const browser = await launch();
let status = 0;
const page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
try {
  watch(page);
  await run(page);
  console.log('chart moved');
} catch (error) {
  status = 1;
  console.error(String(error?.stack ?? error));
  console.error(`faults: ${faults.join('\n') || 'none'}`);
  console.error(`last messages: ${messages.slice(-3).map((m) => m.slice(0, 300)).join('\n') || 'none'}`);
  await page.screenshot({ path: screenshot }).catch(() => {});
} finally {
  await browser.close();
}
process.exit(status);
