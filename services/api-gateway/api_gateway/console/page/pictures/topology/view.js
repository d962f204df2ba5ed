/**
 * The part of a stream that is visible, and how it is laid out on pixels: x is time or epochs, y is keys, 0 at the
 * bottom.
 *
 * A view that follows has its right edge at now. What the address says of a view is `x=epoch&view=FROM..TO,LOW..HIGH`,
 * with nothing behind `..` where it follows. Pure functions; views are never changed, others are made of them.
 */

import {CREATING} from './model.js';
/** @import {Model, View} from '../types.d.ts' */

const SMALLEST_KEYS = 1e-9;
const SMALLEST_MS = 10;
const SMALLEST_COLUMNS = 0.5;
/** How much room there is behind now, of the width. */
const AHEAD = 0.02;
const AHEAD_CREATING = 0.08;
const CREATING_COLUMNS = 0.7;

/** What a restore found has no time of its own: on the axis of time it is that wide, in pixels, before the restore. */
export const FOUND_WIDTH = 6;

/**
 * Where the axis begins and ends; behind now there is a little room.
 * @param {Model} model @param {'time' | 'epoch'} axis @returns {[number, number]}
 */
export function extent(model, axis) {
  if (axis === 'epoch') return [0, Math.max(model.epochs.count, 1) + (model.creating ? CREATING_COLUMNS : 0)];
  const length = Math.max(model.now - model.since, 1000);
  return [model.since, model.now + length * (model.creating ? AHEAD_CREATING : AHEAD)];
}

/**
 * The view of everything.
 * @param {Model} model @param {'time' | 'epoch'} axis
 * @param {{left: number, top: number, width: number, height: number}} box @returns {View}
 */
export function whole(model, axis, box) {
  const [x0, x1] = extent(model, axis);
  return {axis, x0, x1, y0: 0, y1: 1, follows: true, ...box};
}

/** @param {View} view @param {number} x */
export const toX = (view, x) => view.left + ((x - view.x0) / (view.x1 - view.x0)) * view.width;
/** @param {View} view @param {number} key */
export const toY = (view, key) => view.top + ((view.y1 - key) / (view.y1 - view.y0)) * view.height;
/** @param {View} view @param {number} px */
export const fromX = (view, px) => view.x0 + ((px - view.left) / view.width) * (view.x1 - view.x0);
/** @param {View} view @param {number} py */
export const fromY = (view, py) => view.y1 - ((py - view.top) / view.height) * (view.y1 - view.y0);

/**
 * A view held within what there is; it follows if its right edge is behind now.
 * @param {View} view @param {Model} model @returns {View}
 */
export function held(view, model) {
  const [from, to] = extent(model, view.axis);
  const smallest = view.axis === 'time' ? SMALLEST_MS : SMALLEST_COLUMNS;
  const length = Math.min(Math.max(view.x1 - view.x0, smallest), to - from);
  const x0 = Math.min(Math.max(view.x0, from), to - length);
  const keys = Math.min(Math.max(view.y1 - view.y0, SMALLEST_KEYS), 1);
  const y0 = Math.min(Math.max(view.y0, 0), 1 - keys);
  const x1 = x0 + length;
  return {...view, x0, x1, y0, y1: y0 + keys, follows: x1 >= to - length * 1e-9};
}

/**
 * Closer, or further away, with what is at one pixel staying there.
 * @param {View} view @param {Model} model
 * @param {{x?: number, y?: number, px?: number, py?: number}} by factors below 1 go closer
 */
export function zoomed(view, model, {x = 1, y = 1, px = view.left + view.width / 2, py = view.top + view.height / 2}) {
  const atX = fromX(view, px);
  const atY = fromY(view, py);
  const to = extent(model, view.axis)[1];
  // What follows goes on following: the right edge is what stays.
  const pinned = view.follows && px > view.left + view.width * 0.8 ? to : atX;
  return held(
    {
      ...view,
      x0: pinned - (pinned - view.x0) * x,
      x1: pinned + (view.x1 - pinned) * x,
      y0: atY - (atY - view.y0) * y,
      y1: atY + (view.y1 - atY) * y,
    },
    model,
  );
}

/** Moved by pixels. @param {View} view @param {Model} model @param {number} dx @param {number} dy */
export function moved(view, model, dx, dy) {
  const x = (dx / view.width) * (view.x1 - view.x0);
  const y = (dy / view.height) * (view.y1 - view.y0);
  return held({...view, x0: view.x0 - x, x1: view.x1 - x, y0: view.y0 + y, y1: view.y1 + y}, model);
}

/**
 * The same view when there is more: one that follows keeps its length and its right edge at now; the whole stays whole.
 * @param {View} view @param {Model} before @param {Model} model
 */
export function grown(view, before, model) {
  if (!view.follows) return held(view, model);
  const [from, to] = extent(model, view.axis);
  if (view.x0 <= extent(before, view.axis)[0]) return {...view, x0: from, x1: to};
  return held({...view, x0: to - (view.x1 - view.x0), x1: to}, model);
}

