/** The key-value tables of all scopes or one. */
import '../parts/past-style.js';
import {html} from '../core/html.js';
import {number} from '../core/format.js';
import {State} from '../parts/badges.js';
import {cli} from '../parts/cli.js';
import {ListInScopes, nameColumn} from '../parts/scopes.js';
import {column} from '../parts/table.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {Column, InScope} from '../parts/types.d.ts' */
/** @import {TableItem} from 'api' */

export const title = () => 'Tables';

/** @type {Column<InScope<TableItem>>[]} */
const COLUMNS = [
  nameColumn('tables', 'Table'),
  column('state', 'State', (row) => html`<${State} state=${row.state} unreachable=${row.unreachable} />`, {
    width: '108px',
  }),
  column('partitions', 'Partitions', (row) => number(row.partitionCount), {width: '108px', num: true}),
];

/** @param {{query: Filters}} props */
export default function Tables({query}) {
  return html`<${ListInScopes} query=${query} title="Tables" page="tables" kind="tables" columns=${COLUMNS}
    command="table" placeholder="name of a table" emptyText="No key-value table."
    emptyCli=${cli`table create ${'demo/settings'} --partitions 4 --key-bytes 16`} />`;
}
