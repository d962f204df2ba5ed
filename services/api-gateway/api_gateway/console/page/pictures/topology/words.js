/** What the picture says in words: of a segment, for who points at it, hears it or reads the table. Pure functions. */

import {bytes, bytesPerS, duration, perS, time} from '../../core/format.js';
import {CREATING, DUPLICATE, MERGED, TRUNCATED, nameOf} from './model.js';
/** @import {Model, Rate} from '../types.d.ts' */

export const clock = time;
export const age = duration;

/** "scale-stream" as "scale stream". @param {string} code */
export const words = (code) => code.replaceAll(/[-_]/g, ' ').toLowerCase();

/** A key with as many digits as tell it from its neighbours, at most 12. @param {number} key */
export const keyText = (key) => String(Number(key.toFixed(12)));

/** @param {Model} model @param {number} rect */
export const rangeText = (model, rect) => `${keyText(model.low[rect])} to ${keyText(model.high[rect])}`;

/** What is special about a segment, in words. @param {Model} model @param {number} rect */
export function stateText(model, rect) {
  const flags = model.flags[rect];
  const said = [
    flags & CREATING
      ? 'being created'
      : model.end[rect] < Infinity
        ? 'sealed'
        : model.sealed
          ? 'sealed with the stream'
          : 'active',
    flags & TRUNCATED ? 'truncated' : '',
    flags & DUPLICATE ? 'duplicate of a rolling commit' : '',
    flags & MERGED ? 'stands for several, sampled' : '',
    model.found[rect] ? 'found by the restore, which does not know when it was there' : '',
  ];
  return said.filter(Boolean).join(', ');
}

/**
 * The lines of a segment's card: what, value.
 * @param {Model} model @param {number} rect
 * @param {{size: number, rate?: Rate, container?: number, store?: string}} more size in bytes, -1 unknown
 * @returns {[string, string][]}
 */
export function facts(model, rect, {size, rate, container, store}) {
  const ended = model.end[rect] < Infinity;
  const age = duration((ended ? model.end[rect] : model.now) - model.born[rect]);
  /** @type {[string, string][]} */
  const lines = [
    ['Keys', rangeText(model, rect)],
    ['State', stateText(model, rect)],
    ['Born', `${time(model.born[rect])}, epoch ${model.bornEpoch[rect]}`],
    ended ? ['Sealed', `${time(model.end[rect])}, epoch ${model.endEpoch[rect]}, after ${age}`] : ['For', age],
    ['Bytes', size < 0 ? 'not known' : bytes(size)],
  ];
  if (ended && size >= 0 && !model.found[rect])
    lines.push(['Mean', bytesPerS((size * 1000) / Math.max(model.end[rect] - model.born[rect], 1))]);
  if (rate && rate.bytesPerS >= 0)
    lines.push(['Rate', `${bytesPerS(rate.bytesPerS)}, ${perS(rate.eventsPerS)} events`]);
  if (container !== undefined) lines.push(['Container', String(container)]);
  if (store) lines.push(['Store', store]);
  return lines;
}

/**
 * A segment in one sentence, for who hears it.
 * @param {Model} model @param {number} rect @param {{before: number[], after: number[]}} kin
 */
export function sentence(model, rect, {before, after}) {
  const named = (/** @type {number[]} */ rects) =>
    rects
      .slice(0, 3)
      .map((r) => nameOf(model, r))
      .join(', ') + (rects.length > 3 ? ` and ${rects.length - 3} more` : '');
  return [
    `Segment ${nameOf(model, rect)}, keys ${rangeText(model, rect)}, ${stateText(model, rect)}`,
    `since ${time(model.born[rect])}${model.end[rect] < Infinity ? ` until ${time(model.end[rect])}` : ''}`,
    before.length ? `after ${named(before)}` : '',
    after.length ? `before ${named(after)}` : '',
  ]
    .filter(Boolean)
    .join('; ');
}
