/** The columns of a list of streams: state, what is written and held, who is behind, what was decided last. */
import {html} from '../core/html.js';
import {bytes, bytesPerS, count, number, perS, words} from '../core/format.js';
import {href} from '../core/router.js';
import {Badge, State, Tag} from '../parts/badges.js';
import {Age} from '../parts/link.js';
import {NameLink} from '../parts/name-link.js';
import {column} from '../parts/table.js';
/** @import {Column} from '../parts/types.d.ts' */
/** @import {Load, StreamLoads} from './stream-loads.js' */
/** @import {StreamRow} from './types.d.ts' */

/**
 * @param {StreamLoads} loads
 * @returns {Column<StreamRow>[]}
 */
export const columnsOf = (loads) => [
  column(
    'name',
    'Stream',
    ({scope, name}) => html`<${NameLink} ...${{scope, name}} to=${href(['streams', scope, name])} />`,
    {width: '210px', sort: true},
  ),
  column('state', 'State', (row) => html`<${Doing} row=${row} />`, {
    width: '140px',
    sort: true,
    hint: 'what fails first, then what is under way',
  }),
  column('rate', 'Rate', (row) => html`<${Rate} load=${loads.known.get(row.key)} row=${row} />`, {
    width: '98px',
    num: true,
    sort: true,
    hint: 'bytes written a second, now',
  }),
  column('size', 'Size', (row) => html`<${Size} load=${loads.known.get(row.key)} />`, {
    width: '92px',
    num: true,
    sort: true,
    hint: 'what lies between its head and its end',
  }),
  column('segments', 'Segments', (row) => number(row.segments), {
    width: '88px',
    num: true,
    sort: true,
    hint: 'that are written to',
  }),
  column('lag', 'Slowest group', (row) => html`<${Slowest} load=${loads.known.get(row.key)} />`, {
    width: '160px',
    num: true,
    sort: true,
    hint: 'the reader group that has most of it yet to read, and how much',
  }),
  column(
    'transactions',
    'Transactions',
    ({transactions}) => (transactions ? number(transactions) : html`<span class="muted">–</span>`),
    {width: '104px', num: true, sort: true, hint: 'open, waiting or ending'},
  ),
  column(
    'decision',
    'Last decision',
    ({scope, name, lastDecision: last}) =>
      last &&
      html`<a href=${href(['streams', scope, name], {tab: 'why'})}
    title=${`${last.kind}: ${words(last.code)}`}>${words(last.code)}</a>`,
    {width: '124px', sort: true, hint: 'of the policies for scaling and retention'},
  ),
  column('tags', 'Tags', (row) => row.tags.map((tag) => html`<${Tag} key=${tag} text=${tag} />`), {width: '100px'}),
  column('changed', 'Changed', (row) => html`<${Age} at=${row.changedAt} />`, {
    width: '92px',
    num: true,
    sort: true,
    hint: 'how long ago',
  }),
];

/** The workflow that it is in, with whether that fails; else its state. @param {{row: StreamRow}} props */
function Doing({row: {key, gone, state, unreachable, workflow, failing}}) {
  if (gone || unreachable || !workflow)
    return html`<${State} state=${gone ? 'gone' : state} unreachable=${gone ? 0 : unreachable} />`;
  return html`<a href=${href('/workflows', {q: key})}>
    <${Badge} tone=${failing ? 'bad' : 'busy'}>${words(workflow)}${failing ? ' fails' : ''}<//></a>`;
}

/** Of what is not known it is said why. @param {{why: string}} props */
function Unknown({why}) {
  return html`<span class="muted" title=${why}>–</span>`;
}

const MEASURING = 'not measured yet, or a segment store does not answer';

/** @param {{load: Load | undefined, row: StreamRow}} props */
function Rate({load, row}) {
  if (row.segments === 0) return html`<${Unknown} why="nothing can be written to it" />`;
  if (load?.bytesPerS === undefined) return html`<${Unknown} why=${MEASURING} />`;
  const events = load.eventsPerS === undefined ? 'events are not counted' : `${perS(load.eventsPerS)} events`;
  const least = load.complete ? '' : '≥ ';
  const tone = load.bytesPerS > 0 ? '' : 'muted';
  return html`<span class=${tone} title=${events}>${least}${bytesPerS(load.bytesPerS)}</span>`;
}

/** @param {{load: Load | undefined}} props */
function Size({load}) {
  if (load?.bytes === undefined) return html`<${Unknown} why=${MEASURING} />`;
  return `${load.complete ? '' : '≥ '}${bytes(load.bytes)}`;
}

/** @param {{load: Load | undefined}} props */
function Slowest({load}) {
  if (load?.groups === 0) return html`<${Unknown} why="no reader group reads it" />`;
  if (!load?.slowest)
    return html`<${Unknown} why="not known yet how far its groups are, or a store does not answer" />`;
  const {name, bytes: lag, complete} = load.slowest;
  const [scope, group] = name.split('/');
  const more = load.unknownGroups ? `, of ${count(load.unknownGroups, 'other')} it is not known` : '';
  return html`<a class="pair" href=${href(['groups', scope, group])} title=${`${name}: ${bytes(lag)} behind${more}`}>
    <span class="muted cut">${group}</span><span>${complete ? '' : '≥ '}${bytes(lag)}</span></a>`;
}
