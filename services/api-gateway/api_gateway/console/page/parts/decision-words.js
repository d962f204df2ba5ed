/** What decisions on scaling and retention are called, and what their codes mean. Pure. */
/** @import {Code} from './types.d.ts' */

/** Of a decision that changes the stream. @param {string} means @returns {Code} */
const changes = (means) => ({acts: true, means});

/** Of one that does not. @param {string} means @returns {Code} */
const rests = (means) => ({acts: false, means});

/** @type {Record<string, Code>} */
export const CODES = {
  fixed: rests('The stream has a fixed number of segments: nothing scales it.'),
  steady: rests('No segment is above its target, or below half of it.'),
  'cooling-down': rests('The last scale was a moment ago.'),
  'at-maximum': rests('Segments are hot, but cannot be split any further.'),
  'at-minimum': rests('Segments are cold, but the policy keeps so many.'),
  'no-cold-neighbour': rests('Segments are cold, but none beside them is.'),
  split: changes('Hot segments were replaced by several each.'),
  merge: changes('Cold neighbours were replaced by one.'),
  'split-and-merge': changes('Hot segments were split and cold neighbours merged at once.'),
  'no-policy': rests('The stream has no retention policy: nothing truncates it.'),
  'internal-stream': rests('Streams of Sluice itself are not truncated by a policy.'),
  'no-cut': rests('No sample of where the stream ended is old enough, or none is new enough to go by.'),
  'within-minimum': rests('All that is held must be kept.'),
  'held-by-readers': rests('A reader group has yet to read what could go.'),
  'at-head': rests('The stream begins there already.'),
  requested: rests('A truncation is under way.'),
  paused: rests('The last truncation was a moment ago.'),
  'beyond-minimum': changes('Truncated: what is older or more than the minimum went.'),
  consumed: changes('Truncated: every reader group had read what went.'),
  'beyond-maximum': changes('Truncated: more than the maximum was held, and went, read or not.'),
};

/** @type {Record<string, string>} */
export const KINDS = {scale: 'scaling', retention: 'retention'};

/** A code as words. @param {string} code */
export function codeWords(code) {
  return code.replaceAll('-', ' ');
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
