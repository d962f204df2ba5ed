/** What decisions on scaling and retention are called, and what their codes mean. Pure. */
/** @import {Code} from './types.d.ts' */

/** @type {Record<string, Code>} */
export const CODES = {
  fixed: {words: 'fixed', acts: false, means: 'The stream has a fixed number of segments: nothing scales it.'},
  steady: {words: 'steady', acts: false, means: 'No segment is above its target, or below half of it.'},
  'cooling-down': {words: 'cooling down', acts: false, means: 'The last scale was a moment ago.'},
  'at-maximum': {words: 'at maximum', acts: false, means: 'Segments are hot, but cannot be split any further.'},
  'at-minimum': {words: 'at minimum', acts: false, means: 'Segments are cold, but the policy keeps so many.'},
  'no-cold-neighbour': {words: 'no cold neighbour', acts: false, means: 'Segments are cold, but none beside them is.'},
  split: {words: 'split', acts: true, means: 'Hot segments were replaced by several each.'},
  merge: {words: 'merge', acts: true, means: 'Cold neighbours were replaced by one.'},
  'split-and-merge': {
    words: 'split and merge',
    acts: true,
    means: 'Hot segments were split and cold neighbours merged at once.',
  },
  'no-policy': {words: 'no policy', acts: false, means: 'The stream has no retention policy: nothing truncates it.'},
  'internal-stream': {
    words: 'internal stream',
    acts: false,
    means: 'Streams of Sluice itself are not truncated by a policy.',
  },
  'no-cut': {
    words: 'no cut yet',
    acts: false,
    means: 'No sample of where the stream ended is old enough, or none is new enough to go by.',
  },
  'within-minimum': {words: 'within minimum', acts: false, means: 'All that is held must be kept.'},
  'held-by-readers': {words: 'held by readers', acts: false, means: 'A reader group has yet to read what could go.'},
  'at-head': {words: 'at head', acts: false, means: 'The stream begins there already.'},
  requested: {words: 'requested', acts: false, means: 'A truncation is under way.'},
  paused: {words: 'paused', acts: false, means: 'The last truncation was a moment ago.'},
  'beyond-minimum': {
    words: 'beyond minimum',
    acts: true,
    means: 'Truncated: what is older or more than the minimum went.',
  },
  consumed: {words: 'consumed', acts: true, means: 'Truncated: every reader group had read what went.'},
  'beyond-maximum': {
    words: 'beyond maximum',
    acts: true,
    means: 'Truncated: more than the maximum was held, and went, read or not.',
  },
};

/** @type {Record<string, string>} */
export const KINDS = {scale: 'scaling', retention: 'retention'};

/** A code as words; one that this page does not know as it is. @param {string} code */
export function codeWords(code) {
  return CODES[code]?.words ?? code.replaceAll('-', ' ');
}

/** Whether a decision of that code changes the stream. @param {string} code */
export function acts(code) {
  return CODES[code]?.acts ?? false;
}

/** "3 splits, 1 merge" of what acts; "nothing" if nothing does. @param {{code: string}[]} decided */
export function tally(decided) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const {code} of decided) {
    if (acts(code)) counts.set(code, (counts.get(code) ?? 0) + 1);
  }
  if (counts.size === 0) return 'nothing';
  return [...counts].map(([code, times]) => `${times} × ${codeWords(code)}`).join(', ');
}
