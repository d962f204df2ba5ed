import assert from 'node:assert/strict';
import {test} from 'node:test';
import {joined, nextSpan} from 'page/pages/stream/rate-history.js';
/** @import {KnownRates} from 'page/pages/types.d.ts' */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** @param {number} from @param {number} bucketMs @param {number} searchedTo @param {Record<string, number[]>} rates */
function answer(from, bucketMs, searchedTo, rates) {
  const segments = Object.entries(rates).map(([id, bytesPerS]) => ({id: Number(id), bytesPerS}));
  return {from, bucketMs, segments, searchedTo, complete: false};
}

test('answers about past rates become one history', () => {
  const answers = [
    answer(0, MINUTE, 150_000, {1: [1, 2, 3, -1]}),
    // What is not known now was known before; another segment has been written to.
    answer(2 * MINUTE, MINUTE, 240_000, {1: [-1, 4], 2: [5, 6]}),
    // So many segments that the gateway has made the buckets longer.
    answer(4 * MINUTE, 2 * MINUTE, 360_000, {2: [7]}),
  ];
  const none = /** @type {KnownRates | null} */ (null);
  const known = /** @type {KnownRates} */ (answers.reduce((before, one) => joined(before, one, DAY), none));
  assert.deepEqual(Object.fromEntries(known.segments), {1: [1, 2, 3, 4], 2: [-1, -1, 5, 6, 7, 7]});
  assert.deepEqual([known.from, known.bucketMs, known.searchedTo], [0, MINUTE, 6 * MINUTE]);
  const next = (/** @type {number} */ asked, /** @type {number} */ searchedTo, complete = false) =>
    nextSpan({...known, asked, searchedTo, complete}, 0, DAY).from;
  assert.equal(next(0, 90 * MINUTE + 1), 90 * MINUTE, 'on from there');
  assert.equal(next(HOUR, HOUR), 61 * MINUTE, 'past a bucket that one call could not read');
  assert.equal(next(HOUR, 2 * HOUR, true), 110 * MINUTE, 'what may have changed since the last sample');
});
