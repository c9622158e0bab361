// The types of panels: how each is called, the size of a new one in columns and rows, what it
// begins with, and which fields it has beside those of all. The lines of one that is aligned want
// points at equal times; one with all draws nothing of each line, and so takes very many.
// types/drawings.js draws them.

const asked = (...fields) => ({ fields: ['queries', 'formulas', ...fields], blank: { queries: [] } });
const axes = ['unit', 'rightUnit', 'axis', 'rightAxis', 'thresholds', 'top', 'legend', 'annotations'];

export const types = {
  lines: { name: 'lines', size: [6, 8], ...asked('log', ...axes) },
  stacked: { name: 'stacked areas', size: [6, 8], aligned: true, ...asked(...axes) },
  bars: { name: 'bars', size: [6, 8], aligned: true, ...asked(...axes) },
  heatmap: { name: 'heat map', size: [6, 8], all: true, ...asked('log', 'unit') },
  number: { name: 'single number', size: [3, 4], ...asked('unit', 'rightUnit', 'thresholds') },
  table: { name: 'table', size: [6, 8], ...asked('unit', 'rightUnit', 'top') },
  text: { name: 'text', size: [6, 3], fields: ['text'], blank: { text: '' } },
};

// typeOf returns what is known of a type, null for one of a later release.
export const typeOf = (name) => (Object.hasOwn(types, name) ? types[name] : null);

// asks tells whether panels of a type have queries.
export const asks = (name) => typeOf(name)?.fields.includes('queries') ?? false;
