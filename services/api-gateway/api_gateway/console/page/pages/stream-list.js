/**
 * The rows of the list of streams: a first 100, then pages of 1,000; from then on kept up to date one by one.
 *
 * What changes in the structure of a stream, or has a commit fail, is fetched within 500 ms, what transactions change
 * each 5 s, of the rows that are seen. Rows stay in their place; a stream that is gone stays as a tombstone until the
 * list is left, or many others have gone.
 */
import {signal} from '../core/html.js';
import {address, api, Problem} from '../core/api.js';
import {onChanged, paused} from '../core/live.js';
/** @import {Change, Query} from '../core/types.d.ts' */
/** @import {StreamRow} from './types.d.ts' */
/** @import {FoundStream} from 'api' */

const PAGE = 1000;
/** Enough for a window; the others come while these are looked at. */
const FIRST_PAGE = 100;
/** More than this is filtered by the gateway, not here. */
export const MAX_ROWS = 20_000;
const STRUCTURE_MS = 500;
const COUNTS_MS = 5000;
/** Of more streams that changed all are fetched anew: one by one that takes longer. */
const MAX_CHANGED = 2000;
/** When a gateway comes back all open lists want everything; so they spread over this long. */
const RELOAD_MS = 2000;
/** So many names one call takes. */
export const AT_ONCE = 100;
/** Of their names in an address: a gateway takes a head of 16 KiB. */
const MAX_CHARS = 8000;
const MARK_MS = 2000;
/** So many tombstones stay. */
const MAX_GONE = 100;
const STREAM = /^(stream|commits|txn|prepared):([^/]+\/[^/]+)/;
/** What is decided where a segment has too much to do. */
const HOT = new Set(['split', 'split-and-merge', 'at-maximum']);
const COUNTS = /^(txn|prepared|commits):/;

/** The first of these names, as many as are asked for at once. @param {string[]} names */
export function fitting(names) {
  let chars = 0;
  return names.slice(0, AT_ONCE).filter((name) => {
    chars += 'name=&'.length + encodeURIComponent(name).length;
    return chars <= MAX_CHARS;
  });
}

/** Whether nothing is fetched for now. */
export function isAtRest() {
  return paused.peek() || document.visibilityState === 'hidden';
}

/** @param {FoundStream} item @returns {StreamRow} */
export function rowOf(item) {
  return {
    ...item,
    key: `${item.scope}/${item.name}`,
    tags: item.tags ?? [],
    transactions: item.transactions ?? 0,
    gone: false,
  };
}

export class StreamList {
  /** @param {Query} query what the gateway filters by */
  constructor(query) {
    this.query = query;
    /** @type {Map<string, StreamRow>} */
    this.rows = new Map();
    /** When rows last changed, epoch ms by key. @type {Map<string, number>} */
    this.marks = new Map();
    this.state = signal({
      version: 0,
      loading: true,
      problem: /** @type {Problem | null} */ (null),
      isWhole: false,
      loadedAt: 0,
    });
    this.ended = new AbortController();
    /** Keys of the tombstones, the oldest first. @type {string[]} */
    this.gone = [];
    /** @type {Set<string>} */
    this.structure = new Set();
    /** @type {Set<string>} */
    this.counts = new Set();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.reloads = undefined;
    this.fetching = false;
    this.countsAt = 0;
    this.flushedAt = 0;
    /**
     * Keys that the table shows; only of these are counts fetched, of others once they are shown.
     * @type {Set<string>}
     */
    this.visible = new Set();
  }

  /** Begin; gives what ends it. */
  begin() {
    const unsubscribe = onChanged(['*'], (changes) => this.take(changes));
    const poll = setInterval(() => this.flush(), COUNTS_MS);
    void this.load();
    return () => {
      unsubscribe();
      clearInterval(poll);
      clearTimeout(this.timer);
      this.ended.abort();
    };
  }

  /** @param {Partial<StreamList['state']['value']>} changes */
  update(changes) {
    const old = this.state.peek();
    this.state.value = {...old, ...changes, version: old.version + 1};
  }