/** What shows a rectangle with some room around it. @param {View} view @param {Model} model @param {number} rect */
export function around(view, model, rect) {
  const [x0, x1] = spanOf(model, view.axis, rect);
  const room = (x1 - x0) * 0.15;
  const keys = (model.high[rect] - model.low[rect]) * 0.15;
  return held({...view, x0: x0 - room, x1: x1 + room, y0: model.low[rect] - keys, y1: model.high[rect] + keys}, model);
}

/**
 * Where a rectangle begins and ends on an axis; one that is being created lies behind now.
 * @param {Model} model @param {'time' | 'epoch'} axis @param {number} rect @returns {[number, number]}
 */
export function spanOf(model, axis, rect) {
  if (model.flags[rect] & CREATING) return [axis === 'epoch' ? model.epochs.count : model.now, extent(model, axis)[1]];
  if (axis === 'epoch') return [model.first[rect], model.last[rect]];
  return [model.born[rect], Math.min(model.end[rect], model.now)];
}

/**
 * What the address says of a view; null for the whole by time.
 * @param {View} view @param {Model} model @returns {{x: string | null, view: string | null}}
 */
export function toAddress(view, model) {
  const [from, to] = extent(model, view.axis);
  const isWhole = view.x0 <= from && view.x1 >= to && view.y0 <= 0 && view.y1 >= 1;
  const x = (/** @type {number} */ at) => (view.axis === 'time' ? String(Number(at.toFixed(3))) : trimmed(at));
  const keys = view.y0 <= 0 && view.y1 >= 1 ? '' : `,${trimmed(view.y0)}..${trimmed(view.y1)}`;
  return {
    x: view.axis === 'epoch' ? 'epoch' : null,
    view: isWhole ? null : `${x(view.x0)}..${view.follows ? '' : x(view.x1)}${keys}`,
  };
}

// Exactly enough for the same picture: what is too small to be seen still changes how edges are smoothed.
const trimmed = (/** @type {number} */ value) => String(Number(value.toPrecision(12)));
const ADDRESS = /^(-?[\d.]+)\.\.(-?[\d.]*?)(?:,([\d.e-]+?)\.\.([\d.e-]+))?$/;

/**
 * The view that an address names; the whole if it names none that there is.
 * @param {{x?: string | null, view?: string | null}} address @param {Model} model
 * @param {{left: number, top: number, width: number, height: number}} box
 */
export function fromAddress({x, view}, model, box) {
  const all = whole(model, x === 'epoch' ? 'epoch' : 'time', box);
  const found = ADDRESS.exec(view ?? '');
  if (!found) return all;
  const numbers = [found[1], found[2] || String(all.x1), found[3] ?? '0', found[4] ?? '1'].map(Number);
  if (!numbers.every(Number.isFinite) || numbers[0] >= numbers[1] || numbers[2] >= numbers[3]) return all;
  return held({...all, x0: numbers[0], x1: numbers[1], y0: numbers[2], y1: numbers[3]}, model);
}

const STEPS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5,
  216e5, 432e5, 864e5, 1728e5, 6048e5, 12096e5,
];

/**
 * Where a time axis has its marks, about one per 90 pixels, and how far apart they are (ms); midnights are local or
 * UTC.
 * @param {View} view @param {boolean} utc @returns {{step: number, at: number[]}}
 */
export function timeTicks(view, utc) {
  const wanted = ((view.x1 - view.x0) / view.width) * 90;
  const step = STEPS_MS.find((s) => s >= wanted) ?? Math.ceil(wanted / 864e5) * 864e5;
  const shift = utc ? 0 : -new Date(view.x0).getTimezoneOffset() * 60_000;
  const at = [];
  for (let tick = Math.ceil((view.x0 + shift) / step) * step - shift; tick <= view.x1; tick += step) at.push(tick);
  return {step, at};
}

/** The columns that are named below an epoch axis. @param {View} view @param {number} count */
export function columnTicks(view, count) {
  const step = niceStep(((view.x1 - view.x0) / view.width) * 46, 1);
  const at = [];
  for (let column = Math.max(Math.ceil(view.x0 / step), 0) * step; column < Math.min(view.x1, count); column += step)
    at.push(column);
  return at;
}

/**
 * Where the key axis has its marks, about one per 44 pixels; quarters and tenths rather than other parts.
 * @param {View} view
 */
export function keyTicks(view) {
  const wanted = ((view.y1 - view.y0) / view.height) * 44;
  const halves = 2 ** Math.ceil(Math.log2(wanted));
  const step = halves >= 1 / 16 ? Math.min(halves, 0.5) : niceStep(wanted, 0);
  const at = [];
  for (let n = Math.ceil(view.y0 / step - 1e-9); n * step <= view.y1 + step * 1e-9; n++) at.push(n * step);
  return {step, at};
}

function niceStep(/** @type {number} */ wanted, /** @type {number} */ least) {
  const power = 10 ** Math.floor(Math.log10(wanted));
  const found = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= wanted * 0.999) ?? wanted;
  return Math.max(found, least);
}
