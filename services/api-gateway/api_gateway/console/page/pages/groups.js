/** Who reads what, how far behind: the reader groups of all scopes or one, with their lag in bytes. */
import '../parts/pages-style.js';
import {html} from '../core/html.js';
import {isAddressable, under} from '../core/api.js';
import {bytes, duration, number} from '../core/format.js';
import {useResource} from '../core/store.js';
import {Badge, State} from '../parts/badges.js';
import {cli} from '../parts/cli.js';
import {split} from '../parts/decision-list.js';
import {Age, StreamLink} from '../parts/link.js';
import {ListInScopes, nameColumn} from '../parts/scopes.js';
import {column} from '../parts/table.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {Column, InScope, Order} from '../parts/types.d.ts' */
/** @import {GroupItem, GroupReadersModel, Lag} from 'api' */

const READERS = {query: {age: false}, every: 10_000};
/** From this age on a lag is marked. */
const OLD_MS = 60_000;

export const title = () => 'Reader groups';

/** @type {Column<InScope<GroupItem>>[]} */
const COLUMNS = [
  nameColumn('groups', 'Reader group'),
  column('state', 'State', (row) => html`<${State} state=${row.state} />`, {width: '96px', sort: true}),
  column('bytes', 'Lag', (row) => html`<${Reading} row=${row} of="bytes" />`, {
    width: '112px',
    num: true,
    sort: true,
    hint: 'bytes between the readers and the end',
  }),
  column('readers', 'Readers', (row) => html`<${Reading} row=${row} of="readers" />`, {
    width: '84px',
    num: true,
    sort: true,
  }),
  column('checkpoint', 'Last checkpoint', (row) => html`<${Reading} row=${row} of="checkpoint" />`, {
    width: '136px',
    num: true,
    sort: true,
    hint: 'how long ago it last reported a cut, as groups with retention do',
  }),
  column('streams', 'Reads', (row) => html`<${Streams} names=${row.streams} />`, {width: '320px'}),
];

/** @param {InScope<GroupItem>} row */
const pathOf = ({scope, name}) => (isAddressable(name) ? under`scopes/${scope}/readergroups/${name}/readers` : null);

/** @param {(data: GroupReadersModel) => number | bigint | undefined} of @returns {Order} */
const byReading = (of) => ({path: pathOf, options: READERS, of: (data) => Number(of(data) ?? -Infinity)});

const ORDERS = {
  state: {of: (/** @type {GroupItem} */ {state}) => state},
  bytes: byReading(({lag}) => lag?.bytes),
  readers: byReading(({readers}) => readers.length),
  // How long ago.
  checkpoint: byReading(({checkpointAt}) => checkpointAt && -checkpointAt),
};

/** @param {{query: Filters}} props */
export default function Groups({query}) {
  return html`<${ListInScopes} query=${query} title="Reader groups" page="groups" kind="readergroups" columns=${COLUMNS}
    orders=${ORDERS} command="reader-group" placeholder="name of a group or a stream"
    also=${(/** @type {GroupItem} */ row) => row.streams}
    emptyText="No reader group. Readers that share a stream form one."
    emptyCli=${cli`reader-group create ${'demo/readers'} --stream ${'demo/orders'}`} />`;
}

/** @param {{names: string[]}} props */
function Streams({names}) {
  return html`<span title=${names.join(', ')}>
    ${names.slice(0, 3).map((name) => html`<${StreamLink} key=${name} ...${split(name)} tab="readers" /> `)}
    ${names.length > 3 ? `and ${names.length - 3} more` : ''}</span>`;
}

/**
 * What a group's readers come to; fetched for the rows that are seen. How old what they have not read is takes a search
 * of the past for each stream: the group's own page has that.
 * @param {{row: InScope<GroupItem>, of: 'readers' | 'bytes' | 'checkpoint'}} props
 */
function Reading({row, of}) {
  const path = pathOf(row);
  const {data, problem} = useResource(path, READERS);
  if (path === null) return html`<span class="muted" title="a browser cannot address this name">–</span>`;
  if (problem && !data) return html`<span class="muted" title=${problem.detail}>–</span>`;
  if (!data) return null;
  if (of === 'readers') return number(data.readers.length);
  if (of === 'checkpoint')
    return data.checkpointAt
      ? html`<${Age} at=${data.checkpointAt} />`
      : html`<span class="muted" title="it has reported no cut: groups without retention do not">none reported</span>`;
  return html`<${Behind} lag=${data.lag} complete=${data.complete} of=${of} />`;
}

/** @param {{lag: Lag | undefined, complete: boolean, of: 'bytes' | 'ms'}} props */
export function Behind({lag, complete, of}) {
  if (lag && lag.bytes === undefined)
    return html`<span class="muted" title="a stream of it does not exist, or no store says">unknown</span>`;
  if (!lag || (of === 'ms' && lag.ms === undefined))
    return html`<span class="muted" title="not known: it takes samples of a retention policy">–</span>`;
  const text = `${complete === false ? '≥ ' : ''}${of === 'bytes' ? bytes(lag.bytes) : duration(lag.ms)}`;
  return of === 'ms' && (lag.ms ?? 0) > OLD_MS
    ? html`<${Badge} tone="warn">${text}<//>`
    : html`<span class="num">${text}</span>`;
}
