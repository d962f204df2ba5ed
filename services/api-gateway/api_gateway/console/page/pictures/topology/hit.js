/**
 * What lies at a point of the picture. A look at every rectangle takes 0.1 ms for 20,000, so there is no index to keep.
 * Pure functions.
 */

import {keyPosition, rangeAt} from './key_position.js';
import {CREATING, active} from './model.js';
import {FOUND_WIDTH, fromX, fromY, toX, toY} from './view.js';
/** @import {Model, View} from '../types.d.ts' */

/**
 * The rectangle that has a place of the axis and a key; -1 if none has.
 * @param {Model} model @param {'time' | 'epoch'} axis @param {number} x epoch ms or column @param {number} key
 */
export function rectAt(model, axis, x, key) {
  const from = axis === 'time' ? model.born : model.first;
  const to = axis === 'time' ? model.end : model.last;
  const {low, high, flags, count} = model;
  for (let rect = count - 1; rect >= 0; rect--) {
    if (flags[rect] & CREATING) continue;
    if (key >= low[rect] && (key < high[rect] || (key >= 1 && high[rect] >= 1)) && x >= from[rect] && x < to[rect])
      return rect;
  }
  return -1;
}

/**
 * The rectangle at a pixel, -1 if there is none; one that is narrower than two pixels is found beside it, too.
 * @param {Model} model @param {View} view @param {number} px @param {number} py
 */
export function rectAtPixel(model, view, px, py) {
  const x = fromX(view, px);
  const key = Math.min(Math.max(fromY(view, py), 0), 1);
  const end = view.axis === 'time' ? model.now : model.epochs.count;
  if (x > end && model.creating) {
    for (let rect = 0; rect < model.count; rect++)
      if (model.flags[rect] & CREATING && model.low[rect] <= key && key < model.high[rect]) return rect;
  }
  if (x > end && toX(view, end) < px - 6) return -1;
  if (view.axis === 'time') {
    const found = foundAt(model, view, px, key);
    if (found >= 0) return found;
  }
  return rectAt(model, view.axis, Math.min(x, view.axis === 'time' ? end : end - 1e-9), key);
}

/**
 * What a restore found is drawn wider than it was. @param {Model} model @param {View} view @param {number} px
 * @param {number} key
 */
function foundAt({count, found, low, high, born}, view, px, key) {
  for (let rect = 0; rect < count; rect++) {
    if (!found[rect] || key < low[rect] || key >= high[rect]) continue;
    const left = Math.min(toX(view, born[rect]), toX(view, born[rect] + found[rect]) - found[rect] * FOUND_WIDTH);
    if (px >= left && px < left + FOUND_WIDTH) return rect;
  }
  return -1;
}

/**
 * The dividing line between two segments that are written to, near a pixel close to now; null if there is none.
 * @param {Model} model @param {View} view @param {number} px @param {number} py
 * @returns {{below: number, above: number} | null}
 */
export function dividerAt(model, view, px, py) {
  const edge = toX(view, view.axis === 'time' ? model.now : model.epochs.count);
  if (px < edge - 28 || px > edge + 12) return null;
  const living = active(model);
  for (let i = 1; i < living.length; i++) {
    const [below, above] = [living[i - 1], living[i]];
    if (model.high[below] !== model.low[above]) continue;
    if (Math.abs(toY(view, model.low[above]) - py) <= 5) return {below, above};
  }
  return null;
}

/**
 * Where a routing key goes: its position, the rectangle that is written to, -1 if none is, and all that had it.
 * @param {Model} model @param {string} key @returns {{position: number, rect: number, rects: number[]}}
 */
export function whereGoes(model, key) {
  const position = keyPosition(key);
  const living = model.sealed ? [] : active(model);
  const rect =
    living[
      rangeAt(
        position,
        living.map((one) => model.high[one]),
      )
    ] ?? -1;
  const rects = [];
  for (let one = 0; one < model.count; one++)
    if (model.low[one] <= position && position < model.high[one]) rects.push(one);
  return {position, rect, rects};
}
