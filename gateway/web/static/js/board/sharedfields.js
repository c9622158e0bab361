// The editor's fields for what a panel shares with the dashboard: the variable that it is
// repeated for, the time before with which it is compared.

import { choose, options } from '../queryrow.js';
import { shifts } from '../shift.js';

const $ = (id) => document.getElementById(id);

export const comparing = new Set(['lines', 'table']); // types that show lines of some time before, too

export const sharedFields = () => ({
  show({ repeat = '', shift = '' }, variables) {
    options($('panel-repeat'), [['', 'nothing'], ...variables.map((v) => [v.name, v.label || v.name])]);
    choose($('panel-repeat'), repeat);
    options($('panel-shift'), shifts);
    choose($('panel-shift'), shift, `${shift} ago`);
  },

  type(type) {
    $('shift-field').hidden = !comparing.has(type);
    $('shared-fields').hidden = $('panel-repeat').options.length === 1 && !comparing.has(type);
  },

  // read is the panel with what the fields say.
  read(panel) {
    const { repeat, shift, ...rest } = panel;
    const [each, before] = [$('panel-repeat').value, $('panel-shift').value];
    return { ...rest, ...(each ? { repeat: each } : {}), ...(before ? { shift: before } : {}) };
  },
});
