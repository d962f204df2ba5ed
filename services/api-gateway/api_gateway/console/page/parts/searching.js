/**
 * A search through the past that goes on: each call of the gateway reads a bounded number of records and says how far
 * it came. Calls follow one another until enough is found; then the reader decides whether to go on.
 *
 * Nothing here is live: the past does not change. A search ends when its page is left.
 */
import {useCallback, useEffect, useMemo, useRef, useState} from '../core/html.js';
import {api, Problem, toJson} from '../core/api.js';
import {moment, now} from '../core/time.js';
/** @import {Query} from '../core/types.d.ts' */
/** @import {Search} from './types.d.ts' */

/** So many items are waited for before the reader decides. */
const ENOUGH = 100;
/** So many calls follow one another without having found enough. */
const MAX_CALLS = 20;
/** More items than this are not held. */
const MAX_ITEMS = 3000;
const RETRY_MS = 1000;

const NOTHING = {
  items: /** @type {any[]} */ ([]),
  head: /** @type {any} */ (undefined),
  next: /** @type {string | undefined} */ (undefined),
  searchedTo: /** @type {number | null} */ (null),
  keptFrom: /** @type {number | null} */ (null),
  complete: false,
  full: false,
  running: false,
  problem: /** @type {Problem | null} */ (null),
};

/**
 * The span that ends at the moment that is shown. It is fixed when it is chosen: a search that goes on must not shift.
 * @param {string | null} at null for now @param {number} spanMs @param {number} [turn] another one: it is chosen anew
 */
export function useBounds(at, spanMs, turn = 0) {
  return useMemo(() => {
    const to = at === null ? now() : moment(at);
    return {from: Math.floor(to - spanMs), to: Math.ceil(to)};
  }, [at, spanMs, turn]);
}

/**
 * Search while the component is shown, from the beginning whenever path or query change.
 * An answer names where the next call begins (`next`), or else where it came to (`searchedTo`), which is `from` then.
 * @param {string | null} path null: nothing is searched @param {Query} query
 * @param {(before: any[], more: any[]) => any[]} [join] puts what a further call found to what is there
 * @returns {Search}
 */
export function useSearch(path, query, join = (before, more) => [...before, ...more]) {
  const key = path === null ? '' : `${path}?${toJson(query)}`;
  const [state, setState] = useState(NOTHING);
  const call = useRef(/** @type {AbortController | null} */ (null));
  const last = useRef(NOTHING);

  const run = useCallback(
    async (/** @type {typeof NOTHING} */ begun) => {
      if (path === null) return;
      const own = new AbortController();
      call.current?.abort();
      call.current = own;
      const show = (/** @type {typeof NOTHING} */ found) => {
        last.current = found;
        setState(found);
      };
      let found = {...begun, running: true, problem: null};
      show(found);
      const enough = found.items.length + ENOUGH;
      try {
        for (let calls = 0; calls < MAX_CALLS && !found.complete && found.items.length < enough; calls++) {
          const further =
            found.next === undefined && found.searchedTo !== null ? {from: found.searchedTo} : {after: found.next};
          const {items, next, searchedTo, complete, keptFrom, ...head} = await patiently(
            () => api.get(path, {query: {...query, ...further}, signal: own.signal}),
            own.signal,
          );
          const all = join(found.items, items);
          found = {
            ...found,
            items: all.slice(0, MAX_ITEMS),
            head: found.head ?? head,
            next,
            searchedTo: searchedTo ?? found.searchedTo,
            keptFrom: found.keptFrom ?? keptFrom ?? null,
            complete: next === undefined && complete !== false,
            full: all.length > MAX_ITEMS,
          };
          if (found.full) break;
          show(found);
        }
        show({...found, running: false});
      } catch (error) {
        if (own.signal.aborted) return;
        if (!(error instanceof Problem)) throw error;
        show({...found, running: false, problem: error});
      }
    },
    [key],
  );

  useEffect(() => {
    void run(NOTHING);
    return () => call.current?.abort();
  }, [run]);

  return {
    ...state,
    goOn: () => void run(last.current),
    stop: () => {
      call.current?.abort();
      setState({...last.current, running: false});
    },
  };
}

/**
 * What a call answers; where all places are taken, that of the same call after the time that the gateway names.
 * @template T
 * @param {() => Promise<T>} call @param {AbortSignal} signal ends the waiting
 * @returns {Promise<T>}
 */
export async function patiently(call, signal) {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof Problem) || error.kind !== 'busy' || error.retryAfterMs === 0) throw error;
      await new Promise((done, ended) => {
        const timer = setTimeout(done, Math.max(error.retryAfterMs, RETRY_MS));
        signal.addEventListener(
          'abort',
          () => {
            clearTimeout(timer);
            ended(signal.reason);
          },
          {once: true},
        );
      });
    }
  }
}
