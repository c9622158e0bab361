// The grid: where each panel is on the page, and what mouse and keys do to that in edit mode.

import { make } from '../element.js';
import { columns, moved, put, sized, sizedTo } from './places.js';

const gap = 8;
const rowHeight = 40;

// lay puts a panel's element where its place says.
export function lay(element, { x, y, w, h }) {
  element.style.gridColumn = `${x + 1} / span ${w}`;
  element.style.gridRow = `${y + 1} / span ${h}`;
  element.style.setProperty('--rows', h);
}

export class Grid {
  // panels() are those of the document; onPlaced(panels, words, hold) gets them at other places: words
  // say what was done, and what one hand does in one movement has the same hold. onSay(text) gets what is
  // to be read aloud.
  constructor(element, panels, onPlaced, onSay) {
    Object.assign(this, { element, panels, onPlaced, onSay });
  }

  // handles returns the buttons that move and size a panel.
  handles(id, name) {
    const move = this.#handle('⠿', `Move ${name}`, 'move');
    const size = this.#handle('⤡', `Size of ${name}`, 'size');
    const [moves, sizes] = [`the move of ${name}`, `the new size of ${name}`];
    move.addEventListener('keydown', (e) => this.#key(e, id, moves, (way) => moved(this.panels(), id, way)));
    size.addEventListener('keydown', (e) => this.#key(e, id, sizes, (way) => sized(this.panels(), id, { left: -1, right: 1 }[way] ?? 0, { up: -1, down: 1 }[way] ?? 0)));
    move.addEventListener('pointerdown', (e) => this.#drag(e, id, moves, (at, dx, dy) => ({ ...at, x: Math.min(columns - at.w, Math.max(0, at.x + Math.round(dx))), y: Math.max(0, at.y + dy) })));
    size.addEventListener('pointerdown', (e) => this.#drag(e, id, sizes, (at, dx, dy) => sizedTo(at, at.w + Math.round(dx), at.h + Math.round(dy))));
    return [move, size];
  }

  #handle(sign, label, className) {
    const button = make('button', className, sign);
    button.type = 'button';
    button.setAttribute('aria-label', label);
    button.setAttribute('aria-describedby', 'grid-keys');
    return button;
  }

  #key(e, id, words, change) {
    const way = { ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down' }[e.key];
    if (!way || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    this.#place(change(way), words);
    const { x, y, w, h } = this.panels().find((p) => p.id === id).place;
    this.onSay(`Column ${x + 1}, row ${y + 1}, ${w} wide, ${h} high`);
    e.target.focus();
  }

  // place reports the places of panels, if any has changed.
  #place(panels, words, hold) {
    const text = (list) => JSON.stringify(list.map((p) => p.place));
    if (text(panels) !== text(this.panels())) this.onPlaced(panels, words, hold);
  }

  // drag follows the pointer from where it went down. place(at, dx, dy) gets the distance in
  // columns and rows.
  #drag(e, id, words, place) {
    if (e.button !== 0) return;
    const before = this.panels();
    const { clientX, clientY, target, pointerId } = e;
    const column = (this.element.clientWidth + gap) / columns;
    target.setPointerCapture(pointerId);
    const at = before.find((p) => p.id === id).place;
    const hold = {};
    const follow = (m) => this.#place(put(before, id, place(at, (m.clientX - clientX) / column, (m.clientY - clientY) / (rowHeight + gap))), words, hold);
    const end = () => { for (const [event, f] of handlers) target.removeEventListener(event, f); };
    const handlers = [['pointermove', follow], ['pointerup', end], ['pointercancel', () => { this.#place(before, words, hold); end(); }]];
    for (const [event, f] of handlers) target.addEventListener(event, f);
  }
}
