// A chart becomes a panel of a dashboard.

import * as api from '../api.js';
import { empty, newPanel, read, withChart } from './document.js';

// withPanel is a document with one panel more, of lines: the chart of a state.
export function withPanel(board, state, title) {
  const { queries, formulas, log, shift, legend, most } = state;
  const panel = {
    ...newPanel(board, 'lines'), title,
    ...(shift ? { shift } : {}), ...(legend ? { legend } : {}), ...(most > 0 ? { top: { n: Math.min(most, 200), by: 'last' } } : {}),
  };
  return { ...board, panels: [...board.panels, withChart(panel, { queries: queries.filter((q, i) => q.metric || formulas.length > 0), formulas: formulas.filter((f) => f.expr), log })] };
}

const attempts = 3; // others may save at the same time

// add saves a dashboard with one panel more. board is {name, title, isNew}.
export async function add({ name, title, isNew }, state, panelTitle) {
  for (let n = 1; ; n++) {
    const { text, version } = isNew ? { text: JSON.stringify({ ...empty(title), range: { from: state.start, to: state.end } }), version: 0 } : await api.dashboard(name);
    const { document: board, fault, later } = read(text);
    if (fault || later) throw new Error(fault ?? 'a later release made this dashboard');
    const out = JSON.stringify(withPanel(board, state, panelTitle), null, 2);
    const more = read(out).fault;
    if (more) throw new Error(more);
    try {
      return await api.saveDashboard(name, out, version);
    } catch (error) {
      if (error.status !== 409 || isNew || n === attempts) throw error;
    }
  }
}
