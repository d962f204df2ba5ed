/**
 * Ticks of a time axis and their words, and spans of time as a picture shows them. Pure: no document, no clock.
 *
 * Times are epoch ms, spans ms. An axis shows local time or UTC, or the time since something began.
 */
/** @import {Clock} from './types.d.ts' */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Round spans between ticks, ms. */
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((one) => one * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((one) => one * MINUTE),
  ...[1, 2, 3, 6, 12].map((one) => one * HOUR),
  ...[1, 2, 7, 14, 30, 90, 365].map((one) => one * DAY),
];

/**
 * The times of at most `most` ticks between two times, at round times of the clock.
 * @param {number} from @param {number} to @param {number} most at least 1
 * @param {Clock} clock `since`: round spans after `origin` @param {number} [origin]
 * @returns {{step: number, times: number[]}}
 */
export function ticks(from, to, most, clock, origin = 0) {
  const span = Math.max(to - from, 1);
  const step = STEPS.find((one) => span / one <= most) ?? Math.ceil(span / most / DAY) * DAY;
  const zero = clock === 'since' ? origin : clock === 'utc' ? 0 : zoneMs(from);
  const times = [];
  for (let at = zero + Math.ceil((from - zero) / step) * step; at <= to; at += step) times.push(at);
  if (clock !== 'local' || step <= HOUR) return {step, times};
  // Within the span a local clock may be put forward or back: midnight is then an hour earlier or later.
  return {step, times: times.map((at) => at + zoneMs(at) - zero).filter((at) => at <= to)};
}

/** What is to be added to local time for UTC. @param {number} at */
function zoneMs(at) {
  return new Date(at).getTimezoneOffset() * MINUTE;
}

/**
 * What stands at a tick: no more than distinguishes it from its neighbours.
 * @param {number} at @param {number} step @param {Clock} clock @param {number} [origin] @returns {string}
 */
export function tickText(at, step, clock, origin = 0) {
  if (clock === 'since') return at === origin ? '0' : `+${spanText(at - origin)}`;
  const one = parts(at, clock);
  const midnight = one.hour === 0 && one.minute === 0 && one.second === 0 && one.ms === 0;
  if (step >= DAY || (midnight && step >= MINUTE)) return `${one.day} ${one.month}`;
  const minutes = `${two(one.hour)}:${two(one.minute)}`;
  if (step >= MINUTE) return minutes;
  const seconds = `${minutes}:${two(one.second)}`;
  return step >= SECOND ? seconds : `${seconds}.${String(one.ms).padStart(3, '0')}`;
}

/**
 * A time to the millisecond, with its day: `23 Nov 12:03:11.250`, UTC with a Z behind it.
 * @param {number} at @param {Clock} clock @returns {string}
 */
export function exactText(at, clock) {
  const one = parts(at, clock);
  const time = `${two(one.hour)}:${two(one.minute)}:${two(one.second)}.${String(one.ms).padStart(3, '0')}`;
  return `${one.day} ${one.month} ${time}${clock === 'utc' ? 'Z' : ''}`;
}

/**
 * A span in at most two units: `850 ms`, `1.25 s`, `4 min 5 s`, `3 h 20 min`, `2 d`.
 * @param {number} ms @returns {string}
 */
export function spanText(ms) {
  const sign = ms < 0 ? '−' : '';
  const left = Math.abs(ms);
  if (left < SECOND) return `${sign}${Math.round(left)} ms`;
  if (left < MINUTE) return `${sign}${Number((left / SECOND).toFixed(left < 10 * SECOND ? 2 : 1))} s`;
  const [unit, name, smaller, lesser] =
    left < HOUR ? [MINUTE, 'min', SECOND, 's'] : left < DAY ? [HOUR, 'h', MINUTE, 'min'] : [DAY, 'd', HOUR, 'h'];
  const whole = Math.floor(left / unit);
  const rest = Math.floor((left - whole * unit) / smaller);
  return rest === 0 ? `${sign}${whole} ${name}` : `${sign}${whole} ${name} ${rest} ${lesser}`;
}

/** Round numbers for an axis from 0 to at least `most`. @param {number} most @returns {number[]} */
export function levels(most) {
  const wanted = Math.max(most, 1) / 3;
  const size = 10 ** Math.floor(Math.log10(wanted));
  const step = Math.max([1, 2, 5, 10].map((one) => one * size).find((one) => one >= wanted) ?? size * 10, 1);
  const found = [0];
  while (found[found.length - 1] < most) found.push(found.length * step);
  return found;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** @param {number} number */
const two = (number) => String(number).padStart(2, '0');

/** @param {number} at @param {Clock} clock */
function parts(at, clock) {
  const date = new Date(at);
  const utc = clock === 'utc';
  return {
    day: utc ? date.getUTCDate() : date.getDate(),
    month: MONTHS[utc ? date.getUTCMonth() : date.getMonth()],
    hour: utc ? date.getUTCHours() : date.getHours(),
    minute: utc ? date.getUTCMinutes() : date.getMinutes(),
    second: utc ? date.getUTCSeconds() : date.getSeconds(),
    ms: date.getUTCMilliseconds(),
  };
}
