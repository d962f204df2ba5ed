// @ts-check
/** What lies in scopes, gathered over all of them or one: reader groups, tables. Scopes are read one after the other. */
import {html, useEffect, useState} from '../core/html.js';
import {api, Problem, under} from '../core/api.js';
import {setQuery} from '../core/router.js';
import {useResource} from '../core/store.js';

const MAX_SCOPES = 200;
const MAX_ITEMS = 10_000;
const PAGE = 1000;

/**
 * @param {'readergroups' | 'tables'} kind
 * @param {string | undefined} scope one; without it all, of which the first 200 are read
 * @returns {import('../core/store.js').View & {scopes: string[], cut: string}} `data.items` with `scope`; `cut` says where it ends, if there is more
 */
export function useInScopes(kind, scope) {
  const scopes = useResource('scopes', {query: {limit: PAGE}});
  const names = /** @type {string[]} */ ((scopes.data?.items ?? []).map((/** @type {any} */ one) => one.name ?? one));
  const wanted = scope ? [scope] : names.slice(0, MAX_SCOPES);
  const [state, setState] = useState(/** @type {any} */ ({data: undefined, problem: null, loading: true, etag: '', fetchedAt: 0}));
  const [turn, setTurn] = useState(0);
  const ready = scope !== undefined || scopes.data !== undefined;
  useEffect(() => {
    if (!ready) return undefined;
    const call = new AbortController();
    const run = async () => {
      try {
        /** @type {any[]} */
        const items = [];
        let after, read = 0;
        for (const name of wanted) {
          do {
            const found = await page(name, kind, after, call.signal);
            items.push(...found.items.map((/** @type {any} */ item) => ({...item, scope: name})));
            after = found.next;
          } while (after && items.length < MAX_ITEMS);
          read += 1;
          if (items.length >= MAX_ITEMS) break;
        }
        const cut = after || read < wanted.length ? ', and more' : !scope && names.length > MAX_SCOPES ? ` in the first ${MAX_SCOPES} scopes` : '';
        setState({data: {items, cut}, problem: null, loading: false, etag: '', fetchedAt: Date.now()});
      } catch (error) {
        if (call.signal.aborted) return;
        if (!(error instanceof Problem)) throw error;
        setState({data: undefined, problem: error, loading: false, etag: '', fetchedAt: 0});
      }
    };
    void run();
    return () => call.abort();
  }, [kind, ready, wanted.join('/'), turn]);
  const reload = () => {
    scopes.reload();
    setTurn(turn + 1);
  };
  const problem = scopes.problem && scopes.data === undefined ? scopes.problem : state.problem;
  return {...state, problem, reload, scopes: names, cut: state.data?.cut ?? ''};
}

/**
 * One page of what is in a scope; an empty one of a scope that is gone.
 * @param {string} scope @param {string} kind @param {string | undefined} after @param {AbortSignal} signal
 */
async function page(scope, kind, after, signal) {
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
