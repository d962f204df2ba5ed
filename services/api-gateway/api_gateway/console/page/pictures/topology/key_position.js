/**
 * Where a routing key lies among the keys of a stream, and which container has a segment, as all clients of Pravega
 * compute them and must agree to the bit (`sluice.pravega.event_routing` and `sluice.pravega.routing`).
 *
 * Both hash UTF-16, little endian, with murmur3 of 128 bits for x64, of which they take the first half. Pure functions.
 */

const KEY_SEED = 1741865571n;
const CONTAINER_SEED = 1661405012n;
const MASK = 0xffffffffffffffffn;
const C1 = 0x87c37b91114253d5n;
const C2 = 0x4cf5ad432745937fn;

const times = (/** @type {bigint} */ a, /** @type {bigint} */ b) => (a * b) & MASK;
const plus = (/** @type {bigint} */ a, /** @type {bigint} */ b) => (a + b) & MASK;
const turned = (/** @type {bigint} */ a, /** @type {bigint} */ by) => ((a << by) | (a >> (64n - by))) & MASK;

/** @param {bigint} k */
function mixed(k) {
  let h = k ^ (k >> 33n);
  h = times(h, 0xff51afd7ed558ccdn);
  h ^= h >> 33n;
  h = times(h, 0xc4ceb9fe1a85ec53n);
  return h ^ (h >> 33n);
}

/**
 * The first 64 bits, unsigned, of the murmur3 hash (x64, 128 bits) of a text in UTF-16, little endian.
 * @param {string} text @param {bigint} seed @returns {bigint}
 */
export function murmur(text, seed) {
  const bytes = new DataView(new ArrayBuffer(Math.ceil(text.length / 8) * 16));
  for (let i = 0; i < text.length; i++) bytes.setUint16(i * 2, text.charCodeAt(i), true);
  const length = text.length * 2;
  const whole = length - (length % 16);
  let h1 = seed;
  let h2 = seed;
  for (let at = 0; at < whole; at += 16) {
    h1 ^= times(turned(times(bytes.getBigUint64(at, true), C1), 31n), C2);
    h1 = plus(times(plus(turned(h1, 27n), h2), 5n), 0x52dce729n);
    h2 ^= times(turned(times(bytes.getBigUint64(at + 8, true), C2), 33n), C1);
    h2 = plus(times(plus(turned(h2, 31n), h1), 5n), 0x38495ab5n);
  }
  if (length > whole) {
    // What is behind the text in the last block is zero, and zero changes nothing.
    h2 ^= times(turned(times(bytes.getBigUint64(whole + 8, true), C2), 33n), C1);
    h1 ^= times(turned(times(bytes.getBigUint64(whole, true), C1), 31n), C2);
  }
  h1 ^= BigInt(length);
  h2 ^= BigInt(length);
  h1 = plus(h1, h2);
  h2 = plus(h2, h1);
  return plus(mixed(h1), mixed(h2));
}

/**
 * Where a routing key lies in the space of keys, from 0 to below 1: the upper 52 bits of its hash as a fraction.
 * @param {string} key
 */
export const keyPosition = (key) => Number(murmur(key, KEY_SEED) >> 12n) / 2 ** 52;

/**
 * The place in `highs`, the upper ends of ranges in ascending order, of the range a position belongs to: the first one
 * that ends at or behind it, as clients choose.
 * @param {number} position @param {ArrayLike<number>} highs
 */
export function rangeAt(position, highs) {
  let low = 0;
  let high = highs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (highs[middle] < position) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The container, 0 to `containers` - 1, of the segment with a number, whatever its epoch.
 * @param {string} scope @param {string} stream @param {number} number @param {number} containers
 */
export function containerOf(scope, stream, number, containers) {
  let state = murmur(`${scope}/${stream}/${number}`, CONTAINER_SEED);
  let candidate = 0;
  for (;;) {
    state = (2862933555777941757n * state + 1n) & MASK;
    const following = Math.trunc((candidate + 1) / ((Number(state >> 33n) + 1) / 2 ** 31));
    if (following >= containers) return candidate;
    candidate = following;
  }
}
