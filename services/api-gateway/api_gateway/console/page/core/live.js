/**
 * What the gateway pushes: which aggregates changed, and rates. Whether it still does.
 *
 * Modules of pages use `useResource` of `store.js`, which subscribes here; `onChanged` and `onRates` are for what is
 * no resource. Without a shared worker the tab has its own stream while it is visible.
 */
import {computed, signal} from './html.js';
import {BASE} from './api.js';
import {clock, setServerTime} from './time.js';
/** @import {Change, Message} from './types.d.ts' */

/** Connected, this much silence is too much: a beat comes each 5 s. */
const SILENT_MS = 8000;
const STALE_MS = 5000;
const OLD_MS = 15_000;
const PING_MS = 20_000;

/** The hash in this module's own address: which page runs here. */
const OWN_PAGE = new URL(import.meta.url).pathname.split('/').at(-3) ?? '';

/** Whether the reader has stopped updates. */
export const paused = signal(false);

/** Whether the gateway serves another page than this one: reload. */
export const tooOld = signal(false);

const connected = signal(false);
/** When something last came, by this clock; 0 before. */
const lastAt = signal(0);
const startedAt = Date.now();

/** How long ago something last came, ms. */
export const age = computed(() => {
  void clock.value;
  return Date.now() - (lastAt.value || startedAt);
});

/** 'connecting', 'live', 'stale' (amber) or 'old' (banner; actions are off). */
export const liveState = computed(() => {
  if (age.value > OLD_MS) return 'old';
  if (age.value > (connected.value ? SILENT_MS : STALE_MS)) return 'stale';
  return lastAt.value ? 'live' : 'connecting';
});

/** When something last came, epoch ms, 0 before: "as of". */
export const asOf = lastAt;

/** @type {Set<{of: string[], changed?: (items: Change[] | null) => void, rates?: (rates: any) => void}>} */
const listeners = new Set();

/** Whether a change of this aggregate is one of what is watched. @param {string[]} of @param {string} aggregate */
export function concerns(of, aggregate) {
  return of.some((one) => {
    if (one === '*' || one === aggregate) return true;
    const colon = one.indexOf(':'),
      inner = aggregate.slice(aggregate.indexOf(':') + 1);
    const kind = one.slice(0, colon),
      name = one.slice(colon + 1);
    if (kind === 'scope') return inner === name || inner.startsWith(`${name}/`);
    return (
      kind === 'stream' &&
      /^(commits|txn|prepared):/.test(aggregate) &&
      (inner === name || inner.startsWith(`${name}/`))
    );
  });
}

/**
 * Whether the stream itself changed, not its transactions: its segments and epochs are none of theirs.
 * @param {Change} change
 */
export function isStructural({aggregate}) {
  return aggregate.startsWith('stream:');
}

/**
 * Call `listener` with changes of what is watched: `stream:S/N`, `scope:S`, `cluster`, `*`. null: something may have
 * been missed, fetch everything anew. Gives what ends it.
 * @param {string[]} of @param {(items: Change[] | null) => void} listener
 */
export function onChanged(of, listener) {
  return listen({of, changed: listener});
}

/**
 * Call `listener` with the rates of a stream's segments (E3 `rates`), as long as this is watched. Gives what ends it.
 * @param {string} stream scope/name
 * @param {(rates: {stream: string, segments: {id: number | bigint, bytesPerS: number, eventsPerS: number, length:
 *   number}[], at: number}) => void} listener
 */
export function onRates(stream, listener) {
  return listen({of: [`rates:${stream}`], rates: (rates) => rates.stream === stream && listener(rates)});
}

/** @param {{of: string[], changed?: (items: Change[] | null) => void, rates?: (rates: any) => void}} listener */
function listen(listener) {
  listeners.add(listener);
  watch();
  return () => {
    listeners.delete(listener);
    watch();
  };
}

/** @param {Message} message */
function take({type, data, resumed}) {
  if (type === 'lost') {
    connected.value = false;
    return;
  }
  connected.value = type !== 'bye';
  lastAt.value = Date.now();
  if (data.now) setServerTime(data.now);
  if (data.page && OWN_PAGE !== 'page') tooOld.value = data.page !== OWN_PAGE;
  if (type === 'rates') for (const one of [...listeners]) one.rates?.(data);
  if (type === 'many' || (type === 'hello' && !resumed)) for (const one of [...listeners]) one.changed?.(null);
  if (type === 'changed') {
    for (const one of [...listeners]) {
      const items = data.items.filter((/** @type {Change} */ item) => concerns(one.of, item.aggregate));
      if (items.length > 0) one.changed?.(items);
    }
  }
}

/**
 * What carries messages from here: to the worker, or to the tab's own source.
 * @type {(type: 'watch' | 'close' | 'renew', of: string[]) => void}
 */
let post = () => {};

function wanted() {
  return [...new Set([...listeners].flatMap((one) => one.of))];
}

/**
 * Another user, or none, is logged in from now on: what is pushed to the tabs of this browser is what that one may see.
 */
export function renew() {
  post('renew', wanted());
}

let scheduled = false;
function watch() {
  if (scheduled) return;
  scheduled = true;
  queueMicrotask(() => {
    scheduled = false;
    post('watch', wanted());
  });
}

async function start() {
  if (typeof SharedWorker === 'function') {
    const worker = new SharedWorker(new URL('./live-worker.js', import.meta.url), {
      type: 'module',
      name: 'sluice-live',
    });
    worker.port.onmessage = ({data}) => take(data);
    worker.port.start();
    post = (type, of) => worker.port.postMessage({type, of, base: BASE.href});
    setInterval(watch, PING_MS);
    addEventListener('pagehide', () => post('close', []));
    addEventListener('pageshow', (event) => event.persisted && post('watch', wanted()));
  } else {
    const {liveSource} = await import('./live-source.js');
    const source = liveSource(BASE.href, take);
    post = (type, of) =>
      type === 'close' ? source.close() : type === 'renew' ? source.renew() : source.watch(new Set(of));
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'hidden') post('close', []);
      else post('watch', wanted());
    });
  }
  post('watch', wanted());
}

void start();
