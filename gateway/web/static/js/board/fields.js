// The fields that panels of some types have beside those of all: what each must be. A document
// may come from a link, so a check takes anything.

const limits = { queries: 26, query: 4096, formulas: 8 };

export const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);
export const isText = (v, most) => typeof v === 'string' && [...v].length <= most;
export const optional = (v, check) => v === undefined || check(v);

const isFormula = (f) => isObject(f) && optional(f.expr, (t) => isText(t, limits.query)) && optional(f.name, (t) => isText(t, limits.query));

// fault is what is said where check fails.
const fields = {
  text: { check: (v) => typeof v === 'string', fault: 'its text is none' },
  queries: { check: (v) => Array.isArray(v) && v.length <= limits.queries && v.every((q) => isText(q, limits.query) || isObject(q)), fault: 'its queries are none' },
  formulas: { check: (v) => Array.isArray(v) && v.length <= limits.formulas && v.every(isFormula), fault: 'its formulas are none' },
};

// faultOf says which of the named fields of a panel is wrong, '' for none.
export function faultOf(panel, names) {
  const wrong = names.find((n) => !optional(panel[n], fields[n].check));
  return wrong === undefined ? '' : fields[wrong].fault;
}
