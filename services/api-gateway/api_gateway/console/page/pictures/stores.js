/**
 * Segment stores as pictures show them: each has a number and a colour, the same ones wherever it appears. Pure.
 */
/** @import {StoreMark} from './types.d.ts' */

/** So many hues the style sheet has: `--hue-1` and so on; further stores take them in turn, numbers go on. */
export const COLOURS = 6;

/**
 * Numbers from 1 on, by address.
 * @param {Iterable<string | undefined>} stores as often as they appear @returns {Map<string, StoreMark>}
 */
export function storeMarks(stores) {
  const known = [...new Set([...stores].filter((one) => one !== undefined && one !== ''))].sort();
  return new Map(
    known.map((store, index) => [
      /** @type {string} */ (store),
      {number: index + 1, hue: `hue-${(index % COLOURS) + 1}`},
    ]),
  );
}
