// Completion for a text field, by the ARIA combobox pattern: the list opens as
// one types, arrows move in it, Enter takes the marked name, or else the first, Escape closes.

let made = 0;

// combobox enhances input; suggest(text, signal) returns names, and as its member more how many it has left out;
// onPick(value) is called when one is taken, or the field is left changed; while searches() is true only when one is taken.
export function combobox(input, suggest, onPick, searches = () => false) {
  const list = document.createElement('ul');
  list.id = (input.id || `combo-${++made}`) + '-list';
  list.setAttribute('role', 'listbox');
  list.setAttribute('aria-label', 'Suggestions');
  list.hidden = true;
  input.after(list);
  for (const [k, v] of Object.entries({ role: 'combobox', 'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': list.id, autocomplete: 'off', spellcheck: 'false' })) input.setAttribute(k, v);

  let active = -1;
  let request = null;
  let timer = null;
  let taken = input.value;
  let answered = null; // the text that the list is for
  const options = () => [...list.children].filter((o) => o.getAttribute('aria-disabled') !== 'true');

  const close = () => {
    clearTimeout(timer);
    request?.abort();
    list.hidden = true;
    active = -1;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
  };
  const take = (value) => {
    input.value = value;
    close();
    if (value === taken) return;
    taken = value;
    onPick(value);
  };
  const mark = (i) => {
    active = i;
    options().forEach((o, n) => o.setAttribute('aria-selected', String(n === i)));
    const option = options()[i];
    if (!option) return input.removeAttribute('aria-activedescendant');
    input.setAttribute('aria-activedescendant', option.id);
    option.scrollIntoView({ block: 'nearest' });
  };
  const show = (text, names) => {
    answered = text;
    list.replaceChildren(...names.map((name, i) => {
      const option = document.createElement('li');
      option.id = `${list.id}-${i}`;
      option.setAttribute('role', 'option');
      option.setAttribute('aria-selected', 'false');
      option.textContent = name;
      option.addEventListener('pointerdown', (e) => { e.preventDefault(); take(name); });
      return option;
    }));
    if (names.more > 0) list.append(left(names.more));
    list.hidden = names.length === 0;
    input.setAttribute('aria-expanded', String(!list.hidden));
    active = -1;
    input.removeAttribute('aria-activedescendant');
  };
  const ask = async () => {
    request?.abort();
    request = new AbortController();
    const { signal } = request;
    try {
      const text = input.value;
      const names = await suggest(text, signal);
      if (!signal.aborted && document.activeElement === input) show(text, names);
    } catch {
      if (!signal.aborted) close(); // the status line tells of a lost server
    }
  };
  const soon = () => { clearTimeout(timer); timer = setTimeout(ask, 100); };

  input.addEventListener('input', soon);
  input.addEventListener('focus', () => { taken = input.value; });
  input.addEventListener('click', soon);
  input.addEventListener('blur', () => (searches() ? close() : take(input.value.trim())));
  input.addEventListener('keydown', (e) => {
    const n = options().length;
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      e.preventDefault();
      if (list.hidden) return ask();
      mark(e.key === 'ArrowDown' ? (active + 1) % n : (active + n - (active < 0 ? 0 : 1)) % n);
    } else if (e.key === 'Enter') {
      e.preventDefault();
      const fits = !list.hidden && input.value !== '' && answered === input.value;
      const offered = options()[fits ? Math.max(active, 0) : active];
      take(offered?.textContent ?? input.value.trim());
    } else if (e.key === 'Escape' && !list.hidden) {
      e.stopPropagation();
      close();
    }
  });
}

// left is the last line of a list: how many names it has left out.
function left(more) {
  const line = document.createElement('li');
  line.setAttribute('role', 'option');
  line.setAttribute('aria-disabled', 'true');
  line.setAttribute('aria-selected', 'false');
  line.className = 'left-out';
  line.addEventListener('pointerdown', (e) => e.preventDefault());
  line.textContent = `${more} more: type another part of the name`;
  return line;
}
