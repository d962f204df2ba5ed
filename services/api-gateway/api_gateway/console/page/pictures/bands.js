/**
 * Who ran which container when: a row for each container, a band for each store that held it, hatched where none did.
 *
 * Bands are coloured and numbered by store: colour alone says nothing.
 */

import {Rows} from './rows.js';
/** @import {Box, Clock, Context, Held, RowsModel, RowsOptions, StoreMark} from './types.d.ts' */

const ROW_PX = 20;

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
    items.push({at: began, to: ends, says, mark, container: one.container, open: one.to === undefined});
    rows.set(one.container, items);
  }
  const sorted = [...rows].sort(([one], [other]) => one - other);
  for (const [, items] of sorted) items.sort((one, other) => one.at - other.at);
  return {rows: sorted.map(([container, items]) => ({label: String(container), items})), from, to};
}

/**
 * @param {HTMLElement} host
 * @param {{clock: Clock, onFocus?: (says: string) => void, onOpen?: (container: number, at: number) => void}} options
 * @returns {{update: (model: RowsModel) => void, setClock: (clock: Clock) => void, destroy: () => void}}
 */
export function bands(host, options) {
  const rows = new Rows(host, {
    label: 'Which segment store held which container',
    clock: options.clock,
    rowHeight: ROW_PX,
    paint,
    onFocus: (item) => options.onFocus?.(item === null ? '' : `${item.says}, ${rows.when(item)}`),
    onOpen: (item) => options.onOpen?.(/** @type {any} */ (item).container, item.at),
  });
  return rows;
}

/** @type {RowsOptions['paint']} */
function paint(pen, item, box, theme) {
  const {mark} = /** @type {any} */ (item);
  if (mark === undefined) {
    hatch(pen, box, theme('--bad'));
    return;
  }
  const width = Math.max(box.width - 1, 1);
  pen.fillStyle = theme(mark.colour);
  pen.globalAlpha = 0.3;
  pen.fillRect(box.x, box.y, width, box.height);
  pen.globalAlpha = 1;
  pen.fillRect(box.x, box.y, Math.min(3, width), box.height);
  const text = String(mark.number);
  if (box.height >= 9 && box.width > pen.measureText(text).width + 10) {
    pen.fillStyle = theme('--text');
    pen.fillText(text, Math.max(box.x, 0) + 7, box.y + box.height / 2 + 0.5);
  }
}

/** @param {Context} pen @param {Box} box @param {string} colour */
export function hatch(pen, box, colour) {
  pen.save();
  pen.beginPath();
  pen.rect(box.x, box.y, box.width, box.height);
  pen.clip();
  pen.strokeStyle = colour;
  pen.beginPath();
  for (let x = box.x - box.height; x < box.x + box.width; x += 5) {
    pen.moveTo(x, box.y + box.height);
    pen.lineTo(x + box.height, box.y);
  }
  pen.stroke();
  pen.restore();
}
