/**
 * Whether commits keep up and whose leases run out: the last hour of all streams, the streams that have transactions or
 * had some within a day, and of one the queue of its commits in order, its open transactions by lease left, and how
 * transactions ended.
 */
import '../parts/pages-style.js';
import {html, useMemo, useRef, useState} from '../core/html.js';
import {under} from '../core/api.js';
import {count, duration, number, perS, time} from '../core/format.js';
import {href} from '../core/router.js';
import {useResource} from '../core/store.js';
import {clock, inPast, now} from '../core/time.js';
import {Badge, State} from '../parts/badges.js';
import {Choice} from '../parts/choice.js';
import {cli, Cli} from '../parts/cli.js';
import {split} from '../parts/decision-list.js';
import {act, ActionButton, allowedOf} from '../parts/dialog.js';
import {Age, StreamLink, Time} from '../parts/link.js';
import {Lines} from '../parts/lines.js';
import {Panel} from '../parts/panel.js';
import {Rows} from '../parts/rows.js';
import {column, Table} from '../parts/table.js';
import {levels} from '../pictures/axis.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {Column} from '../parts/types.d.ts' */
/** @import {OfStream} from './types.d.ts' */
/** @import {CommitQueueModel, HourModel, MinuteModel, OutcomeCounts, StreamDescription} from 'api' */
/** @import {TransactionList, TransactionModel} from 'api' */
/** @import {TransactionsSummary, WaitingStreamModel} from 'api' */

const LISTED_MS = 5000;
const OUTCOMES_MS = 60_000;
const SHOWN = 1000;
const LEASE_SHORT_MS = 10_000;
const HOUR_EVERY_MS = 15_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** A rate of the minute that goes on is not of less than this. */
const LEAST_MS = 15_000;
/** @type {[string, string][]} */
const SPANS = [
  ['hour', 'an hour, by minute'],
  ['day', 'a day, by 5 min'],
];

export const title = () => 'Transactions';

/** @param {{query: Filters}} props */
export default function Transactions({query}) {
  const streams = useResource('transactions', {query: {sort: 'waiting', limit: 100}, every: LISTED_MS});
  // The first one when the page is opened, as long as it is listed: what is about to be pressed must stay its own.
  const first = useRef(/** @type {string | undefined} */ (undefined));
  const listed = (streams.data?.items ?? []).map((one) => one.stream);
  if (!first.current || !listed.includes(first.current)) first.current = listed[0];
  const chosen = query.stream ?? first.current;
  return html`<div class="page">
    <div class="title"><h1>Transactions</h1></div>
    ${inPast.value ? null : html`<${Hour} />`}
    <p class="muted">Streams with transactions now or within a day, those with the most waiting commits first; choose
      one for its queue.</p>
    <${Panel} title="Streams" of=${streams} flush
      emptyText="No stream has a transaction, or had one within a day."
      emptyCli=${cli`transaction begin ${'demo/orders'}`}>
      ${(data) => html`<${Table} label="Streams with transactions" rows=${data.items} columns=${STREAMS}
        rowKey=${(row) => row.stream} open=${(row) => href('/transactions', {stream: row.stream})}
        rowClass=${(row) => (row.stream === chosen ? 'chosen' : '')} />`}
    <//>
    ${chosen ? html`<${StreamTransactions} key=${chosen} ...${split(chosen)} heading />` : null}
  </div>`;
}

/** The last hour of all streams: do they end, does the queue of commits grow? */
function Hour() {
  const hour = useResource('overview/hour', {every: HOUR_EVERY_MS});
  return html`<${Panel} title="All streams, the last hour" of=${hour} emptyText="Nothing has happened yet.">${(
    /** @type {HourModel} */ {items, to, bucketMs},
  ) => {
    const times = items.map((one) => one.at),
      span = /** @type {[number, number]} */ ([to - HOUR_MS, to]);
    const ms = (/** @type {MinuteModel} */ one) => Math.max(Math.min(to - one.at, bucketMs), LEAST_MS);
    const rate = (/** @type {(one: MinuteModel) => number} */ of) => items.map((one) => (of(one) * 1000) / ms(one));
    const level = (/** @type {(one: MinuteModel) => number | undefined} */ of) => items.map((one) => of(one) ?? null);
    return html`<div class="halves">
      <${Lines} label="Transactions that ended, per second" times=${times} span=${span} format=${perS} height=${140}
        series=${[
          {label: 'committed', values: rate((one) => one.commits), hue: 3},
          {label: 'aborted', values: rate((one) => one.aborts), hue: 2},
        ]} />
      <${Lines} label="Queue of commits, and open transactions" times=${times} span=${span} format=${number}
        height=${140} series=${[
          {label: 'commits that wait', values: level((one) => one.waiting), hue: 3},
          {label: 'open', values: level((one) => one.open), hue: 1},
        ]} /></div>`;
  }}<//>`;
}

