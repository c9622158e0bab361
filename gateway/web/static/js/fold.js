// On a narrow screen, what one chooses with folds behind a button, and what one looks at comes first.

const narrow = matchMedia('(max-width: 640px)');

export class Fold {
  // part folds behind button. With view, both stand behind it while the screen is narrow, also in the
  // order in which keys and screen readers go.
  constructor(button, part, view = null) {
    Object.assign(this, { button, part, view });
    button.addEventListener('click', () => this.set(button.getAttribute('aria-expanded') !== 'true'));
    narrow.addEventListener('change', () => this.#place());
    this.set(false);
    this.#place();
  }

  set(open) {
    this.button.setAttribute('aria-expanded', String(open));
    this.part.toggleAttribute('data-folded', !open);
  }

  #place() {
    if (!this.view) return;
    if (narrow.matches) this.view.after(this.button, this.part);
    else this.view.before(this.button, this.part);
  }
}
