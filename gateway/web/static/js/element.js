// make returns an element with a class and a text.
export function make(tag, className = '', text = '') {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text) e.textContent = text;
  return e;
}

const svg = 'http://www.w3.org/2000/svg';

// drawn returns an element of SVG with attributes.
export function drawn(tag, attributes) {
  const e = document.createElementNS(svg, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}
