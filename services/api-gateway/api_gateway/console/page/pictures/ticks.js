/** What happened to one thing, as ticks on a time axis. A void record is no tick: it changed nothing. */
/** @import {Item, RowsModel} from '../parts/types.d.ts' */

/**
 * "stream truncated" of `StreamTruncated`, with the code of what has one.
 * @param {{type: string, value?: any}} record
 */
function says({type, value}) {
  const words = type.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter}`).toLowerCase();
  return typeof value?.code === 'string' ? `${words}, ${value.code}` : words;
}

/**
 * One tick for each record that counted, by time. Pure.
 * @param {{at: number, type: string, void?: boolean, value?: any}[]} records of the journal @returns {Item[]}
 */
export function ticksOf(records) {
  return records
    .filter((one) => !one.void)
    .map((one) => ({at: one.at, says: says(one), look: 'moment'}))
    .sort((one, other) => one.at - other.at);
}

/** @param {Item[]} ticks @param {number} from epoch ms @param {number} to @returns {RowsModel} */
export function tickRows(ticks, from, to) {
  return {rows: [{label: '', items: ticks}], from, to};
}
