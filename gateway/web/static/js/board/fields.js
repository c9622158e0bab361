// The fields that panels of some types have beside those of all: what each must be. A document
// may come from a link, so a check takes anything.

import { ways } from '../stats.js';
import { colours, isThreshold, most } from '../thresholds.js';
import { names as units } from '../units.js';

const limits = { queries: 26, query: 4096, formulas: 8, top: 200 };

export const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);
export const isText = (v, most) => typeof v === 'string' && [...v].length <= most;
export const optional = (v, check) => v === undefined || check(v);

export const decimalsAtMost = 9;

export const legends = ['list', 'table'];

const isFormula = (f) => isObject(f) && optional(f.expr, (t) => isText(t, limits.query)) && optional(f.name, (t) => isText(t, limits.query));

const isUnit = { check: (v) => units.includes(v), fault: `its unit is none of ${units.join(', ')}` };
const isLimit = (v) => optional(v, (x) => Number.isFinite(x));
const isAxis = (v) => isObject(v) && isLimit(v.min) && isLimit(v.max) && !(v.min >= v.max) && optional(v.decimals, (d) => Number.isInteger(d) && d >= 0 && d <= decimalsAtMost);
const isTop = (v) => isObject(v) && Number.isInteger(v.n) && v.n >= 1 && v.n <= limits.top && Object.hasOwn(ways, v.by);

// fault is what is said where check fails.
const fields = {
  text: { check: (v) => typeof v === 'string', fault: 'its text is none' },
  queries: { check: (v) => Array.isArray(v) && v.length <= limits.queries && v.every((q) => isText(q, limits.query) || isObject(q)), fault: 'its queries are none' },
  formulas: { check: (v) => Array.isArray(v) && v.length <= limits.formulas && v.every(isFormula), fault: 'its formulas are none' },
  log: { check: () => true }, // what is not true is no log scale
  unit: isUnit,
  rightUnit: { ...isUnit, fault: `its right axis’ unit is none of ${units.join(', ')}` },
  axis: { check: isAxis, fault: `its axis is no min below a max, and decimals from 0 to ${decimalsAtMost}` },
  rightAxis: { check: isAxis, fault: `its right axis is no min below a max, and decimals from 0 to ${decimalsAtMost}` },
  thresholds: { check: (v) => Array.isArray(v) && v.length <= most && v.every(isThreshold), fault: `its thresholds are not up to ${most} values with a colour each, ${Object.keys(colours).join(', ')}` },
  top: { check: isTop, fault: `its top is no n from 1 to ${limits.top} by ${Object.keys(ways).join(', ')}` },
  annotations: { check: (v) => typeof v === 'boolean', fault: 'its annotations are neither true nor false' },
  legend: { check: (v) => legends.includes(v), fault: `its legend is none of ${legends.join(', ')}` },
};

// faultOf says which of the named fields of a panel is wrong, '' for none.
export function faultOf(panel, names) {
  const wrong = names.find((n) => !optional(panel[n], fields[n].check));
  return wrong === undefined ? '' : fields[wrong].fault;
}
