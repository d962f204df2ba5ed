/** Now, or a past moment: what time the page shows, and how times are written. */
import {computed, signal} from './html.js';
import {place, setQuery} from './router.js';

/** The moment as it stands in the address (`-10m`, ISO, epoch ms), or null for now. */
export const at = computed(() => place.value.at);

/** Whether a past moment is shown: then there are no actions and nothing is live. */
export const inPast = computed(() => at.value !== null);

/** How far the gateway's clock is before this one, ms. Set by what it says. */
export const clockOffset = signal(0);

/** The gateway's time, epoch ms; changes each second. */
export const clock = signal(Date.now());

/** Whether times are written in UTC instead of local time; kept by the browser. */
export const utc = signal(localStorage.getItem('sluice-utc') === 'yes');

/** @param {boolean} yes */
export function setUtc(yes) {
  localStorage.setItem('sluice-utc', yes ? 'yes' : 'no');
  utc.value = yes;
}

/** The gateway's time at this instant, epoch ms. */
export function now() {
  return Date.now() + clockOffset.peek();
}

/** Take in what the gateway says its time is, epoch ms. @param {number} serverNow */
export function setServerTime(serverNow) {
  clockOffset.value = serverNow - Date.now();
}

/**
 * Show a past moment, or now with null. The address has the instant, so that it stays the same one.
 * @param {string | null} text see `moment`
 */
export function setAt(text) {
  setQuery({at: text === null ? '' : new Date(moment(text)).toISOString()}, {replace: false});
}

const UNITS = {ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000};

/**
 * A moment as the CLI takes it, as epoch ms: `-10m`, ISO (UTC without a zone), epoch ms, `now`. NaN if it is none.
 * @param {string | null} text
 */
export function moment(text) {
  if (text === null || text === '' || text === 'now') return now();
  const ago = /^-(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  if (ago) return now() - Number(ago[1]) * UNITS[/** @type {keyof typeof UNITS} */ (ago[2])];
  if (/^\d{10,}$/.test(text)) return Number(text);
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return NaN;
  const zoned = /(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : /T|\s/.test(text) ? `${text}Z` : text;
  return Date.parse(zoned.replace(' ', 'T'));
}

setInterval(() => {
  if (document.visibilityState === 'visible') clock.value = now();
}, 1000);
