/** The key-value tables of all scopes or one. */
import '../parts/pages-style.js';
import {html} from '../core/html.js';
import {isAddressable, under} from '../core/api.js';
import {number} from '../core/format.js';
import {useResource} from '../core/store.js';
import {State} from '../parts/badges.js';
import {cli} from '../parts/cli.js';
import {ListInScopes, nameColumn} from '../parts/scopes.js';
import {column} from '../parts/table.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {Column, InScope} from '../parts/types.d.ts' */
/** @import {TableItem} from 'api' */

const SIZES_MS = 10_000;

export const title = () => 'Tables';

/** @type {Column<InScope<TableItem>>[]} */
const COLUMNS = [
  nameColumn('tables', 'Table'),
  column('state', 'State', (row) => html`<${State} state=${row.state} unreachable=${row.unreachable} />`, {
    width: '108px',
  }),
  column('entries', 'Entries', (row) => html`<${Entries} row=${row} />`, {
    width: '132px',
    num: true,
    hint: 'as segment stores count them, some seconds late',
  }),
  column('partitions', 'Partitions', (row) => number(row.partitionCount), {width: '108px', num: true}),
];

/** Fetched for the rows that are seen. @param {{row: InScope<TableItem>}} props */
function Entries({row}) {
  const path = isAddressable(row.name) ? under`scopes/${row.scope}/tables/${row.name}/size` : null;
  const {data, problem} = useResource(path, {every: SIZES_MS});
  if (path === null) return html`<span class="muted" title="a browser cannot address this name">–</span>`;
  if (problem && !data) return html`<span class="muted" title=${problem.detail}>–</span>`;
  if (!data) return null;
  if (data.entries === undefined) return html`<span class="muted" title="no segment store says">unknown</span>`;
  return `${data.complete ? '' : '≥ '}${number(data.entries)}`;
}

/** @param {{query: Filters}} props */
export default function Tables({query}) {
  return html`<${ListInScopes} query=${query} title="Tables" page="tables" kind="tables" columns=${COLUMNS}
    command="table" placeholder="name of a table" emptyText="No key-value table."
    emptyCli=${cli`table create ${'demo/settings'} --partitions 4 --key-bytes 16`} />`;
}
