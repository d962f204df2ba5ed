/**
 * All pages of the page, by address. This is the place where one is added.
 *
 * A page is a module in `pages/` that exports
 *   `title(params)`  the text of the browser's tab, and
 *   `default`        a Preact component that gets `{params, query, at}`: the names in the address, its filters
 *                    (an object of strings), and the past moment as it stands in the address, or null for now.
 * It is loaded when its address is first opened. An entry here has
 *   `path`  the address behind `#`; `:name` takes one part of it (decoded), and arrives in `params`
 *   `label` in the navigation, with `group`; without a label the page is reached by links alone
 *   `key`   the second key of `g …`
 *   `past`  whether it can show a past moment; the others say that they show now
 *
 * What a page is made of (each file says more at its head):
 * core/html.js `html`, hooks and signals parts/panel.js `Panel`: loading, empty, stale, refused, gone
 *   core/store.js   `useResource(path, {query, of})`: data   parts/table.js   `Table`: virtual rows, keys, sorting
 *                   that are fetched anew when they change   parts/dialog.js  `act({...})`: every action
 *   core/api.js     `api.get`, `api.send`, `Problem`         parts/link.js    `Time`, `Age`, `StreamLink`, `IdLink` …
 *   core/router.js  `href`, `navigate`, `setQuery`           parts/cli.js     `Cli`: copy as `sluice …`
 *   core/live.js    `onRates`, connection, pause             parts/badges.js  `Badge`, `State`, `Beads`
 *   core/time.js    `at`, `clock`, `moment()`                parts/lines.js   `Lines`: uPlot
 *   core/format.js  numbers, bytes, durations, times, cuts
 */
/** @import {Route} from './types.d.ts' */

/** @type {Route[]} */
export const routes = [
  {path: '/', label: 'Overview', key: 'o', load: () => import('../pages/overview.js')},
  {path: '/workflows', label: 'Workflows', key: 'w', load: () => import('../pages/workflows.js')},
  {path: '/dead-letters', label: 'Dead letters', key: 'l', load: () => import('../pages/dead-letters.js')},

  {path: '/streams', label: 'Streams', group: 'Data', key: 's', load: () => import('../pages/streams.js')},
  {path: '/streams/:scope/:stream', past: true, load: () => import('../pages/stream.js')},
  {path: '/scopes/:scope', past: true, load: () => import('../pages/scope.js')},
  {
    path: '/transactions',
    label: 'Transactions',
    group: 'Data',
    key: 'x',
    load: () => import('../pages/transactions.js'),
  },
  {path: '/groups', label: 'Reader groups', group: 'Data', key: 'r', load: () => import('../pages/groups.js')},
  {path: '/groups/:scope/:group', past: true, load: () => import('../pages/group.js')},
  {path: '/tables', label: 'Tables', group: 'Data', key: 't', load: () => import('../pages/tables.js')},
  {path: '/tables/:scope/:table', past: true, load: () => import('../pages/one-table.js')},

  {
    path: '/decisions',
    label: 'Decisions',
    group: 'Why',
    key: 'd',
    past: true,
    load: () => import('../pages/decisions.js'),
  },
  {path: '/journal', label: 'Journal', group: 'Why', key: 'j', past: true, load: () => import('../pages/journal.js')},
  {path: '/requests', label: 'Requests', group: 'Why', key: 'q', load: () => import('../pages/requests.js')},
  {path: '/requests/:id', load: () => import('../pages/request.js')},

  {
    path: '/cluster',
    label: 'Cluster',
    group: 'System',
    key: 'c',
    past: true,
    load: () => import('../pages/cluster.js'),
  },
];