/**
 * The transactions of one stream; the tab of its page, too.
 * @param {OfStream & {heading?: boolean, transaction?: string}} props `transaction`: the one that is marked
 */
export function StreamTransactions({scope, stream, heading = false, transaction}) {
  const path = under`scopes/${scope}/streams/${stream}`;
  const of = [`stream:${scope}/${stream}`];
  const description = useResource(path, {of, past: true}).data;
  const commits = useResource(`${path}/commits`, {of});
  const open = useResource(`${path}/transactions`, {query: {state: 'open', limit: SHOWN}, of});
  const ended = useResource(`${path}/transactions`, {query: {state: 'ended', limit: 100}, of});
  const [span, setSpan] = useState('hour');
  const query = useMemo(
    () => (span === 'hour' ? {bucket: MINUTE_MS, from: now() - HOUR_MS} : {bucket: 300_000}),
    [span],
  );
  const summary = useResource(`${path}/transactions/summary`, {query, every: OUTCOMES_MS, keep: true});
  const searched = summary.data?.bucketMs === MINUTE_MS ? 'hour; the day may have some' : 'day';
  return html`
    ${heading ? html`<h2 class="of"><${StreamLink} scope=${scope} stream=${stream} tab="transactions" /></h2>` : null}
    <div class="columns">
      <${Panel} title="Commits, in order" of=${commits}>
        ${(data) => html`<${Queue} scope=${scope} stream=${stream} data=${data} />`}<//>
      <${Panel} title="Open, by lease left" of=${open} flush
        emptyText="No transaction is open." emptyCli=${cli`transaction begin ${`${scope}/${stream}`} --lease 30s`}>
        ${(data) => html`<${Open} scope=${scope} stream=${stream} data=${data} transaction=${transaction}
          description=${description} />`}<//>
    </div>
    <${Panel} title="How they ended" of=${summary}
      emptyText=${`None has ended in the last ${searched}.`}
      tools=${html`<${Choice} label="Span" small value=${span} options=${SPANS} onChange=${setSpan} />`}>
      ${(data) => html`<${Outcomes} data=${data} />`}<//>
    <${Panel} title="Ended lately" of=${ended} flush
      emptyText="None has ended that is remembered: two days, or 50,000 later ones.">
      ${(data) => html`<${Table} label="Transactions that ended" height=${240} rows=${data.items}
        columns=${ENDED(scope, stream)} rowKey=${(row) => row.id} />`}<//>
    <p><${Cli} line=${cli`transaction list ${`${scope}/${stream}`}`} /></p>`;
}

/** @type {Column<WaitingStreamModel>[]} */
const STREAMS = [
  column('stream', 'Stream', (row) => html`<${StreamLink} ...${split(row.stream)} tab="transactions" />`),
  column('waiting', 'Waiting', (row) => number(row.waiting), {width: '84px', num: true}),
  column('oldest', 'Oldest waits', (row) => html`<${Age} at=${row.oldestWaitingAt} />`, {width: '108px', num: true}),
  column('open', 'Open', (row) => number(row.open), {width: '84px', num: true}),
  column('aborting', 'Aborting', (row) => number(row.aborting), {width: '84px', num: true}),
  column('ended', 'Ended in a day', (row) => number(row.ended), {width: '120px', num: true}),
  column('last', 'Last ended', (row) => html`<${Age} at=${row.endedAt} />`, {width: '108px', num: true}),
];

/** @param {string} scope @param {string} stream @returns {Column<TransactionModel>[]} */
const ENDED = (scope, stream) => [
  column('at', 'Ended', (row) => html`<${Time} at=${row.endedAt} path="/journal" />`, {width: '132px'}),
  column('state', 'Outcome', (row) => html`<${State} state=${row.state.toLowerCase()} />`, {width: '108px'}),
  column('reason', 'By', (row) => row.reason ?? html`<span class="muted">–</span>`, {width: '96px'}),
  column('id', 'Transaction', (row) => html`<${TransactionLink} scope=${scope} stream=${stream} id=${row.id} />`),
];

/**
 * What the journal has of a transaction, and with it the requests that it came from.
 * @param {OfStream & {id: string, cut?: boolean}} props `cut`: its last digits alone
 */
