/**
 * Decisions of one stream in two lanes on one time axis: what happened, and what would have happened. The first
 * difference is a line through both.
 *
 * What acts is a filled mark whose form says what it does; what does not act is a small ring.
 */

/** @import {RowsModel} from '../parts/types.d.ts' */
/** @import {WhatIfDecision} from 'api' */

/** What stands for a decision of that code that does something to the stream. @type {Record<string, string>} */
const FORMS = {
  split: '▲',
  merge: '▼',
  'split-and-merge': '▲▼',
  'beyond-minimum': '◀',
  consumed: '◀',
  'beyond-maximum': '◀',
};

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
      .map((one) => ({
        at: one.at,
        says: `${words(one.code)}: ${one.reason}`,
        look: one.code in FORMS ? 'acts' : 'rests',
        text: FORMS[one.code] ?? '○',
      }))
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
