// One panel in the whole window. Which it is stands in the address, as panel=ID.

const root = document.documentElement;

export class Screen {
  // panels are those drawn, by id; go(part) changes the view.
  constructor(panels, go) { Object.assign(this, { panels, go, id: '' }); }

  // show follows the view: the others are not seen, and ask nothing.
  show({ panel = '' }) {
    const before = this.id;
    this.id = this.panels.has(panel) ? panel : '';
    root.toggleAttribute('data-full', this.id !== '');
    for (const [id, p] of this.panels) p.fill(id === this.id);
    if (before && !this.id) this.panels.get(before)?.focus();
  }

  // toggle fills the window with a panel, or leaves it.
  toggle(id) {
    if (!this.id && !this.panels.has(id)) return;
    const to = this.id ? '' : id;
    this.go({ panel: to });
    this.panels.get(to)?.focus();
  }

  leave() { if (this.id) this.toggle(); }

  // step goes to the next of ids, or to the one before; it fills the window if that one did.
  step(ids, by) {
    const here = this.id || this.at();
    const at = ids.indexOf(here);
    const next = ids[at < 0 ? (by > 0 ? 0 : ids.length - 1) : Math.min(ids.length - 1, Math.max(0, at + by))];
    if (next === undefined || next === this.id) return;
    if (this.id) this.go({ panel: next });
    this.panels.get(next).focus();
  }

  // at is the panel that has the focus, or the one below the mouse.
  at() { return (document.activeElement?.closest('.panel') ?? document.querySelector('.panel:hover'))?.dataset.id; }
}
