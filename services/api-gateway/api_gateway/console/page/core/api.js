/**
 * Calls of `/sluice/v1`, by addresses relative to the page, so that any proxy's prefix works.
 *
 * Integers beyond 2^53 arrive as BigInt and leave as the same digits. A refusal is a `Problem`; so is silence.
 * The outcome of a change without an answer is not known: the `kind` is 'unknown' then, never 'refused'.
 */
/** @import {ProblemKind, Query, Reply} from './types.d.ts' */

/** Where the gateway's calls are. */
export const BASE = new URL('../sluice/v1/', document.baseURI.replace(/#.*$/s, ''));
const READ_MS = 30_000;
/** The gateway waits two minutes for a change. */
const CHANGE_MS = 130_000;

/** Why a call gave no data. `kind` says what the reader can do about it. */
export class Problem extends Error {
  /**
   * @param {ProblemKind} kind @param {string} detail in words
   * @param {{status?: number, reason?: string, request?: string, retryAfterMs?: number}} [facts]
   */
  constructor(kind, detail, facts = {}) {
    super(detail);
    this.name = 'Problem';
    this.kind = kind;
    this.detail = detail;
    /** HTTP status, 0 without an answer. */
    this.status = facts.status ?? 0;
    /** Pravega's name of the status, or ''. */
    this.reason = facts.reason ?? '';
    /** Id of the request in topics and journal, or ''. */
    this.request = facts.request ?? '';
    this.retryAfterMs = facts.retryAfterMs ?? 0;
  }
}

/** The address of a call. @param {string} path behind `/sluice/v1/`, encoded: see `under` @param {Query} [query] */
export function address(path, query = {}) {
  const url = new URL(path.replace(/^\//, ''), BASE);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') url.searchParams.set(name, String(value));
  }
  return url;
}

/**
 * Whether a browser can call what has this name: it takes "." and ".." out of an address, however they are written.
 * @param {string} name
 */
export function isAddressable(name) {
  return name !== '.' && name !== '..';
}

/**
 * A path of names: under`scopes/${scope}/streams/${stream}` encodes each name. Raises Problem for one that is
 * not addressable: a browser would call something else.
 * @param {TemplateStringsArray} texts @param {...(string | number | bigint)} names
 */
export function under(texts, ...names) {
  return String.raw(
    {raw: texts},
    ...names.map((name) => {
      if (!isAddressable(String(name)))
        throw new Problem('refused', `a browser cannot address the name "${name}"; the command line can`);
      return encodeURIComponent(String(name));
    }),
  );
}

/** JSON text as data; integers that a double cannot hold are BigInt. @param {string} text */
export function parseJson(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  /**
   * Its third parameter is younger than the checker's library.
   * @type {(key: string, value: any, context?: any) => any}
   */
  const exact = (_key, value, {source}) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? BigInt(source) : value;
  return JSON.parse(text, exact);
}

/** Data as JSON text; BigInt becomes its digits. @param {any} data */
export function toJson(data, indent = 0) {
  const {rawJSON} = /** @type {any} */ (JSON);
  return JSON.stringify(data, (_key, value) => (typeof value === 'bigint' ? rawJSON(String(value)) : value), indent);
}

export const api = {
  /**
   * The data of a GET. Raises Problem.
   * @param {string} path @param {{query?: Query, signal?: AbortSignal}} [options]
   */
  async get(path, options = {}) {
    return (await this.read(path, options)).data;
  },

  /**
   * A GET with its ETag. Raises Problem.
   * @param {string} path @param {{query?: Query, signal?: AbortSignal}} [options] @returns {Promise<Reply>}
   */
  read(path, {query, signal} = {}) {
    return call('GET', path, {query, signal, mostMs: READ_MS});
  },

  /**
   * A change, or a POST that only asks (`asks`, `dryRun`). Raises Problem.
   * @param {'POST' | 'PUT' | 'DELETE'} method @param {string} path
   * @param {{query?: Query, body?: any, ifMatch?: string, ifNoneMatch?: string, asks?: boolean, signal?: AbortSignal}}
   *   [options]
   * @returns {Promise<Reply>}
   */
  send(method, path, {query, body, ifMatch, ifNoneMatch, asks, signal} = {}) {
    /** @type {Record<string, string>} */
    const headers = {};
    if (ifMatch) headers['If-Match'] = ifMatch;
    if (ifNoneMatch) headers['If-None-Match'] = ifNoneMatch;
    return call(method, path, {query, body, headers, signal, mostMs: asks ? READ_MS : CHANGE_MS, changes: !asks});
  },

  /**
   * Begin a session of this browser. Raises Problem.
   * @param {string} credentials the value of the header Authorization
   */
  async enter(credentials) {
    await call('POST', 'session', {headers: {Authorization: credentials}, mostMs: READ_MS});
  },

  /** End the session of this browser. Raises Problem. */
  async leave() {
    await call('DELETE', 'session', {mostMs: READ_MS});
  },
};

/**
 * @param {string} method @param {string} path
 * @param {{query?: Query, body?: any, headers?: Record<string, string>, signal?: AbortSignal, mostMs: number, changes?:
 *   boolean}} options
 * @returns {Promise<Reply>}
 */
async function call(method, path, {query, body, headers = {}, signal, mostMs, changes = false}) {
  const limit = AbortSignal.timeout(mostMs);
  /** @type {RequestInit} */
  const init = {
    method,
    headers: {Accept: 'application/json', ...headers},
    credentials: 'same-origin',
    cache: 'no-cache',
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
  };
  if (body !== undefined) {
    init.body = toJson(body);
    init.headers = {...init.headers, 'Content-Type': 'application/json'};
  }
  let response, text;
  try {
    response = await fetch(address(path, query), init);
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    const why = limit.aborted ? `no answer within ${mostMs / 1000} s` : 'the gateway cannot be reached';
    throw new Problem(changes ? 'unknown' : 'unreachable', why);
  }
  const request = response.headers.get('Sluice-Request') ?? '';
  if (!response.ok) throw problem(response, text, request, changes);
  const data = text ? jsonOr(text, undefined) : null;
  if (data === undefined)
    throw new Problem(changes ? 'unknown' : 'unreachable', 'what answered is not the gateway: it sent no JSON', {
      status: response.status,
    });
  return {data, etag: response.headers.get('ETag') ?? '', request, status: response.status};
}

/** JSON text as data, `or` if it is none. @param {string} text @param {any} or */
function jsonOr(text, or) {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return or;
    throw error;
  }
}

/** @type {Record<number, ProblemKind>} */
const KINDS = {401: 'login', 403: 'forbidden', 404: 'missing', 412: 'changed', 429: 'busy', 503: 'busy'};

/** @param {Response} response @param {string} text @param {string} request @param {boolean} changes */
function problem(response, text, request, changes) {
  // A proxy may answer in the gateway's place, in HTML or with JSON of its own.
  const facts = jsonOr(text, null) ?? {};
  const {status} = response;
  // Of 503 the gateway says that nothing was done; of other faults nobody knows.
  const unknown = changes && status >= 500 && status !== 503;
  return new Problem(
    unknown ? 'unknown' : (KINDS[status] ?? (status >= 500 ? 'unreachable' : 'refused')),
    facts.detail ?? `${status} ${response.statusText}`.trim(),
    {status, reason: facts.reason, request, retryAfterMs: Number(response.headers.get('Retry-After') ?? 0) * 1000},
  );
}
