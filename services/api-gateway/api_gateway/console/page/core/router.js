/**
 * The address behind `#`: which page, with which names, filters and moment.
 *
 * Everything that a view consists of stands there, so that back, forward, reload and a shared link give the same view.
 * What lies before `#` is the proxy's matter and is never looked at.
 */
import {computed, signal} from './html.js';
/** @import {Place, Route} from './types.d.ts' */

/** What stands behind `#`, as the browser has it. */
const fragment = signal(location.hash);

/** The pages that there are. They lead to others by links, so who knows all of them hands them over: `main.js`. */
export const routes = signal(/** @type {Route[]} */ ([]));

const compiled = computed(() => routes.value.map((route) => ({route, parts: split(route.path)})));

/** The place that is shown. @type {import('@preact/signals').ReadonlySignal<Place>} */
export const place = computed(() => parse(fragment.value));

/** Changes with the page, not with its filters: which page is shown, as text. */
export const pageKey = computed(() => place.value.path);

/** @param {string} path @returns {string[]} */
function split(path) {
  return path.split('/').filter((part) => part !== '');
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}

/** @param {string} hash @returns {Place} */
export function parse(hash) {
  const [path, search = ''] = hash.replace(/^#/, '').split(/\?(.*)/s);
  const found = split(path).map(decoded);
  const query = Object.fromEntries(new URLSearchParams(search));
  const at = query.at || null;
  delete query.at;
  for (const {route, parts} of compiled.value) {
    const params = match(parts, found);
    if (params) return {path: path || '/', params, query, at, route};
  }
  return {path, params: {}, query, at, route: null};
}

/** @param {string[]} parts @param {string[]} found */
function match(parts, found) {
  if (parts.length !== found.length) return null;
  /** @type {Record<string, string>} */
  const params = {};
  for (let index = 0; index < parts.length; index++) {
    if (parts[index].startsWith(':')) params[parts[index].slice(1)] = found[index];
    else if (parts[index] !== found[index]) return null;
  }
  return params;
}

/**
 * The link to a place, `#/…`. The moment that is shown goes along, unless `query.at` says otherwise ('' is now).
 * @param {string | string[]} path a fixed path as text, or its parts, which are encoded here
 * @param {Record<string, string | number | bigint | null | undefined>} [query] what is empty is left out
 */
export function href(path, query = {}) {
  const text = Array.isArray(path) ? `/${path.map(encodeURIComponent).join('/')}` : path;
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (name !== 'at' && value !== undefined && value !== null && value !== '') search.set(name, String(value));
  }
  const at = 'at' in query ? query.at : place.value.at;
  if (at) search.set('at', String(at));
  const filters = search.toString();
  return `#${text}${filters ? `?${filters}` : ''}`;
}

/** Go to a link that `href` gave. `replace` leaves no step for "back". @param {string} link */
export function navigate(link, {replace = false} = {}) {
  if (link === fragment.peek()) return;
  if (replace) history.replaceState(null, '', link);
  else history.pushState(null, '', link);
  show(link);
}

/**
 * Change filters of the place that is shown and keep the others; '' or null takes one away.
 * @param {Record<string, string | number | null | undefined>} changes
 */
export function setQuery(changes, {replace = true} = {}) {
  const {path, query, at} = place.peek();
  navigate(href(path, {...query, at, ...changes}), {replace});
}

/** @param {string} hash */
function show(hash) {
  fragment.value = hash;
}

addEventListener('popstate', () => show(location.hash));
addEventListener('hashchange', () => show(location.hash));