function TransactionLink({scope, stream, id, cut = false}) {
  return html`<a class="id" href=${href('/journal', {key: `txn:${scope}/${stream}/${id}`, from: '-1d'})}
    title=${`${id}: what the journal has of it`}>${cut ? `…${id.slice(-17)}` : id}</a>`;
}

/** The batch that is merged, and those behind it. @param {OfStream & {data: CommitQueueModel}} props */
function Queue({scope, stream, data}) {
  const {batch, queue, waitsFor, waiting = queue.length} = data;
  if (!batch && queue.length === 0) return html`<p class="muted">No commit waits.</p>`;
  return html`<div class="queue" tabindex="0" role="region" aria-label="Queue of commits">
    ${waitsFor ? html`<p><${Badge} tone="warn">waits<//> ${waitsFor}</p>` : null}
    ${
      batch
        ? html`<div class="batch"><p>
          <b>Merging ${count(batch.ids.length, 'transaction')}</b> for <${Age} at=${batch.since} />
        ${batch.step ? html`, step <code>${batch.step}</code>` : null}
        ${
          batch.workflow?.attempts
            ? html` <${Badge} tone="bad">${count(batch.workflow.attempts, 'attempt')}<//> ${batch.workflow.lastError}`
            : null
        }</p>
        <${Ids} ids=${batch.ids} /></div>`
        : null
    }
    ${
      queue.length > 0
        ? html`<ol start=${queue[0].position + 1}>${queue.slice(0, SHOWN).map(
            (one) => html`
      <li key=${one.id} value=${one.position + 1}><${TransactionLink} scope=${scope} stream=${stream}
        id=${one.id} /> <span class="muted">waits <${Age} at=${one.waitsSince} /></span></li>`,
          )}</ol>`
        : null
    }
    ${waiting > queue.length ? html`<p class="muted">and ${number(waiting - queue.length)} more</p>` : null}
  </div>`;
}

/** @param {{ids: string[]}} props */
function Ids({ids}) {
  const first = ids.slice(0, 5);
  const code = (/** @type {string} */ id) => html`<code key=${id} class="id">${id}</code> `;
  return html`<p class="ids">${first.map(code)}
    ${
      ids.length > first.length
        ? html`<details><summary>${ids.length - first.length} more</summary>
      ${ids.slice(first.length).map(code)}</details>`
        : null
    }</p>`;
}

/**
 * @param {OfStream & {data: TransactionList, transaction?: string, description?: StreamDescription}} props
 *   `description` of the stream, undefined before it is there
 */
function Open({scope, stream, data, transaction, description}) {
  const rows = useMemo(() => [...data.items].sort((one, other) => leaseEnd(one) - leaseEnd(other)), [data]);
  /** @type {Column<TransactionModel>[]} */
  const columns = [
    column('left', 'Lease left', (row) => html`<${Lease} row=${row} />`, {width: '132px', num: true}),
    column('id', 'Transaction', ({id}) => html`<${TransactionLink} ...${{scope, stream, id, cut: true}} />`),
    column(
      'opened',
      'Open for',
      (row) => html`<span title=${`ends at the latest ${time(row.diesAt)}`}><${Age} at=${row.openedAt} /></span>`,
      {width: '72px', num: true},
    ),
    column(
      'acts',
      html`<span class="away">Actions</span>`,
      (row) => html`<${Acts} ...${{scope, stream, row, description}} />`,
      {width: '192px'},
    ),
  ];
  return html`<${Table} label="Open transactions" height=${Math.min(320, 40 + rows.length * 30)} rows=${rows}
    columns=${columns} rowKey=${(row) => row.id} rowClass=${(row) => (row.id === transaction ? 'chosen' : '')} />
    ${data.next ? html`<p class="muted">The first ${number(rows.length)} are shown.</p>` : null}`;
}

/** @param {TransactionModel} row of one that is open */
const leaseEnd = (row) => row.leaseEndsAt ?? 0;

/** @param {{row: TransactionModel}} props */
function Lease({row}) {
  const left = leaseEnd(row) - clock.value;
  if (left <= 0) return html`<${Badge} tone="bad" title="it may be aborted any moment">over by ${duration(-left)}<//>`;
  return left < LEASE_SHORT_MS
    ? html`<${Badge} tone="warn">${duration(left)}<//>`
    : html`<span class="num">${duration(left)}</span>`;
}

