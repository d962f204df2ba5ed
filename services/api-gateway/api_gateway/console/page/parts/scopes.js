// @ts-check
/** What lies in scopes, gathered over all of them or one: reader groups, tables. Scopes are read one after the other. */
import {html} from '../core/html.js';
import {api, isAddressable, Problem, under} from '../core/api.js';
import {setQuery} from '../core/router.js';
import {useResource} from '../core/store.js';

const MAX_SCOPES = 200;
const MAX_ITEMS = 10_000;
const PAGE = 1000;
const LISTED = /^(scope|group|table):/;

/**
 * @param {'readergroups' | 'tables'} kind
 * @param {string | undefined} scope one; without it all, of which the first 200 are read
 * @returns {import('../core/store.js').View & {scopes: string[], cut: string}} `data.items` with `scope`; `cut` says where it ends, if there is more
 */
export function useInScopes(kind, scope) {
  const found = useResource(kind, {
    query: {scope}, of: [scope ? `scope:${scope}` : '*'], keep: true, read: (signal) => read(kind, scope, signal),
    when: ({aggregate}) => LISTED.test(aggregate),
  });
  return {...found, scopes: found.data?.scopes ?? [], cut: found.data?.cut ?? ''};
}

/** @param {'readergroups' | 'tables'} kind @param {string | undefined} scope @param {AbortSignal} signal */
async function read(kind, scope, signal) {
  const listed = await api.get('scopes', {query: {limit: PAGE}, signal});
  const scopes = /** @type {string[]} */ (listed.items.map((/** @type {any} */ one) => one.name ?? one));
  const wanted = scope ? [scope] : scopes.slice(0, MAX_SCOPES);
  /** @type {any[]} */
  const items = [];
  let after, done = 0;
  for (const name of wanted) {
    do {
      const found = await page(name, kind, after, signal);
      items.push(...found.items.map((/** @type {any} */ item) => ({...item, scope: name})));
      after = found.next;
    } while (after && items.length < MAX_ITEMS);
    done += 1;
    if (items.length >= MAX_ITEMS) break;
  }
  const isPart = !scope && scopes.length > MAX_SCOPES;
  const cut = after || done < wanted.length ? ', and more' : isPart ? ` in the first ${MAX_SCOPES} scopes` : '';
  return {items, scopes, cut};
}

/**
 * One page of what is in a scope; an empty one of a scope that is gone, or that a browser cannot address.
 * @param {string} scope @param {string} kind @param {string | undefined} after @param {AbortSignal} signal
 */
async function page(scope, kind, after, signal) {
  if (!isAddressable(scope)) return {items: []};
  try {
    return await api.get(under`scopes/${scope}/` + kind, {query: {limit: PAGE, after}, signal});
  } catch (error) {
    if (error instanceof Problem && error.kind === 'missing') return {items: []};
    throw error;
  }
}

/** @param {{scopes: string[], scope: string | undefined}} props */
export function ScopeChoice({scopes, scope}) {
  return html`<label>Scope <select value=${scope ?? ''} onChange=${(/** @type {any} */ event) => setQuery({scope: event.currentTarget.value})}>
    <option value="">all</option>
    ${scopes.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
  </select></label>`;
}
