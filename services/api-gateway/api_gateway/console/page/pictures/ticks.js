/** What happened to one thing, as ticks on a time axis. A void record is no tick: it changed nothing. */
import {Rows} from './rows.js';
/** @import {Clock, RowsModel, Tick} from './types.d.ts' */

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
 * @param {{at: number, type: string, void?: boolean, value?: any}[]} records of the journal @returns {Tick[]}
 */
export function ticksOf(records) {
  return records
    .filter((one) => !one.void)
    .map((one) => ({at: one.at, says: says(one)}))
    .sort((one, other) => one.at - other.at);
}

/** @param {Tick[]} ticks @param {number} from epoch ms @param {number} to @returns {RowsModel} */
export function tickRows(ticks, from, to) {
  return {rows: [{label: '', items: ticks}], from, to};
}

const ROW_PX = 22;

/**
 * @param {HTMLElement} host
 * @param {{clock: Clock, label: string, onFocus?: (says: string) => void, onOpen?: (at: number) => void}} options
 *   `onOpen` gets the time of the tick
 */
export function tickPicture(host, options) {
  const rows = new Rows(host, {
    label: options.label,
    clock: options.clock,
    rowHeight: ROW_PX,
    paint: (pen, _item, box, theme, lit) => {
      pen.fillStyle = theme(lit ? '--accent' : '--muted');
      pen.fillRect(Math.round(box.x + box.width / 2), box.y, lit ? 3 : 1.5, box.height);
    },
    onFocus: (item) => options.onFocus?.(item === null ? '' : `${rows.when(item)}: ${item.says}`),
    onOpen: (item) => options.onOpen?.(item.at),
  });
  return rows;
}
