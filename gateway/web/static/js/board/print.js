// Printing. What is out of view has asked nothing yet, so all panels are drawn first, in light colours
// and as wide as a sheet.

const root = document.documentElement;
const patience = 20_000; // ms, for answers; a panel without one prints what it is waiting for
const atOnce = 5_000;    // ms, for those that the browser's own menu waits for

const frames = () => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });

// print calls set(true), which is to show all panels for a sheet, waits until none of them is
// waiting, and prints; set(false) comes once that is done.
export async function print(panels, set) {
  if (root.hasAttribute('data-print')) return;
  root.toggleAttribute('data-print', true);
  set(true);
  for (const end = Date.now() + patience; panels().some((p) => p.waiting()) && Date.now() < end;) await new Promise((resolve) => { setTimeout(resolve, 50); });
  await frames();
  end(set);
  window.print();
}

// byMenu prepares the page where the browser itself prints, as from its menu. Nothing can be awaited
// then, so fill(until) asks and draws while the page waits, up to a time in ms.
export function byMenu(set, fill) {
  addEventListener('beforeprint', () => {
    if (root.hasAttribute('data-print')) return;
    root.toggleAttribute('data-print', true);
    set(true);
    fill(Date.now() + atOnce);
    end(set);
  });
}

function end(set) {
  addEventListener('afterprint', () => {
    root.toggleAttribute('data-print', false);
    set(false);
  }, { once: true });
}
