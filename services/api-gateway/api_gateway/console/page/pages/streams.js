/** All streams: where one is, and which are odd. Filters and order stand in the address. */
import {html, onText, useEffect, useMemo} from '../core/html.js';
import {count, number, words} from '../core/format.js';
import {href, setQuery} from '../core/router.js';
import {CreateStream, createStream} from '../parts/create-stream.js';
import {Badge, State, Tag} from '../parts/badges.js';
import {Cli, cli, quoted} from '../parts/cli.js';
import {ActionButton} from '../parts/dialog.js';
import {Age} from '../parts/link.js';
import {Empty, Failed, Panel, Skeleton} from '../parts/panel.js';
import {column, Table} from '../parts/table.js';
import {Select} from '../parts/choice.js';
import {chosen, listKey, MAX_ROWS, StreamList} from './stream-list.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {Column} from '../parts/types.d.ts' */
/** @import {StreamRow} from './types.d.ts' */

const STATES = [
  ['', 'any state'],
  ['odd', 'odd: unreachable, failing or hot'],
  ['failing', 'failing'],
  ['busy', 'with a workflow'],
  ['ACTIVE', 'active'],
  ['SEALED', 'sealed'],
  ['CREATING', 'creating'],
  ['SCALING', 'scaling'],
  ['UPDATING', 'updating'],
  ['TRUNCATING', 'truncating'],
  ['SEALING', 'sealing'],
  ['COMMITTING', 'committing'],
  ['DELETING', 'deleting'],
];

/** @type {Column<StreamRow>[]} */
const COLUMNS = [
  column(
    'name',
    'Stream',
    (row) => html`<a href=${href(['streams', row.scope, row.name])} title=${row.key}>
    <span class="muted">${row.scope}/</span><span>${row.name}</span></a>`,
    {sort: true},
  ),
  column(
    'state',
    'State',
    (row) => html`<${State} state=${row.gone ? 'gone' : row.state} unreachable=${row.gone ? 0 : row.unreachable} />`,
    {width: '112px', sort: true},
  ),
  column('segments', 'Segments', (row) => number(row.segments), {
    width: '90px',
    num: true,
    sort: true,
    hint: 'that are written to',
  }),
  column('epoch', 'Epoch', (row) => number(row.epoch), {width: '78px', num: true, sort: true}),
  column(
    'transactions',
    'Transactions',
    ({transactions}) => (transactions ? number(transactions) : html`<span class="muted">–</span>`),
    {width: '108px', num: true, sort: true, hint: 'open, waiting or ending'},
  ),
  column(
    'workflow',
    'Workflow',
    ({key, workflow, failing}) =>
      workflow &&
      html`<a href=${href('/workflows', {q: key})}>
    <${Badge} tone=${failing ? 'bad' : 'busy'}>${words(workflow)}${failing ? ' fails' : ''}<//></a>`,
    {width: '190px', sort: true},
  ),
  column(
    'decision',
    'Last decision',
    ({scope, name, lastDecision: last}) =>
      last &&
      html`<a href=${href(['streams', scope, name], {tab: 'why'})}
    title=${`${last.kind}: ${words(last.code)}`}>${words(last.code)}</a>`,
    {width: '170px', sort: true, hint: 'of the policies for scaling and retention'},
  ),
  column('tags', 'Tags', (row) => row.tags.map((tag) => html`<${Tag} key=${tag} text=${tag} />`), {width: '170px'}),
  column('changed', 'Changed', (row) => html`<${Age} at=${row.changedAt} />`, {
    width: '104px',
    num: true,
    sort: true,
    hint: 'how long ago',
  }),
];

export const title = () => 'Streams';

