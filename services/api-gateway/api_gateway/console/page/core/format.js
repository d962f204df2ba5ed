/** Numbers, bytes, durations, times and cuts as text. Pure, but for the zone that `time.js` has. */
import {utc} from './time.js';
/** @import {Wait} from 'api' */

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});

/** 12,345; "–" for what is not known. @param {number | bigint | null | undefined} value */
export function number(value) {
  if (value === null || value === undefined) return '–';
  return typeof value === 'bigint'
    ? whole.format(value)
    : Number.isInteger(value)
      ? whole.format(value)
      : String(+value.toPrecision(3));
}

/** "1 segment", "4 segments". @param {number | bigint} value @param {string} one @param {string} [many] */
export function count(value, one, many = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : many}`;
}

const SIZES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

/** What Sluice has for "no limit". */
export const UNLIMITED = 9223372036854775807n;

/** 1.5 GiB. 2^63-1 is "unlimited". @param {number | bigint | null | undefined} value */
export function bytes(value) {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'bigint') {
    if (value === UNLIMITED) return 'unlimited';
    value = Number(value);
  }
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < SIZES.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? Math.round(value) : short(value)} ${SIZES[unit]}`;
}

/** 1.5 MiB/s. @param {number | null | undefined} value bytes per second */
export function bytesPerS(value) {
  return value === null || value === undefined || value < 0 ? '–' : `${bytes(value)}/s`;
}

/** 1.2 k/s. @param {number | null | undefined} value per second */
export function perS(value) {
  if (value === null || value === undefined || value < 0) return '–';
  if (value < 1000) return `${short(value)}/s`;
  return value < 1e6 ? `${short(value / 1000)} k/s` : `${short(value / 1e6)} M/s`;
}

/** @param {number} value */
function short(value) {
  return value >= 100 || Number.isInteger(value)
    ? String(Math.round(value))
    : value >= 10
      ? value.toFixed(1)
      : String(+value.toFixed(2));
}

/** "350 ms", "12 s", "4 min", "3 h 10 min", "2 d 4 h". @param {number | null | undefined} ms */
export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return '–';
  const sign = ms < 0 ? '−' : '';
  const s = Math.abs(ms) / 1000;
  if (s < 1) return `${sign}${Math.round(s * 1000)} ms`;
  if (s < 60) return `${sign}${s < 10 && !Number.isInteger(s) ? s.toFixed(1) : Math.round(s)} s`;
  const min = Math.round(s / 60);
  if (min < 60) return `${sign}${min} min`;
  const h = Math.floor(min / 60);
  if (h < 24) return `${sign}${h} h${min % 60 ? ` ${min % 60} min` : ''}`;
  const d = Math.floor(h / 24);
  return `${sign}${d} d${h % 24 && d < 10 ? ` ${h % 24} h` : ''}`;
}

/** As the CLI takes a duration: "90s", "5m". @param {number} ms */
export function cliDuration(ms) {
  for (const [unit, length] of /** @type {[string, number][]} */ ([
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1000],
  ])) {
    if (ms >= length && ms % length === 0) return `${ms / length}${unit}`;
  }
  return `${ms}ms`;
}

/** @type {Map<string, Intl.DateTimeFormat>} */
const formats = new Map();

/** @param {boolean} isUtc @param {Intl.DateTimeFormatOptions} options @param {string} name */
function format(isUtc, options, name) {
  const key = `${name}${isUtc}`;
  let found = formats.get(key);
  if (!found) {
    found = new Intl.DateTimeFormat('en-GB', {...options, ...(isUtc ? {timeZone: 'UTC'} : {})});
    formats.set(key, found);
  }
  return found;
}

const CLOCK = /** @type {const} */ ({hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23'});
const DAY = /** @type {const} */ ({day: 'numeric', month: 'short'});

/** 12:03:11, of another day 3 Nov 12:03:11, of another year with it. @param {number | null | undefined} ms epoch ms */
export function time(ms) {
  if (!ms) return '–';
  const then = new Date(ms),
    today = new Date();
  const day = (/** @type {Date} */ date) => (utc.value ? date.toISOString().slice(0, 10) : date.toDateString());
  if (day(then) === day(today)) return format(utc.value, CLOCK, 'clock').format(then);
  const sameYear = then.getFullYear() === today.getFullYear();
  return format(
    utc.value,
    {...DAY, ...CLOCK, ...(sameYear ? {} : {year: 'numeric'})},
    sameYear ? 'day' : 'year',
  ).format(then);
}

/** 12:03:11 alone. @param {number} ms epoch ms */
export function clockTime(ms) {
  return format(utc.value, CLOCK, 'clock').format(ms);
}

/** The exact moment for tooltips: ISO in UTC with ms. @param {number | null | undefined} ms epoch ms */
export function exact(ms) {
  return ms ? new Date(ms).toISOString() : '';
}

/** `4.#epoch.1` of a segment's id. @param {number | bigint} id */
export function segment(id) {
  const whole = BigInt(id);
  return `${whole & 0xffffffffn}.#epoch.${whole >> 32n}`;
}

/**
 * The id of `4.#epoch.1`, or of digits; null if it is neither.
 * @param {string} text @returns {number | bigint | null}
 */
export function segmentId(text) {
  const name = /^(\d+)\.#epoch\.(\d+)$/.exec(text);
  if (!name && !/^\d+$/.test(text)) return null;
  const id = name ? (BigInt(name[2]) << 32n) + BigInt(name[1]) : BigInt(text);
  return id <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(id) : id;
}

/** A key of the key space: 0.375, at most four digits. @param {number} value */
export function key(value) {
  return String(+value.toFixed(4));
}

/** "scale-stream" as "scale stream". @param {string} code */
export function words(code) {
  return code.replaceAll(/[-_]/g, ' ').toLowerCase();
}

/** The parts of an aggregate's name `kind:scope/name/id`. @param {string} aggregate */
export function aggregateParts(aggregate) {
  const colon = aggregate.indexOf(':');
  if (colon < 0) return {kind: aggregate, scope: '', name: '', id: ''};
  const [scope = '', name = '', id = ''] = aggregate.slice(colon + 1).split('/');
  return {kind: aggregate.slice(0, colon), scope, name, id};
}

/** What a chain of waiting ends with. @param {Wait | undefined} wait @returns {Wait | undefined} */
export function chainEnd(wait) {
  let end = wait;
  while (end?.then) end = end.then;
  return end;
}
