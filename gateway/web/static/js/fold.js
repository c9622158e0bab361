// On a narrow screen, what one chooses with folds behind a button, and what one looks at comes first.

const narrow = matchMedia('(max-width: 640px)');

export class Fold {
  // parts fold behind button. With view, all stand behind it while the screen is narrow, also in the
  // order in which keys and screen readers go.
  constructor(button, parts, view = null) {
    Object.assign(this, { button, parts, view });
    button.addEventListener('click', () => this.set(button.getAttribute('aria-expanded') !== 'true'));
    narrow.addEventListener('change', () => this.#place());
    this.set(false);
    this.#place();
  }

  set(open) {
    this.button.setAttribute('aria-expanded', String(open));
    this.parts.forEach((part) => part.toggleAttribute('data-folded', !open));
  }

  #place() {
    if (!this.view) return;
    if (narrow.matches) this.view.after(this.button, ...this.parts);
    else this.view.before(this.button, ...this.parts);
  }
}
