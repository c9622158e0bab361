// The types of panels: how each is called, the size of a new one in columns and rows, what it
// begins with, and which fields it has beside those of all. types/drawings.js draws them.

const asked = { fields: ['queries', 'formulas'], blank: { queries: [] } };

export const types = {
  lines: { name: 'lines', size: [6, 8], ...asked },
  number: { name: 'single number', size: [3, 4], ...asked },
  table: { name: 'table', size: [6, 8], ...asked },
  text: { name: 'text', size: [6, 3], fields: ['text'], blank: { text: '' } },
};

// typeOf returns what is known of a type, null for one of a later release.
export const typeOf = (name) => (Object.hasOwn(types, name) ? types[name] : null);

// asks tells whether panels of a type have queries.
export const asks = (name) => typeOf(name)?.fields.includes('queries') ?? false;
