/**
 * Data of the gateway that stay as new as the page needs them: fetched once for all who show them, anew when the
 * gateway says that something changed, and only while the tab is visible and not paused. That is at most every 500 ms,
 * and less often where the gateway takes long: a page never asks more than a sixth of the time.
 *
 *     const stream = useResource(under`scopes/${scope}/streams/${name}`, {of: [`stream:${scope}/${name}`]});
 *     html`<${Panel} title="Stream" of=${stream}>${(data) => html`${data.epoch}`}<//>`
 *
 * In the past nothing is live: `at` goes along with the call where `past` says that it is understood.
 */
import {effect, signal, useEffect, useMemo, useRef} from './html.js';
import {api, address, Problem} from './api.js';
import {onChanged, paused} from './live.js';
import {at} from './time.js';
/** @import {Query, ResourceOptions, ResourceState, ResourceView} from './types.d.ts' */
/** @import {Answers} from 'api' */

const EVERY_MS = 500;
/** So many times as long as a call took nothing is asked after it. */
const REST = 5;
const MAX_RETRY_MS = 10_000;
/** So many resources without a viewer are kept, for "back". */
const MAX_UNUSED = 30;

class Resource {
  /** @param {string} key @param {string} path @param {ResourceOptions} options */
  constructor(key, path, options) {
    this.key = key;
    this.path = path;
    this.options = options;
    /** @type {import('@preact/signals').Signal<ResourceState>} */
    this.state = signal({data: undefined, problem: null, loading: false, etag: '', fetchedAt: 0});
    this.viewers = 0;
    this.dirty = true;
    this.retryMs = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.retry = undefined;
    /** Not fetched anew before, epoch ms by this clock. */
    this.notBefore = 0;
    /** @type {AbortController | null} */
    this.call = null;
    /** @type {(() => void)[]} */
    this.ends = [];
  }

  begin() {
    if (this.viewers++ > 0) return;
    const {of = [], when, every} = this.options;
    const live = !this.options.query?.at;
    if (live && of.length > 0) {
      this.ends.push(
        onChanged(of, (items) => {
          if (items === null || !when || items.some(when)) mark(this);
        }),
      );
    }
    if (live && every) {
      const timer = setInterval(() => mark(this), every);
      this.ends.push(() => clearInterval(timer));
    }
    mark(this);
  }

  end() {
    if (--this.viewers > 0) return;
    this.ends.splice(0).forEach((end) => end());
    clearTimeout(this.retry);
    this.call?.abort();
    this.call = null;
    dirty.delete(this);
    trim();
  }

  async fetch() {
    if (this.call) {
      this.dirty = true;
      return;
    }
    this.dirty = false;
    const call = new AbortController(),
      began = Date.now();
    const {query, read} = this.options;
    this.call = call;
    this.state.value = {...this.state.peek(), loading: true};
    try {
      const reply = read
        ? {data: await read(call.signal), etag: ''}
        : await api.read(this.path, {query, signal: call.signal});
      this.retryMs = 0;
      this.state.value = {data: reply.data, problem: null, loading: false, etag: reply.etag, fetchedAt: Date.now()};
    } catch (error) {
      if (call.signal.aborted) {
        this.state.value = {...this.state.peek(), loading: false};
        return;
      }
      if (!(error instanceof Problem)) throw error;
      this.state.value = {...this.state.peek(), problem: error, loading: false};
      if (error.kind === 'login' && this.path !== 'me') sessionEnded();
      if (error.kind === 'busy' || error.kind === 'unreachable') this.retryLater(error.retryAfterMs);
    } finally {
      // Who comes back to what was left in the middle of a call waits for nothing.
      const restMs = Math.min(Math.max(EVERY_MS, REST * (Date.now() - began)), MAX_RETRY_MS);
      if (!call.signal.aborted) this.notBefore = Date.now() + restMs;
      if (this.call === call) this.call = null;
    }
    if (this.dirty && this.viewers > 0) mark(this);
  }

  /** @param {number} atLeastMs */
  retryLater(atLeastMs) {
    this.retryMs = Math.min(Math.max(this.retryMs * 2, 1000, atLeastMs), MAX_RETRY_MS);
    clearTimeout(this.retry);
    this.retry = setTimeout(() => mark(this), this.retryMs);
  }
}

