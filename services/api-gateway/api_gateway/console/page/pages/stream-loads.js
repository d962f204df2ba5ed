/**
 * What is written to the streams of a list, what they hold and which group is slowest: asked of the rows that are seen;
 * of all rows where the list is ordered by it and one call has room for them.
 */
import {signal} from '../core/html.js';
import {api, Problem} from '../core/api.js';
import {fitting, isAtRest} from './stream-list.js';
/** @import {StreamLoadModel} from 'api' */

/** The gateway measures a stream for 15 s after it was asked of it. */
const EVERY_MS = 5000;
/** A rate takes two measurements. */
const SOON_MS = 1500;
/** What is older is not shown any more. */
const OLD_MS = 60_000;

/** @typedef {StreamLoadModel & {seenAt: number}} Load */

export class StreamLoads {
  constructor() {
    /** By scope/name. @type {Map<string, Load>} */
    this.known = new Map();
    /** Counts the answers. */
    this.version = signal(0);
    /** The names that are wanted, the most wanted first. @type {() => string[]} */
    this.wanted = () => [];
    this.ended = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.askedAt = 0;
    this.asks = false;
  }

  /** Begin; gives what ends it. */
  begin() {
    this.ended = new AbortController();
    this.after(0);
    return () => {
      this.ended.abort();
      clearTimeout(this.timer);
    };
  }

  /** Others are seen now: of those that are not known it is asked soon. */
  moved() {
    if (!this.asks && this.wanted().some((name) => !this.known.has(name)))
      this.after(Math.max(0, this.askedAt + SOON_MS - Date.now()));
  }

  /** @param {number} ms */
  after(ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(), ms);
  }

  async ask() {
    const names = isAtRest() ? [] : fitting(this.wanted());
    let isNew = false;
    this.asks = true;
    this.askedAt = Date.now();
    try {
      if (names.length > 0) {
        const url = names.map((name) => `name=${encodeURIComponent(name)}`).join('&');
        const {items} = await api.get(`streams/loads?${url}`, {signal: this.ended.signal});
        isNew = names.some((name) => !this.known.has(name));
        this.take(items);
      }
    } catch (error) {
      if (this.ended.signal.aborted) return;
      if (!(error instanceof Problem)) throw error;
      // What is not known says so in its row; it is asked for with the next turn.
    } finally {
      this.asks = false;
    }
    this.after(isNew ? SOON_MS : EVERY_MS);
  }

  /**
   * What a stream is ordered by; if nothing is known of it, less than everything.
   * @param {string} name @param {(load: Load) => number} of
   */
  rank(name, of) {
    const load = this.known.get(name);
    return load ? of(load) : -2;
  }

  /** @param {StreamLoadModel[]} items */
  take(items) {
    const now = Date.now();
    for (const item of items) this.known.set(`${item.scope}/${item.name}`, {...item, seenAt: now});
    for (const [name, {seenAt}] of this.known) if (now - seenAt > OLD_MS) this.known.delete(name);
    this.version.value++;
  }
}

/** What lists are ordered by; less than all if it is not known. @type {Record<string, (load: Load) => number>} */
export const LOAD_ORDERS = {
  rate: (load) => load.bytesPerS ?? -1,
  size: (load) => Number(load.bytes ?? -1),
  lag: (load) => Number(load.slowest?.bytes ?? -1),
};