  async load() {
    this.update({loading: true});
    /** @type {Map<string, StreamRow>} */
    const found = new Map();
    let after = '',
      isWhole = false;
    try {
      do {
        const {items, next} = await api.get('streams', {
          query: {...this.query, limit: after || this.rows.size > 0 ? PAGE : FIRST_PAGE, after},
          signal: this.ended.signal,
        });
        for (const item of items) found.set(`${item.scope}/${item.name}`, rowOf(item));
        after = next ?? '';
        isWhole = after === '';
        // The first time each page is shown as it comes; later the old rows stay until all are there.
        if (this.rows.size <= found.size) this.rows = new Map(found);
        this.update({loading: !isWhole});
      } while (after !== '' && found.size < MAX_ROWS);
      this.rows = found;
      this.gone = [];
      this.update({loading: false, problem: null, isWhole, loadedAt: Date.now()});
      this.soon();
    } catch (error) {
      if (this.ended.signal.aborted) return;
      if (!(error instanceof Problem)) throw error;
      this.update({loading: false, problem: error});
      const passes = error.kind === 'busy' || error.kind === 'unreachable';
      if (passes) this.reloadSoon(Math.max(error.retryAfterMs, RELOAD_MS));
    }
  }

  /** @param {Change[] | null} changes */
  take(changes) {
    if (changes === null) return this.reloadSoon(0);
    for (const {aggregate, types} of changes) {
      if (aggregate === 'cluster') this.reloadSoon(0);
      const name = STREAM.exec(aggregate)?.[2];
      if (!name || name.split('/')[1].startsWith('_')) continue;
      // Filters look for a commit that fails, whether its row is seen or not.
      const isLookedFor =
        aggregate.startsWith('commits:') && (types.includes('WorkflowStepFailed') || this.rows.get(name)?.failing);
      if (isLookedFor || !COUNTS.test(aggregate)) this.structure.add(name);
      else if (this.rows.has(name)) this.counts.add(name);
    }
    if (this.structure.size > MAX_CHANGED) {
      this.structure.clear();
      this.reloadSoon(0);
    }
    this.soon();
  }

  /** The first change is fetched at once, those behind it together. */
  soon() {
    if (this.structure.size > 0)
      this.timer ??= setTimeout(() => this.flush(), Math.max(0, this.flushedAt + STRUCTURE_MS - Date.now()));
  }

  /** @param {number} leastMs */
  reloadSoon(leastMs) {
    this.reloads ??= setTimeout(() => this.reload(), leastMs + Math.random() * RELOAD_MS);
  }

  /** Fetch all anew; a page that is paused, not seen or still loads waits until that is over. */
  reload() {
    this.reloads = undefined;
    if (this.ended.signal.aborted) return;
    if (isAtRest() || this.state.peek().loading) this.reloadSoon(RELOAD_MS);
    else void this.load();
  }

