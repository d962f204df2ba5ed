// @ts-check
/** Who reads what, how far behind: the reader groups of all scopes or one, with their lag in bytes. */
import '../parts/past-style.js';
import {html, useMemo} from '../core/html.js';
import {isAddressable, under} from '../core/api.js';
import {bytes, duration, number} from '../core/format.js';
import {href, setQuery} from '../core/router.js';
import {useResource} from '../core/store.js';
import {Badge, State} from '../parts/badges.js';
import {cli, Cli} from '../parts/cli.js';
import {split} from '../parts/decision-list.js';
import {StreamLink} from '../parts/link.js';
import {Panel} from '../parts/panel.js';
import {ScopeChoice, useInScopes} from '../parts/scopes.js';
import {Table} from '../parts/table.js';

const READERS_MS = 10_000;
/** From this age on a lag is marked. */
const OLD_MS = 60_000;

export const title = () => 'Reader groups';

/** @param {{query: Record<string, string>}} props */
export default function Groups({query}) {
  const found = useInScopes('readergroups', query.scope);
  const q = (query.q ?? '').toLowerCase();
  const rows = useMemo(() => (found.data?.items ?? []).filter((/** @type {any} */ one) =>
    `${one.scope}/${one.name}`.toLowerCase().includes(q) || one.streams.some((/** @type {string} */ name) => name.toLowerCase().includes(q))), [found.data, q]);
  return html`<div class="page fill">
    <div class="title"><h1>Reader groups</h1><span class="tools"><${Cli} line=${query.scope ? cli`reader-group list ${query.scope}` : 'sluice reader-group list SCOPE'} /></span></div>
    <div class="filters">
      <input type="search" aria-label="Name of a group or a stream" placeholder="name of a group or a stream" value=${query.q ?? ''} onInput=${(/** @type {any} */ event) => setQuery({q: event.currentTarget.value})} />
      <${ScopeChoice} scopes=${found.scopes} scope=${query.scope} />
      ${found.data ? html`<span class="muted">${number(rows.length)} of ${number(found.data.items.length)}${found.cut}</span>` : null}
    </div>
    <${Panel} of=${found} flush=${true} class="fill" empty=${(/** @type {any} */ data) => data.items.length === 0}
      emptyText="No reader group. Readers that share a stream form one." emptyCli=${cli`reader-group create ${'demo/readers'} --stream ${'demo/orders'}`}>
      ${() => html`<${Table} label="Reader groups" rows=${rows} columns=${COLUMNS} rowKey=${(/** @type {any} */ row) => `${row.scope}/${row.name}`}
        open=${(/** @type {any} */ row) => href(['groups', row.scope, row.name])} />`}
    <//>
  </div>`;
}

const COLUMNS = [
  {key: 'name', title: 'Reader group', cell: (/** @type {any} */ row) => html`<a href=${href(['groups', row.scope, row.name])}><span class="muted">${row.scope}/</span>${row.name}</a>`},
  {key: 'state', title: 'State', width: '96px', cell: (/** @type {any} */ row) => html`<${State} state=${row.state} />`},
  {key: 'streams', title: 'Reads', cell: (/** @type {any} */ row) => html`<${Streams} names=${row.streams} />`},
  {key: 'readers', title: 'Readers', width: '84px', num: true, cell: (/** @type {any} */ row) => html`<${Reading} row=${row} of="readers" />`},
  {key: 'bytes', title: 'Lag', width: '108px', num: true, hint: 'bytes between the readers and the end', cell: (/** @type {any} */ row) => html`<${Reading} row=${row} of="bytes" />`},
];

/** @param {{names: string[]}} props */
function Streams({names}) {
  return html`<span title=${names.join(', ')}>${names.slice(0, 3).map((name) => html`<${StreamLink} key=${name} ...${split(name)} tab="readers" /> `)}
    ${names.length > 3 ? `and ${names.length - 3} more` : ''}</span>`;
}

/**
 * What a group's readers come to; fetched for the rows that are seen. How old what they have not read is takes a search
 * of the past for each stream: the group's own page has that.
 * @param {{row: any, of: 'readers' | 'bytes'}} props
 */
function Reading({row, of}) {
  const path = isAddressable(row.name) ? under`scopes/${row.scope}/readergroups/${row.name}/readers` : null;
  const {data, problem} = useResource(path, {query: {age: false}, every: READERS_MS});
  if (path === null) return html`<span class="muted" title="a browser cannot address this name">–</span>`;
  if (problem && !data) return html`<span class="muted" title=${problem.detail}>–</span>`;
  if (!data) return null;
  if (of === 'readers') return number(data.readers.length);
  return html`<${Lag} lag=${data.lag} complete=${data.complete} of=${of} />`;
}

/** @param {{lag: {bytes?: number, ms?: number} | undefined, complete: boolean, of: 'bytes' | 'ms'}} props */
export function Lag({lag, complete, of}) {
  if (lag && lag.bytes === undefined) return html`<span class="muted" title="a stream of it does not exist, or no store says">unknown</span>`;
  if (!lag || (of === 'ms' && lag.ms === undefined)) return html`<span class="muted" title="not known: it takes samples of a retention policy">–</span>`;
  const text = `${complete === false ? '≥ ' : ''}${of === 'bytes' ? bytes(lag.bytes) : duration(lag.ms)}`;
  return of === 'ms' && (lag.ms ?? 0) > OLD_MS ? html`<${Badge} tone="warn">${text}<//>` : html`<span class="num">${text}</span>`;
}