/** Who calls is asked anew, so that the login comes. */
function sessionEnded() {
  for (const resource of resources.values()) if (resource.path === 'me') mark(resource);
}

/** @type {Map<string, Resource>} */
const resources = new Map();
/** @type {Set<Resource>} */
const dirty = new Set();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** @param {Resource} resource */
function mark(resource) {
  dirty.add(resource);
  flush();
}

/** Fetch what may be fetched now, and come back for the rest. */
function flush() {
  clearTimeout(timer);
  timer = undefined;
  const waits = document.visibilityState === 'hidden' || paused.peek(),
    now = Date.now();
  let next = Infinity;
  for (const resource of [...dirty]) {
    if (waits && resource.state.peek().fetchedAt > 0) continue;
    if (resource.notBefore > now) {
      next = Math.min(next, resource.notBefore);
      continue;
    }
    dirty.delete(resource);
    void resource.fetch();
  }
  if (next < Infinity) timer = setTimeout(flush, next - now);
}

function trim() {
  const unused = [...resources.values()].filter((one) => one.viewers === 0);
  for (const one of unused.slice(0, Math.max(0, unused.length - MAX_UNUSED))) resources.delete(one.key);
}

document.addEventListener('visibilitychange', () => dirty.size > 0 && flush());
effect(() => {
  if (!paused.value && dirty.size > 0) flush();
});

/** @param {string} path @param {Query | undefined} query @param {ResourceOptions} options */
function keyOf(path, query, {of = []}) {
  return `${address(path, query).href}|${of.join()}`;
}

/** The data of a GET, one for all that show them. @param {string} path @param {ResourceOptions} [options] */
export function resourceOf(path, options = {}) {
  const key = keyOf(path, options.query, options);
  const found = resources.get(key) ?? new Resource(key, path, options);
  resources.set(key, found);
  return found;
}

/**
 * The data of a GET, for the component that calls this. `path` null: nothing is fetched yet.
 * @template {keyof Answers} P
 * @overload
 * @param {P | null} path @param {ResourceOptions} [options]
 * @returns {ResourceView<Answers[P]>}
 */
/**
 * @overload
 * @param {string | null} path @param {ResourceOptions} [options]
 * @returns {ResourceView}
 */
/** @param {string | null} path @param {ResourceOptions} [options] @returns {ResourceView} */
export function useResource(path, options = {}) {
  const query = options.past && at.value ? {...options.query, at: at.value} : options.query;
  const key = path === null ? '' : keyOf(path, query, options);
  const resource = useMemo(() => path && resourceOf(path, {...options, query}), [key]);
  useEffect(() => {
    if (!resource) return undefined;
    resource.begin();
    return () => resource.end();
  }, [resource]);
  const last = useRef(/** @type {any} */ (undefined));
  const state = resource
    ? resource.state.value
    : {data: undefined, problem: null, loading: false, etag: '', fetchedAt: 0};
  if (state.data !== undefined) last.current = state.data;
  const data = state.data === undefined && options.keep && !state.problem ? last.current : state.data;
  return {...state, data, reload: () => resource && now(resource)};
}

/** What a reader wants is fetched without waiting. @param {Resource} resource */
function now(resource) {
  dirty.delete(resource);
  void resource.fetch();
}

/** Fetch everything that is shown anew, after an action of this page: its answer is older than what it shows. */
export function refresh() {
  for (const resource of resources.values()) if (resource.viewers > 0) now(resource);
}

/* What header, navigation and overview show together. */

const OVERVIEW_MS = 5000;
const WORKFLOW = /Workflow|DeadLetter/;

/** `GET overview` (E8). Lags and leases change without an event, so it is fetched each 5 s, too. */
export function useOverview() {
  return useResource('overview', {
    every: OVERVIEW_MS,
    of: ['cluster'],
    when: (change) => change.types.some((type) => WORKFLOW.test(type)),
  });
}

/** `GET about` (E1). */
export function useAbout() {
  return useResource('about');
}

/**
 * `GET me` (E1). No change tells of it: it is fetched anew where changes may have been missed, as when another user
 * logs in.
 */
export function useMe() {
  return useResource('me', {of: ['cluster'], when: () => false});
}
