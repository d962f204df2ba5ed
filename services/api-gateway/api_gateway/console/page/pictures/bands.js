/**
 * Who ran which container when: a row for each container, a band for each store that held it, hatched where none did.
 *
 * Bands are coloured and numbered by store: colour alone says nothing.
 */

/** @import {RowsModel} from '../parts/types.d.ts' */
/** @import {Held, StoreMark} from './types.d.ts' */

/**
 * The rows of the picture. Pure.
 * @param {Held[]} history @param {number} from epoch ms @param {number} to @param {Map<string, StoreMark>} marks
 * @returns {RowsModel}
 */
export function bandRows(history, from, to, marks) {
  /** @type {Map<number, any[]>} */
  const rows = new Map();
  for (const one of history) {
    const began = Math.max(one.from, from);
    const ends = Math.min(one.to ?? to, to);
    if (ends < began) continue;
    const mark = one.store === undefined ? undefined : marks.get(one.store);
    const who = one.store === undefined ? 'no store' : `store ${mark?.number ?? '?'}, ${one.store}`;
    const says = `container ${one.container}: ${who}`;
    const items = rows.get(one.container) ?? [];
    items.push({at: began, to: ends, says, look: mark ? `held ${mark.hue}` : 'lost', text: mark?.number});
    rows.set(one.container, items);
  }
  const sorted = [...rows].sort(([one], [other]) => one - other);
  for (const [, items] of sorted) items.sort((one, other) => one.at - other.at);
  return {rows: sorted.map(([container, items]) => ({label: String(container), items})), from, to};
}
