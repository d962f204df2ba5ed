/**
 * Past rates of a stream's segments, for its picture. Each call of the gateway reads a bounded number of records and
 * says how far it came; the next one goes on from there. Once the present is reached, only what is new is asked for.
 */
import {useEffect} from '../../core/html.js';
import {api, under} from '../../core/api.js';
import {useResource} from '../../core/store.js';
import {now} from '../../core/time.js';
/** @import {History} from '../../pictures/types.d.ts' */
/** @import {KnownRates} from '../types.d.ts' */
/** @import {RateHistoryModel} from 'api' */

const HISTORY_MS = 7 * 86_400_000;
const BUCKETS = 400;
/** With more than that everything is read anew, in longer ones. */
const MAX_BUCKETS = 2 * BUCKETS;
const LEAST_BUCKET_MS = 60_000;
const EVERY_MS = 60_000;
/** Between two calls, as long as the present is not reached. */
const NEXT_MS = 500;
/** A rate is known between two samples that are no further apart. */
const MAX_GAP_MS = 600_000;

/**
 * Past rates of a stream as far as its lengths were sampled, at most 7 days of it when it is opened.
 * @param {string} scope @param {string} stream @param {number} since when the stream began
 * @returns {History | null}
 */
export function useHistory(scope, stream, since) {
  const path = since ? `${under`scopes/${scope}/streams/${stream}`}/rates/history` : null;
  // What is known of a stream is not of another one that has its name later.
  const found = useResource(path, {query: {since}, every: EVERY_MS, read: reading(path ?? '', since)});
  useEffect(() => {
    if (!found.data || found.data.complete) return undefined;
    const timer = setTimeout(found.reload, NEXT_MS);
    return () => clearTimeout(timer);
  }, [found.data]);
  return found.data ?? null;
}

/** What reads on with each call, and gives all that is known then. @param {string} path @param {number} since */
function reading(path, since) {
  let known = /** @type {KnownRates | null} */ (null);
  return async (/** @type {AbortSignal} */ signal) => {
    const present = now();
    if (known && present - known.from > MAX_BUCKETS * known.bucketMs) known = null;
    known = joined(known, await api.get(path, {query: nextSpan(known, since, present), signal}), present);
    return known;
  };
}

/**
 * What is asked for next. Pure.
 * @param {KnownRates | null} known @param {number} since when the stream began @param {number} present epoch ms
 */
export function nextSpan(known, since, present) {
  if (known === null) {
    const from = Math.max(since, present - HISTORY_MS);
    const bucket = Math.max(1, Math.ceil((present - from) / BUCKETS / LEAST_BUCKET_MS)) * LEAST_BUCKET_MS;
    return {from: Math.floor(from / bucket) * bucket, bucket};
  }
  const {from, bucketMs, asked, searchedTo, complete} = known;
  const begin = (/** @type {number} */ at) => from + Math.floor((at - from) / bucketMs) * bucketMs;
  if (complete) return {from: Math.max(from, begin(searchedTo - MAX_GAP_MS)), bucket: bucketMs};
  // A bucket that one call cannot read to its end stays as it is.
  return {from: Math.max(begin(searchedTo), asked + bucketMs), bucket: bucketMs};
}

/**
 * What is known, with an answer of the gateway. Its buckets may be longer: each of ours has the rate of the one that it
 * lies in. Pure.
 * @param {KnownRates | null} known @param {RateHistoryModel} answer
 * @param {number} present when it was asked for, epoch ms @returns {KnownRates}
 */
export function joined(known, answer, present) {
  const {from, bucketMs, segments, searchedTo} = answer;
  // Behind the last bucket there is no other one to go on with.
  const complete = answer.complete || from + (known ?? answer).bucketMs >= present;
  const rows = new Map(segments.map((one) => [String(one.id), one.bytesPerS]));
  if (known === null) return {from, bucketMs, segments: rows, asked: from, searchedTo, complete};
  const all = new Map(known.segments);
  for (const [id, rates] of rows) {
    const before = known.segments.get(id) ?? [];
    const count = Math.ceil((from + rates.length * bucketMs - known.from) / known.bucketMs);
    all.set(
      id,
      Array.from({length: Math.max(count, before.length)}, (_, index) => {
        const rate = rates[Math.floor((known.from + index * known.bucketMs - from) / bucketMs)] ?? -1;
        return rate >= 0 ? rate : (before[index] ?? -1);
      }),
    );
  }
  return {...known, segments: all, asked: from, searchedTo, complete};
}
