/**
 * Where a cut goes through the picture: for each of its segments a step from its low to its high key, at the time when
 * the byte at the cut's offset was written.
 *
 * Exact are the beginning and the end of a segment and places between two samples; all else is in proportion to bytes,
 * and says so. Pure functions.
 */

import {columnAt} from './model.js';
/** @import {Cut, CutStep, Lengths, Model} from '../types.d.ts' */

/** @type {Lengths} */
export const UNKNOWN = {length: new Map(), samples: new Map()};

/**
 * The steps of a cut in the order of keys, and the ids in it that the stream does not have.
 * @param {Model} model @param {Cut} cut @param {Lengths} lengths @returns {{steps: CutStep[], strange: string[]}}
 */
export function stairs(model, cut, lengths = UNKNOWN) {
  const steps = [];
  const strange = [];
  for (const [id, offset] of cut) {
    const place = model.index.get(id);
    if (place === undefined) strange.push(id);
    else steps.push(stepOf(model, place, id, Number(offset), lengths));
  }
  return {steps: steps.sort((a, b) => a.low - b.low || a.at - b.at), strange};
}

/**
 * @param {Model} model @param {number} place @param {string} id @param {number} offset @param {Lengths} lengths
 * @returns {CutStep}
 */
function stepOf({known, now}, place, id, offset, lengths) {
  const [low, high, born] = [known.low[place], known.high[place], known.born[place]];
  const end = Math.min(known.end[place], now);
  const step = (/** @type {number} */ at, /** @type {boolean} */ exact) => ({low, high, at, exact, id});
  if (offset <= 0) return step(born, true);
  const length =
    known.end[place] < Infinity && known.bytes[place] >= 0
      ? known.bytes[place]
      : (lengths.length.get(id) ?? known.bytes[place]);
  if (length >= 0 && offset >= length) return step(end, true);
  const sampled = lengths.samples.get(id);
  const between = sampled && betweenSamples(sampled, offset);
  if (between !== null && between !== undefined) return step(Math.min(Math.max(between, born), end), true);
  // Somewhere between: the beginning claims least.
  if (length <= 0) return step(born, false);
  return step(born + (end - born) * (offset / length), false);
}

/**
 * When a segment had so many bytes, between two samples; null if it had them before the first or behind the last.
 * @param {{at: number[], bytes: number[]}} samples @param {number} offset
 */
function betweenSamples({at, bytes}, offset) {
  const next = bytes.findIndex((b) => b >= offset);
  if (next <= 0) return next === 0 && bytes[0] === offset ? at[0] : null;
  const share = (offset - bytes[next - 1]) / (bytes[next] - bytes[next - 1]);
  return at[next - 1] + share * (at[next] - at[next - 1]);
}

/** A step's place on an axis. @param {Model} model @param {'time' | 'epoch'} axis @param {CutStep} step */
export const stepX = (model, axis, step) => (axis === 'time' ? step.at : columnAt(model, step.at));

/**
 * A cut as it is pasted: JSON as in the interfaces, `0=1024, 4.#epoch.1=20`, or pairs with colons. Throws an Error
 * that says what is wrong with it.
 * @param {string} text @returns {Cut}
 */
export function cutIn(text) {
  const plain = text
    .trim()
    .replace(/^\{|\}$/g, '')
    .replace(/\s*[:=]\s*/g, '=');
  const parts = plain.split(/[\s,;]+/).filter(Boolean);
  if (!parts.length) throw new Error('A cut has at least one segment, as in 0=1024, 1=0');
  return new Map(parts.map(pairIn));
}

const PAIR = /^"?(?:.*\/)?(\d+)(?:\.#epoch\.(\d+))?"?=(-?\d+)$/;

function pairIn(/** @type {string} */ part) {
  const found = PAIR.exec(part);
  if (!found) throw new Error(`${part.slice(0, 40)} is no segment with an offset, such as 4.#epoch.1=1024`);
  const id = found[2] === undefined ? found[1] : String((BigInt(found[2]) << 32n) | BigInt(found[1]));
  const offset = BigInt(found[3]);
  return /** @type {[string, number | bigint]} */ ([
    id,
    Number.isSafeInteger(Number(offset)) ? Number(offset) : offset,
  ]);
}

/**
 * Whether a cut covers all keys once, as one has to; else what is wrong, in words.
 * @param {Model} model @param {Cut} cut @returns {string | null}
 */
export function cutProblem(model, cut) {
  const {steps, strange} = stairs(model, cut);
  if (strange.length) return `The stream has no segment ${strange.slice(0, 3).join(', ')}.`;
  let reached = 0;
  for (const {low, high} of steps) {
    if (low > reached) return `No segment of the cut has the keys from ${reached} to ${low}.`;
    reached = Math.max(reached, high);
  }
  return reached < 1 ? `No segment of the cut has the keys from ${reached} to 1.` : null;
}