/** @param {{query: Filters}} props */
export default function Streams({query}) {
  const {q = '', state = '', scope = '', tag = '', sort = 'name'} = query;
  const list = useList({scope, tag, q});
  const {version, loading, problem, isWhole, loadedAt} = list.state.value;
  const rows = useMemo(
    () => chosen(list.rows.values(), {q, state, scope, tag, sort}),
    [list, version, q, state, scope, tag, sort],
  );
  const isFiltered = Boolean(q || state || scope || tag);
  const there = useMemo(() => [...list.rows.values()].filter((row) => !row.gone).length, [list, version]);
  const fitting = q || state ? `${number(rows.filter((row) => !row.gone).length)} of ` : '';
  const shown = loadedAt || list.rows.size ? `${fitting}${number(there)}${isWhole ? '' : '+'}` : '';

  return html`<div class="page fill">
    <div class="title"><h1>Streams</h1>
      <span class="muted num" role="status">${shown}${loading && list.rows.size > 0 ? ' …' : ''}</span>
      <span class="tools"><${Cli} line=${line(query)} />
        <${ActionButton} onClick=${() => createStream(scope)}>Create…<//></span></div>
    <div class="filters" role="search">
      <input type="search" aria-label="Text in scope, name or tags" placeholder="scope, name or tag" value=${q}
        onInput=${onText((text) => setQuery({q: text}))} />
      <${Select} label="State" value=${state} options=${STATES} onChange=${(text) => setQuery({state: text})} />
      <input type="text" aria-label="Scope" placeholder="scope" size="14" value=${scope}
        onChange=${onText((text) => setQuery({scope: text.trim()}))} />
      <input type="text" aria-label="Tag" placeholder="tag" size="12" value=${tag}
        onChange=${onText((text) => setQuery({tag: text.trim()}))} />
      ${
        isFiltered &&
        html`<button type="button" class="quiet"
        onClick=${() => setQuery({q: '', state: '', scope: '', tag: ''})}>Clear</button>`
      }
      ${
        !isWhole && !loading && loadedAt
          ? html`<span class="warn">More than ${number(MAX_ROWS)}: a scope, a tag or a
        name shows the others.</span>`
          : null
      }
      ${
        problem &&
        list.rows.size > 0 &&
        html`<span class="warn" role="alert">Some of these may be missing or old: ${problem.detail}</span>`
      }
    </div>
    <${Panel} class="fill" flush>
      ${
        problem && list.rows.size === 0
          ? html`<${Failed} problem=${problem} retry=${() => list.load()} />`
          : loadedAt === 0 && list.rows.size === 0
            ? html`<${Skeleton} lines=${12} />`
            : rows.length === 0
              ? isFiltered
                ? html`<${Empty} text=${`None of ${count(there, 'stream')} is like that.`} />`
                : html`<${Empty}
                  text="Streams are listed here, each with its state and what is being done with it. There is none yet."
                  cli=${cli`stream create demo/orders --segments 4`} />`
              : html`<${Table} label="Streams" rows=${rows} columns=${COLUMNS}
                rowKey=${(/** @type {StreamRow} */ row) => row.key}
                open=${(/** @type {StreamRow} */ row) => href(['streams', row.scope, row.name])}
            sort=${sort} onSort=${(/** @type {string} */ next) => setQuery({sort: next === 'name' ? '' : next})}
            marks=${list.marks} rowClass=${(/** @type {StreamRow} */ row) => (row.gone ? 'gone' : '')}
            onVisible=${(/** @type {StreamRow[]} */ seen) => (list.visible = new Set(seen.map((row) => row.key)))} />`
      }
    <//>
    <${CreateStream} />
  </div>`;
}

/** The same list on the command line. @param {Filters} query */
function line({q, state, scope, tag}) {
  const options = Object.entries({scope, tag, state: /^[A-Z]+$/.test(state ?? '') ? state : ''})
    .filter(([, value]) => value)
    .map(([name, value]) => `--${name} ${quoted(value ?? '')}`);
  return ['sluice stream find', ...(q ? [quoted(q)] : []), ...options].join(' ');
}

/**
 * The list that the gateway filters by scope and tag; by text only where there are more rows than are kept here.
 * @param {{scope: string, tag: string, q: string}} wanted
 */
function useList({scope, tag, q}) {
  const whole = useMemo(() => new StreamList({scope, tag}), [scope, tag]);
  const isTooMuch = whole.state.value.loadedAt > 0 && !whole.state.value.isWhole && q !== '';
  const key = isTooMuch ? listKey({scope, tag, q}) : '';
  const searched = useMemo(() => (key ? new StreamList({scope, tag, q}) : null), [key]);
  useEffect(() => whole.begin(), [whole]);
  useEffect(() => searched?.begin(), [searched]);
  return searched ?? whole;
}
