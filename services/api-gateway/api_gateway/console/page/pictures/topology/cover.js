/**
 * Which scales by hand are right, before the gateway is asked: what comes has to cover exactly the keys of what goes.
 *
 * Same rule as `sluice.domain.stream.scale`: adjacent ranges joined, bounds equal to the bit. Pure functions.
 */
/** @import {Range} from '../types.d.ts' */

/** @param {Iterable<Range>} ranges @returns {Range[]} */
export function blocks(ranges) {
  /** @type {Range[]} */
  const joined = [];
  for (const [low, high] of [...ranges].sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
    const last = joined[joined.length - 1];
    if (last && last[1] === low) last[1] = high;
    else joined.push([low, high]);
  }
  return joined;
}

/**
 * Why ranges cannot replace others, in words; null if they can.
 * @param {Range[]} gone @param {Range[]} come @returns {string | null}
 */
export function uncovered(gone, come) {
  if (!gone.length || !come.length) return 'A scale needs segments that go and ranges that come.';
  const turned = come.find(([low, high]) => !(low < high));
  if (turned) return `A range must begin before it ends: ${shown(turned)} does not.`;
  const have = blocks(gone);
  const want = blocks(come);
  if (have.length === want.length && have.every(([low, high], i) => low === want[i][0] && high === want[i][1]))
    return null;
  const sorted = [...come].sort((a, b) => a[0] - b[0]);
  for (let i = 1; i < sorted.length; i++) {
    if (sorted[i][0] < sorted[i - 1][1]) return `Two ranges overlap: ${shown(sorted[i - 1])} and ${shown(sorted[i])}.`;
  }
  const missing = have.flatMap((range) => without(range, want));
  if (missing.length) return `These keys would belong to no segment: ${missing.map(shown).join(', ')}.`;
  return `These keys belong to segments that stay: ${want
    .flatMap((range) => without(range, have))
    .map(shown)
    .join(', ')}.`;
}

/** @param {Range} range */
const shown = ([low, high]) => `${low} to ${high}`;

/** The parts of a range that no other covers. @param {Range} range @param {Range[]} others @returns {Range[]} */
function without([low, high], others) {
  /** @type {Range[]} */
  const left = [];
  let at = low;
  for (const [from, to] of others) {
    if (to <= at || from >= high) continue;
    if (from > at) left.push([at, from]);
    at = Math.max(at, to);
  }
  if (at < high) left.push([at, high]);
  return left;
}

/** The ranges of one range divided at keys. @param {Range} range @param {number[]} at @returns {Range[]} */
export function divided([low, high], at) {
  const bounds = [low, ...[...at].sort((a, b) => a - b), high];
  return bounds.slice(1).map((bound, i) => [bounds[i], bound]);
}

/** The ranges of one range divided into equal parts. @param {Range} range @param {number} parts @returns {Range[]} */
export function inParts([low, high], parts) {
  return divided(
    [low, high],
    Array.from({length: parts - 1}, (_, i) => low + ((high - low) * (i + 1)) / parts),
  );
}

/**
 * Keys as somebody types them, `0.25, 0.5`; null if one of them is no number.
 * @param {string} text @returns {number[] | null}
 */
export function keysIn(text) {
  const parts = text.split(/[\s,;]+/).filter(Boolean);
  const keys = parts.map(Number);
  return parts.length && keys.every(Number.isFinite) ? keys : null;
}
