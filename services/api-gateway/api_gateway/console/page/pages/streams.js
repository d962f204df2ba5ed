/** All streams: where one is, and which are odd. Filters and order stand in the address. */
import {html, onText, useEffect, useMemo} from '../core/html.js';
import {count, number} from '../core/format.js';
import {href, setQuery} from '../core/router.js';
import {CreateStream, createStream} from '../parts/create-stream.js';
import {Cli, cli, quoted} from '../parts/cli.js';
import {ActionButton} from '../parts/dialog.js';
import {Empty, Failed, Panel, Skeleton} from '../parts/panel.js';
import {Table} from '../parts/table.js';
import {Select} from '../parts/choice.js';
import {columnsOf} from './stream-columns.js';
import {AT_ONCE, chosen, listKey, MAX_ROWS, StreamList} from './stream-list.js';
import {LOAD_ORDERS, StreamLoads} from './stream-loads.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {StreamRow} from './types.d.ts' */
/** @import {Load} from './stream-loads.js' */

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

export const title = () => 'Streams';

/** @param {{query: Filters}} props */
export default function Streams({query}) {
  const {q = '', state = '', scope = '', tag = '', sort = 'name'} = query;
  const list = useList({scope, tag, q});
  const {version, loading, problem, isWhole, loadedAt} = list.state.value;
  const loads = useMemo(() => new StreamLoads(), []);
  useEffect(() => loads.begin(), [loads]);
  const columns = useMemo(() => columnsOf(loads), [loads]);
  const load = /** @type {((load: Load) => number) | undefined} */ (LOAD_ORDERS[sort.replace('-', '')]);
  const measured = loads.version.value;
  const rows = useMemo(() => {
    const order = load && ((/** @type {StreamRow} */ {key}) => loads.rank(key, load));
    return chosen(list.rows.values(), {q, state, scope, tag, sort}, order);
  }, [list, version, q, state, scope, tag, sort, load ? measured : 0]);
  loads.wanted = () => {
    const isShort = load && rows.length <= AT_ONCE;
    const unknown = isShort ? rows.filter(({key, gone}) => !gone && !list.visible.has(key)) : [];
    return [...list.visible, ...unknown.map(({key}) => key)];
  };
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
        load &&
        rows.length > AT_ONCE &&
        html`<span class="muted">In order of what is known: of the ${number(measuredOf(loads, rows))} that were looked
          at.</span>`
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
              : html`<${Table} label="Streams" rows=${rows} columns=${columns}
                rowKey=${(/** @type {StreamRow} */ row) => row.key}
                open=${(/** @type {StreamRow} */ row) => href(['streams', row.scope, row.name])}
            sort=${sort} onSort=${(/** @type {string} */ next) => setQuery({sort: next === 'name' ? '' : next})}
            marks=${list.marks} rowClass=${(/** @type {StreamRow} */ row) => (row.gone ? 'gone' : '')}
            onVisible=${(/** @type {StreamRow[]} */ seen) => {
              list.visible = new Set(seen.filter((row) => !row.gone).map((row) => row.key));
              loads.moved();
            }} />`
      }
    <//>
    <${CreateStream} />
  </div>`;
}

/** Of how many it is known. @param {StreamLoads} loads @param {StreamRow[]} rows */
const measuredOf = (loads, rows) => rows.filter(({key}) => loads.known.has(key)).length;

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