/** @param {OfStream & {row: TransactionModel, description?: StreamDescription}} props */
function Acts({scope, stream, row, description}) {
  const path = under`scopes/${scope}/streams/${stream}/transactions/${row.id}`;
  const name = `${scope}/${stream}`;
  const of = `transaction …${row.id.slice(-8)} of ${name}`;
  const commit = () =>
    act({
      title: `Commit ${of}`,
      what: 'What was written to it becomes part of the stream, behind the commits that wait.',
      verb: 'Commit',
      method: 'POST',
      path: `${path}/commit`,
      cli: cli`transaction commit ${name} ${row.id}`,
    });
  const abort = () =>
    act({
      title: `Abort ${of}`,
      what: 'What was written to it is gone.',
      verb: 'Abort',
      danger: true,
      confirm: row.id.slice(-8),
      method: 'POST',
      path: `${path}/abort`,
      cli: cli`transaction abort ${name} ${row.id}`,
    });
  const ping = () =>
    act({
      title: `Extend the lease of ${of}`,
      what: `It lives for another ${duration(row.leaseMs)} from now on.`,
      verb: 'Extend',
      method: 'POST',
      path: `${path}/ping`,
      body: {leaseMs: row.leaseMs},
      cli: cli`transaction ping ${name} ${row.id} --lease ${`${row.leaseMs}ms`}`,
    });
  const button = (/** @type {string} */ label, /** @type {() => void} */ onClick, right = label) =>
    html`<${ActionButton} small danger=${label === 'abort'} onClick=${onClick}
      allowed=${allowedOf(description, right)}>${label}<//>`;
  return html`<span class="acts">${button('commit', commit)}${button('extend', ping, 'commit')}
    ${button('abort', abort)}</span>`;
}

/** What an outcome is called in the answer, in words, and how it is drawn, from the bottom up. */
/** @type {{name: Exclude<keyof OutcomeCounts, 'at'>, label: string, look: string}[]} */
const KINDS = [
  {name: 'committed', label: 'committed', look: 'hue-3'},
  {name: 'abortedByUser', label: 'aborted by their user', look: 'hue-1'},
  {name: 'abortedByLease', label: 'lease ran out', look: 'hue-2 hatched'},
  {name: 'abortedBySeal', label: 'stream sealed', look: 'hue-6'},
  {name: 'abortedByRestore', label: 'open in a back-up', look: 'hue-5 hatched'},
];

/** @param {{data: TransactionsSummary}} props */
function Outcomes({data}) {
  const kinds = KINDS.map((kind) => ({
    ...kind,
    total: data.items.reduce((sum, one) => sum + one[kind.name], 0),
  })).filter((kind) => kind.total > 0 || kind.name === 'committed');
  const model = useMemo(() => {
    const total = (/** @type {OutcomeCounts} */ one) => kinds.reduce((sum, {name}) => sum + one[name], 0);
    const heights = levels(Math.max(...data.items.map(total), 1));
    const share = (/** @type {number} */ counted) => `${(counted / heights[heights.length - 1]) * 100}%`;
    const items = data.items.map((one) => ({
      at: one.at,
      to: one.at + data.bucketMs,
      says: kinds.map(({name, label}) => `${one[name]} ${label}`).join(', '),
      look: 'stack',
      text: kinds.map(({name, look}) => html`<b key=${name} class=${look} style=${{height: share(one[name])}}></b>`),
    }));
    const behind = html`<i class="levels">${heights.map(
      (level) => html`<i key=${level} style=${{bottom: share(level)}}>${number(level)}</i>`,
    )}</i>`;
    return {rows: [{label: '', items, behind}], from: data.from, to: data.to};
  }, [data]);
  const legend = html`<p class="legend">
    ${kinds.map(
      (kind) => html`<span key=${kind.name}>
      <i class=${`swatch ${kind.look}`}></i>${kind.label} <b class="num">
        ${number(kind.total)}</b></span>`,
    )}</p>`;
  const table = () => html`<table class="plain">
    <thead><tr><th scope="col">From</th>
      ${kinds.map((kind) => html`<th key=${kind.name} scope="col" class="num">${kind.label}</th>`)}</tr></thead>
    <tbody>${[...data.items].reverse().map(
      (one) => html`<tr key=${one.at}>
      <td><${Time} at=${one.at} path="/journal" /></td>
      ${kinds.map(({name}) => html`<td key=${name} class="num">${number(one[name])}</td>`)}</tr>`,
    )}</tbody></table>`;
  return html`
    <${Rows} label="How transactions ended" model=${model} high=${130} legend=${legend} table=${table}
      hint="Point at a bar, or go along them with the arrows." />
    ${
      data.firstAt
        ? html`<p class="muted">Remembered since <${Time} at=${data.firstAt} />; of what ended before, some
      may be forgotten.</p>`
        : null
    }`;
}
