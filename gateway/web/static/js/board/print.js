// Printing. What is out of view has asked nothing yet, so all panels are drawn first, in light colours
// and as wide as a sheet.

const root = document.documentElement;
const patience = 20_000; // ms, for answers; a panel without one prints what it is waiting for

const frames = () => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });

// print calls set(true), which is to show all panels for a sheet, waits until none of them is
// waiting, and prints; set(false) comes once that is done.
export async function print(panels, set) {
  if (root.hasAttribute('data-print')) return;
  root.toggleAttribute('data-print', true);
  set(true);
  for (const end = Date.now() + patience; panels().some((p) => p.waiting()) && Date.now() < end;) await new Promise((resolve) => { setTimeout(resolve, 50); });
  await frames();
  addEventListener('afterprint', () => {
    root.toggleAttribute('data-print', false);
    set(false);
  }, { once: true });
  window.print();
}
