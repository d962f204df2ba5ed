/**
 * What lies in scopes, gathered over all of them or one: reader groups, tables. Scopes are read one after the other.
 */
import {html, onText, useEffect, useMemo, useState} from '../core/html.js';
import {api, isAddressable, Problem, under} from '../core/api.js';
import {setQuery, href} from '../core/router.js';
import {useResource} from '../core/store.js';
import {number} from '../core/format.js';
import {Cli, quoted} from './cli.js';
import {NameLink} from './name-link.js';
import {Panel} from './panel.js';
import {Table, column} from './table.js';
import {Select} from './choice.js';
/** @import {ResourceView} from '../core/types.d.ts' */
/** @import {Column, InScope, Order} from './types.d.ts' */
/** @import {ScopeItem} from 'api' */

const MAX_SCOPES = 200;
const MAX_ITEMS = 10_000;
const PAGE = 1000;
/** So many rows are fetched at most, each by a call of its own, for a list to be ordered by what they say. */
const MAX_FETCHED = 100;
const LISTED = /^(scope|group|table):/;

/**
 * @param {'readergroups' | 'tables'} kind
 * @param {string | undefined} scope one; without it all, of which the first 200 are read
 * @returns {ResourceView & {scopes: string[], cut: string}} `data.items` with `scope`; `cut` says where it ends, if
 *   there is more
 */
function useInScopes(kind, scope) {
  const found = useResource(kind, {
    query: {scope},
    of: [scope ? `scope:${scope}` : '*'],
    keep: true,
    read: (signal) => read(kind, scope, signal),
    when: ({aggregate}) => LISTED.test(aggregate),
  });
  return {...found, scopes: found.data?.scopes ?? [], cut: found.data?.cut ?? ''};
}

/** @param {'readergroups' | 'tables'} kind @param {string | undefined} scope @param {AbortSignal} signal */
async function read(kind, scope, signal) {
  const listed = await api.get('scopes', {query: {limit: PAGE}, signal});
  const scopes = listed.items.map((/** @type {ScopeItem} */ one) => one.name);
  const wanted = scope ? [scope] : scopes.slice(0, MAX_SCOPES);
  /** @type {any[]} */
  const items = [];
  let after,
    done = 0;
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
    return await api.get(`${under`scopes/${scope}`}/${kind}`, {query: {limit: PAGE, after}, signal});
  } catch (error) {
    if (error instanceof Problem && error.kind === 'missing') return {items: []};
    throw error;
  }
}

/** @param {{scopes: string[], scope: string | undefined}} props */
function ScopeChoice({scopes, scope}) {
  const options = [['', 'all'], ...scopes.map((name) => [name, name])];
  return html`<label>Scope <${Select} value=${scope ?? ''} options=${options}
    onChange=${(text) => setQuery({scope: text})} />
  </label>`;
}

/** The column of names, each a link to its page. @param {string} page @param {string} title */
export function nameColumn(page, title) {
  const link = (/** @type {InScope<{name: string}>} */ {scope, name}) =>
    html`<${NameLink} ...${{scope, name}} to=${href([page, scope, name])} />`;
  return column('name', title, link, {width: '240px', sort: true});
}

/**
 * Fetches what a row is ordered by, and draws nothing.
 * @param {{row: any, order: Order, take: (rank: string | number) => void}} props
 */
function Fetched({row, order, take}) {
  const {data} = useResource(order.path?.(row) ?? null, order.options);
  const rank = data && order.of(data);
  useEffect(() => {
    if (rank !== undefined) take(rank);
  }, [rank]);
  return null;
}

/** @type {Order} */
const BY_NAME = {of: (row) => `${row.scope}/${row.name}`};

/**
 * The page of a list: what there is of a kind in all scopes or one, found by name.
 * @param {object} props @param {Record<string, string>} props.query
 * @param {string} props.title @param {string} props.page of one of them, in addresses
 * @param {'readergroups' | 'tables'} props.kind
 * @param {Column[]} props.columns @param {string} props.command of the command line @param {string} props.placeholder
 * @param {Record<string, Order>} [props.orders] by the columns that it is ordered by, beside the name
 * @param {(row: any) => string[]} [props.also] names that it is found by, too
 * @param {string} props.emptyText @param {string} props.emptyCli
 */
export function ListInScopes({
  query,
  title,
  page,
  kind,
  columns,
  command,
  placeholder,
  orders = {},
  also,
  emptyText,
  emptyCli,
}) {
  const found = useInScopes(kind, query.scope);
  const q = (query.q ?? '').toLowerCase();
  const rows = useMemo(() => {
    const names = (/** @type {any} */ row) => [`${row.scope}/${row.name}`, ...(also?.(row) ?? [])];
    return (found.data?.items ?? []).filter((/** @type {any} */ row) =>
      names(row).some((one) => one.toLowerCase().includes(q)),
    );
  }, [found.data, q]);
  const {sort = 'name'} = query;
  const by = sort.replace('-', ''),
    order = orders[by] ?? BY_NAME;
  const [ranks, setRanks] = useState(/** @type {Map<string, any>} */ (new Map()));
  const keyOf = (/** @type {any} */ row) => `${by} ${row.scope}/${row.name}`;
  const ordered = useMemo(() => {
    const down = sort.startsWith('-') ? -1 : 1;
    // What is not known is less than everything.
    const rank = (/** @type {any} */ row) => (order.path ? (ranks.get(keyOf(row)) ?? -Infinity) : order.of(row));
    return rows
      .map((/** @type {any} */ row) => ({row, rank: rank(row)}))
      .sort((/** @type {any} */ one, /** @type {any} */ two) =>
        one.rank < two.rank ? -down : one.rank > two.rank ? down : 0,
      )
      .map((/** @type {any} */ {row}) => row);
  }, [rows, sort, ranks]);
  const line = query.scope ? `sluice ${command} list ${quoted(query.scope)}` : 'sluice scope list';
  return html`<div class="page fill">
    <div class="title"><h1>${title}</h1><span class="tools"><${Cli} line=${line} /></span></div>
    <div class="filters">
      <input type="search" aria-label=${placeholder} placeholder=${placeholder} value=${query.q ?? ''}
        onInput=${onText((text) => setQuery({q: text}))} />
      <${ScopeChoice} scopes=${found.scopes} scope=${query.scope} />
      ${
        found.data &&
        html`<span class="muted">${number(rows.length)} of ${number(found.data.items.length)}
        ${found.cut}</span>`
      }
      ${
        order.path &&
        rows.length > MAX_FETCHED &&
        html`<span class="warn">Of the first ${MAX_FETCHED} by name it is known: a scope or a name shows others.</span>`
      }
    </div>
    ${
      order.path &&
      rows.slice(0, MAX_FETCHED).map(
        (/** @type {any} */ row) => html`<${Fetched} key=${keyOf(row)} row=${row} order=${order}
          take=${(/** @type {any} */ rank) => setRanks((old) => new Map(old).set(keyOf(row), rank))} />`,
      )
    }
    <${Panel} of=${found} flush class="fill" emptyText=${emptyText} emptyCli=${emptyCli}>
      ${() => html`<${Table} label=${title} rows=${ordered} columns=${columns} sort=${sort}
        onSort=${(/** @type {string} */ next) => setQuery({sort: next === 'name' ? '' : next})}
        rowKey=${(row) => `${row.scope}/${row.name}`} open=${(row) => href([page, row.scope, row.name])} />`}
    <//>
  </div>`;
}
