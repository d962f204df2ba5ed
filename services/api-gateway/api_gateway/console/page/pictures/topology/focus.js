/**
 * Where the arrows lead in the picture: left and right through time at a key, up and down through keys at a time. Pure.
 */

import {rectAt} from './hit.js';
import {active, kin} from './model.js';
import {spanOf} from './view.js';
/** @import {Focus, Model} from '../types.d.ts' */

/** @param {Model} model @param {number} rect */
const middle = (model, rect) => (model.low[rect] + model.high[rect]) / 2;

/**
 * The focus on a rectangle, at the place nearest to `x` and `key` that it has.
 * @param {Model} model @param {'time' | 'epoch'} axis @param {number} rect @param {number} [x] @param {number} [key]
 * @returns {Focus}
 */
export function focusOn(model, axis, rect, x, key) {
  const [from, to] = spanOf(model, axis, rect);
  const inside = to - (to - from) * 1e-6;
  const keeps = key !== undefined && key >= model.low[rect] && key < model.high[rect];
  return {
    rect,
    x: Math.min(Math.max(x ?? (from + to) / 2, from), Math.max(inside, from)),
    key: keeps ? key : middle(model, rect),
  };
}

/**
 * Where the focus begins: the lowest keys that are written to.
 * @param {Model} model @param {'time' | 'epoch'} axis @returns {Focus | null}
 */
export function firstFocus(model, axis) {
  const living = active(model);
  if (living.length) return focusOn(model, axis, living[0], Infinity);
  return model.count ? focusOn(model, axis, model.count - 1, Infinity) : null;
}

/**
 * The focus after a key of the keyboard; the same one where nothing lies in that direction, null for another key.
 * @param {Model} model @param {'time' | 'epoch'} axis @param {Focus} focus
 * @param {string} key as `KeyboardEvent.key` names it @returns {Focus | null}
 */
export function stepped(model, axis, focus, key) {
  const {rect, x} = focus;
  const at = (/** @type {number[]} */ rects) =>
    rects.find((r) => model.low[r] <= focus.key && focus.key < model.high[r]) ?? rects[0];
  const onto = (/** @type {number | undefined} */ found, /** @type {number} */ near, /** @type {number} */ where) =>
    found === undefined || found < 0 ? focus : focusOn(model, axis, found, near, where);
  if (key === 'ArrowRight') return onto(at(kin(model, rect).after), -Infinity, focus.key);
  if (key === 'ArrowLeft') return onto(at(kin(model, rect).before), Infinity, focus.key);
  if (key === 'ArrowUp') return onto(model.high[rect] < 1 ? rectAt(model, axis, x, model.high[rect]) : -1, x, NaN);
  if (key === 'ArrowDown') return onto(model.low[rect] > 0 ? below(model, axis, x, model.low[rect]) : -1, x, NaN);
  if (key === 'Home')
    return onto(rectAt(model, axis, axis === 'time' ? model.since : 0, focus.key), -Infinity, focus.key);
  if (key === 'End')
    return onto(
      at(active(model).filter((r) => model.low[r] <= focus.key && focus.key < model.high[r])),
      Infinity,
      focus.key,
    );
  return null;
}

/**
 * The rectangle whose keys end where others begin.
 * @param {Model} model @param {'time' | 'epoch'} axis @param {number} x @param {number} low
 */
function below(model, axis, x, low) {
  for (let rect = 0; rect < model.count; rect++) {
    if (model.high[rect] !== low) continue;
    const [from, to] = axis === 'time' ? [model.born[rect], model.end[rect]] : [model.first[rect], model.last[rect]];
    if (x >= from && x < to) return rect;
  }
  return rectAt(model, axis, x, low - Number.EPSILON);
}