  flush() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.flushedAt = Date.now();
    // What is fetched while all is would be overwritten by what that read before.
    const {loading, loadedAt} = this.state.peek();
    if (this.fetching || isAtRest() || loading || loadedAt === 0) return;
    const wanted = fitting([...this.structure]);
    for (const one of wanted) this.structure.delete(one);
    if (Date.now() - this.countsAt >= COUNTS_MS - 100) {
      const seen = [...this.counts].filter((one) => this.visible.has(one) && !wanted.includes(one));
      wanted.push(...fitting([...wanted, ...seen]).slice(wanted.length));
      for (const one of wanted) this.counts.delete(one);
      this.countsAt = Date.now();
    }
    if (wanted.length > 0) void this.fetch(wanted);
  }

  /** @param {string[]} names */
  async fetch(names) {
    this.fetching = true;
    try {
      const url = names.map((name) => `name=${encodeURIComponent(name)}`).join('&');
      const {items} = await api.get(`streams?${url}`, {query: {...this.query, limit: PAGE}, signal: this.ended.signal});
      /** @type {Map<string, StreamRow>} */
      const found = new Map(
        items.map((/** @type {FoundStream} */ item) => [`${item.scope}/${item.name}`, rowOf(item)]),
      );
      for (const name of names) {
        const before = this.rows.get(name),
          row = found.get(name);
        if (row && !before && this.rows.size >= MAX_ROWS) {
          this.update({isWhole: false});
        } else if (row) {
          this.rows.set(name, row);
          if (!before || JSON.stringify(before) !== JSON.stringify(row)) this.marks.set(name, Date.now());
        } else if (before && (this.query.tag || this.query.q)) {
          // It may be there, and only have lost what the gateway filters by.
          this.rows.delete(name);
        } else if (before && !before.gone) {
          this.rows.set(name, {...before, gone: true});
          this.gone.push(name);
          this.marks.set(name, Date.now());
        }
      }
      for (const name of this.gone.splice(0, Math.max(0, this.gone.length - MAX_GONE))) {
        if (this.rows.get(name)?.gone) this.rows.delete(name);
      }
      this.update({});
      setTimeout(() => this.unmark(), MARK_MS + 50);
    } catch (error) {
      if (this.ended.signal.aborted) return;
      if (!(error instanceof Problem)) throw error;
      // Asked anew with the next change, or the next poll.
      for (const name of names) this.structure.add(name);
      if (error.kind === 'forbidden' || error.kind === 'login') this.update({problem: error});
    } finally {
      this.fetching = false;
    }
    this.soon();
  }

  unmark() {
    if (this.ended.signal.aborted) return;
    for (const [key, at] of this.marks) if (Date.now() - at >= MARK_MS) this.marks.delete(key);
    this.update({});
  }
}

/** The address of what a list shows, to tell lists apart. @param {Query} query */
export function listKey(query) {
  return address('streams', query).search;
}

/** What a row is filtered by, as text in lower case. @param {StreamRow} row */
function textOf(row) {
  return `${row.key} ${row.tags.join(' ')}`.toLowerCase();
}

/** @param {StreamRow} row @param {string} state */
function isOf(row, state) {
  if (state === 'odd')
    return Boolean(row.unreachable || row.failing) || row.gone || HOT.has(row.lastDecision?.code ?? '');
  if (state === 'failing') return Boolean(row.failing);
  if (state === 'busy') return Boolean(row.workflow);
  return row.state === state;
}

/** @type {Record<string, (row: StreamRow) => string | number>} */
const ORDERS = {
  name: (row) => row.key,
  state: (row) => (row.failing ? `0${row.workflow}` : row.workflow ? `1${row.workflow}` : `2${row.state}`),
  epoch: (row) => row.epoch,
  segments: (row) => row.segments,
  transactions: (row) => row.transactions,
  changed: (row) => row.changedAt ?? 0,
  scope: (row) => row.scope,
  decision: (row) => row.lastDecision?.at ?? 0,
};

/**
 * The rows that are wanted, in order. Pure.
 * @param {Iterable<StreamRow>} rows
 * @param {{q?: string, state?: string, scope?: string, tag?: string, sort?: string}} wanted
 * @param {(row: StreamRow) => string | number} [other] an order that is not the rows' own
 */
export function chosen(rows, {q = '', state = '', scope = '', tag = '', sort = 'name'}, other) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (const row of rows) {
    if (scope && row.scope !== scope) continue;
    if (state && !isOf(row, state)) continue;
    if (tag && !row.tags.includes(tag)) continue;
    if (words.length > 0) {
      const text = textOf(row);
      if (!words.every((word) => text.includes(word))) continue;
    }
    found.push(row);
  }
  const down = sort.startsWith('-') ? -1 : 1;
  const order = other ?? ORDERS[sort.replace('-', '')] ?? ORDERS.name;
  return found.sort((one, two) => {
    const a = order(one),
      b = order(two);
    return a < b ? -down : a > b ? down : one.key < two.key ? -1 : 1;
  });
}
