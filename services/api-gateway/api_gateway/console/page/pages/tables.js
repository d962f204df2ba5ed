// @ts-check
/** The key-value tables of all scopes or one. */
import '../parts/past-style.js';
import {html, useMemo} from '../core/html.js';
import {number} from '../core/format.js';
import {href, setQuery} from '../core/router.js';
import {State} from '../parts/badges.js';
import {cli, Cli} from '../parts/cli.js';
import {Panel} from '../parts/panel.js';
import {ScopeChoice, useInScopes} from '../parts/scopes.js';
import {Table} from '../parts/table.js';

export const title = () => 'Tables';

/** @param {{query: Record<string, string>}} props */
export default function Tables({query}) {
  const found = useInScopes('tables', query.scope);
  const q = (query.q ?? '').toLowerCase();
  const rows = useMemo(() => (found.data?.items ?? []).filter((/** @type {any} */ one) => `${one.scope}/${one.name}`.toLowerCase().includes(q)), [found.data, q]);
  return html`<div class="page fill">
    <div class="title"><h1>Tables</h1><span class="tools"><${Cli} line=${query.scope ? cli`table list ${query.scope}` : 'sluice table list SCOPE'} /></span></div>
    <div class="filters">
      <input type="search" aria-label="Name of a table" placeholder="name of a table" value=${query.q ?? ''} onInput=${(/** @type {any} */ event) => setQuery({q: event.currentTarget.value})} />
      <${ScopeChoice} scopes=${found.scopes} scope=${query.scope} />
      ${found.data ? html`<span class="muted">${number(rows.length)} of ${number(found.data.items.length)}${found.cut}</span>` : null}
    </div>
    <${Panel} of=${found} flush=${true} class="fill" empty=${(/** @type {any} */ data) => data.items.length === 0}
      emptyText="No key-value table." emptyCli=${cli`table create ${'demo/settings'} --partitions 4 --key-bytes 16`}>
      ${() => html`<${Table} label="Key-value tables" rows=${rows} columns=${COLUMNS} rowKey=${(/** @type {any} */ row) => `${row.scope}/${row.name}`}
        open=${(/** @type {any} */ row) => href(['tables', row.scope, row.name])} />`}
    <//>
  </div>`;
}

const COLUMNS = [
  {key: 'name', title: 'Table', cell: (/** @type {any} */ row) => html`<a href=${href(['tables', row.scope, row.name])}><span class="muted">${row.scope}/</span>${row.name}</a>`},
  {key: 'state', title: 'State', width: '108px', cell: (/** @type {any} */ row) => html`<${State} state=${row.state} unreachable=${row.unreachable} />`},
  {key: 'partitions', title: 'Partitions', width: '108px', num: true, cell: (/** @type {any} */ row) => number(row.partitionCount)},
];
