/**
 * Decisions of one stream in two lanes on one time axis: what happened, and what would have happened. The first
 * difference is a line through both.
 *
 * What acts is a filled mark whose form says what it does; what does not act is a small ring.
 */

import {Rows} from './rows.js';
/** @import {Clock, Context, Form, RowsModel, RowsOptions} from './types.d.ts' */
/** @import {WhatIfDecision} from 'api' */

const ROW_PX = 30;

/** @type {Record<string, Form>} */
const FORMS = {
  split: 'split',
  merge: 'merge',
  'split-and-merge': 'both',
  'beyond-minimum': 'truncate',
  consumed: 'truncate',
  'beyond-maximum': 'truncate',
};

/** What a decision of that code does to the stream. @param {string} code @returns {Form} */
export function formOf(code) {
  return FORMS[code] ?? 'none';
}

/**
 * The rows of the picture. Pure.
 * @param {{happened: WhatIfDecision[], would: WhatIfDecision[], firstDifference?: number, since: number, until:
 *   number}} found
 * @param {(code: string) => string} words @returns {RowsModel}
 */
export function laneRows(found, words) {
  const row = (/** @type {string} */ label, /** @type {WhatIfDecision[]} */ decided) => ({
    label,
    items: decided
      .map((one) => ({at: one.at, says: `${words(one.code)}: ${one.reason}`, form: formOf(one.code), decided: one}))
      .sort((one, other) => one.at - other.at),
  });
  const differs = found.firstDifference;
  return {
    rows: [row('happened', found.happened), row('would have', found.would)],
    from: found.since,
    to: found.until,
    lines: differs === undefined ? [] : [{at: differs, label: 'first difference'}],
  };
}

/**
 * @param {HTMLElement} host
 * @param {{clock: Clock, onFocus?: (says: string) => void, onOpen?: (decided: WhatIfDecision) => void,
 *   onView?: (from: number, to: number) => void}} options
 */
export function lanes(host, options) {
  const rows = new Rows(host, {
    label: 'What was decided, and what would have been',
    clock: options.clock,
    rowHeight: ROW_PX,
    paint,
    onFocus: (item, row) =>
      options.onFocus?.(item === null || row === null ? '' : `${row.label}, ${rows.when(item)}: ${item.says}`),
    onOpen: (item) => options.onOpen?.(/** @type {any} */ (item).decided),
    onView: options.onView,
  });
  return rows;
}

/** @type {RowsOptions['paint']} */
function paint(pen, item, box, theme) {
  const form = /** @type {any} */ (item).form;
  const x = box.x + box.width / 2;
  const y = box.y + box.height / 2;
  if (form === 'none') {
    pen.strokeStyle = theme('--muted');
    pen.beginPath();
    pen.arc(x, y, 3, 0, 2 * Math.PI);
    pen.stroke();
    return;
  }
  const size = 6;
  pen.fillStyle = theme(form === 'truncate' ? '--hue-4' : '--accent');
  pen.beginPath();
  if (form === 'split' || form === 'both') triangle(pen, x, form === 'both' ? y - 4 : y, size, -1);
  if (form === 'merge' || form === 'both') triangle(pen, x, form === 'both' ? y + 4 : y, size, 1);
  if (form === 'truncate') {
    pen.moveTo(x + size, y - size);
    pen.lineTo(x - size, y);
    pen.lineTo(x + size, y + size);
  }
  pen.fill();
}

/**
 * @param {Context} pen @param {number} x @param {number} y @param {number} size
 * @param {number} way -1 points up, 1 down
 */
function triangle(pen, x, y, size, way) {
  pen.moveTo(x - size, y - way * size * 0.7);
  pen.lineTo(x + size, y - way * size * 0.7);
  pen.lineTo(x, y + way * size * 0.8);
  pen.closePath();
}
