/**
 * One event stream of the gateway for several listeners, resumed where it ended.
 *
 * Runs in the shared worker, or in the tab where there is none. Every tab says what it watches; the stream has the
 * union of that, and is opened anew, from the last position, when the union grows.
 */
/** @import {Message} from './types.d.ts' */

const GROWN_MS = 50;
const SHRUNK_MS = 5000;
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 10_000;
/** A gateway that stops refuses until another one is in its place. */
const STOPPING_MS = 2000;
/** So many names the gateway takes at once, in so many characters, and the rates of so many streams. */
const MAX_NAMES = 50;
const MAX_CHARS = 4000;
const MAX_RATES = 5;
const NAME = /^(\*|cluster|scope:[\w.-]+|(stream|group|table|rates):[\w.-]+\/[\w.-]+)$/;
const EVENTS = ['hello', 'changed', 'rates', 'many', 'beat', 'bye'];

/**
 * What the gateway is asked for: it refuses all if one of the names is none, or there are too many. Of rates those that
 * joined last are pushed, and where there are too many other names everything is.
 * @param {Set<string>} wanted @returns {Set<string>}
 */
export function named(wanted) {
  const names = [...wanted].filter((one) => NAME.test(one));
  const isRates = (/** @type {string} */ one) => one.startsWith('rates:');
  const rates = names.filter(isRates).slice(-MAX_RATES),
    others = names.filter((one) => !isRates(one));
  const all = [...others, ...rates];
  const isTooMuch = all.length > MAX_NAMES || all.join().length > MAX_CHARS || others.includes('*');
  return new Set(isTooMuch ? ['*', ...rates] : all);
}

/**
 * @param {string} base the address of `/sluice/v1/` @param {(message: Message) => void} emit
 * @returns {{watch: (wanted: Set<string>) => void, renew: () => void, close: () => void}} `renew` opens it anew, with
 *   nothing of before
 */
export function liveSource(base, emit) {
  /** @type {EventSource | null} */
  let source = null;
  /** @type {Set<string>} */
  let wanted = new Set();
  /** @type {Set<string>} */
  let watched = new Set();
  let position = '';
  /** Whether names join at the next opening: what they miss until then is behind the position, which stays. */
  let joins = false;
  let retryMs = FIRST_RETRY_MS;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  function open() {
    clearTimeout(timer);
    timer = undefined;
    source?.close();
    source = null;
    watched = new Set(wanted);
    joins = false;
    if (watched.size === 0) return;
    const url = new URL('events', base);
    url.searchParams.set('of', [...watched].sort().join(','));
    const resumed = position !== '';
    if (resumed) url.searchParams.set('since', position);
    const opened = new EventSource(url, {withCredentials: true});
    source = opened;
    for (const type of EVENTS) {
      opened.addEventListener(type, (event) => {
        if (source !== opened) return;
        const data = JSON.parse(/** @type {MessageEvent} */ (event).data || '{}');
        if (!joins) position = data.position || /** @type {MessageEvent} */ (event).lastEventId || position;
        if (type === 'hello') retryMs = FIRST_RETRY_MS;
        emit({type, data, resumed});
        if (type === 'bye') again(data.reason === 'stopping' ? STOPPING_MS : 0);
      });
    }
    opened.onerror = () => {
      if (source !== opened) return;
      emit({type: 'lost'});
      again(0);
    };
  }

  /** @param {number} leastMs */
  function again(leastMs) {
    source?.close();
    source = null;
    clearTimeout(timer);
    timer = setTimeout(open, Math.max(retryMs, leastMs) * (0.5 + Math.random() / 2));
    retryMs = Math.min(retryMs * 2, MAX_RETRY_MS);
  }

  return {
    watch(next) {
      wanted = named(next);
      const grown = [...wanted].some((one) => !watched.has(one));
      const shrunk = [...watched].some((one) => !wanted.has(one));
      if (!grown && !shrunk) return;
      if (source === null && timer !== undefined && watched.size > 0) return; // opens soon, with what is wanted then
      joins ||= grown;
      clearTimeout(timer);
      timer = setTimeout(open, grown ? GROWN_MS : SHRUNK_MS);
    },
    renew() {
      position = '';
      open();
    },
    close() {
      clearTimeout(timer);
      timer = undefined;
      source?.close();
      source = null;
      watched = new Set();
    },
  };
}
