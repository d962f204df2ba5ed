/**
 * One reader group: which reader has which segment and where it stands, what no reader has, how far behind it all is.
 */
import '../parts/pages-style.js';
import {html, useEffect, useRef, useState} from '../core/html.js';
import {under} from '../core/api.js';
import {bytes, count, duration, number} from '../core/format.js';
import {useResource} from '../core/store.js';
import {Badge, UnderWay} from '../parts/badges.js';
import {cli} from '../parts/cli.js';
import {split} from '../parts/decision-list.js';
import {Lines} from '../parts/lines.js';
import {SegmentLink, StreamLink, Time} from '../parts/link.js';
import {Empty, Panel} from '../parts/panel.js';
import {Plain} from '../parts/plain.js';
import {OnePage} from '../parts/one.js';
import {Behind} from './groups.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {GroupDescription, GroupReadersModel, HeldSegment} from 'api' */

const READERS_MS = 5000;
const PART = 'Some stores did not answer, or a stream does not exist: it may be more.';
const KEPT_POINTS = 360;

/** @param {Filters} params */
export const title = ({scope, group}) => `${scope}/${group}`;

/** @param {{params: Record<string, string>, at: string | null}} props */
export default function Group({params: {scope, group}, at}) {
  const path = under`scopes/${scope}/readergroups/${group}`;
  const found = useResource(path, {of: [`group:${scope}/${group}`], past: true});
  const readers = useResource(at === null ? `${path}/readers` : null, {every: READERS_MS});
  const facts = (/** @type {GroupDescription} */ data) => html`<${Facts} data=${data} />`;
  return html`<${OnePage} title="Reader group" kind="group" command="reader-group" name=${group}
    lost="Its streams stay; how far it has read is forgotten." ...${{scope, path, found, at, facts}}>
    ${
      at === null &&
      html`<${Panel} title="Readers, by segment" of=${readers}>
        ${(data) => html`<${Readers} data=${data} />`}<//>
      <${Trend} lag=${readers.data?.lag} at=${readers.data?.at} />`
    }
  <//>`;
}

/** @param {{data: GroupDescription}} props */
function Facts({data}) {
  const {config} = data;
  return html`<dl class="facts">
    <dt>Created</dt><dd><${Time} at=${data.createdAt} /></dd>
    <dt>Id</dt><dd class="id">${data.id}</dd>
    <dt>Generation</dt><dd class="num">${number(data.generation)}</dd>
    <dt>Retention</dt><dd>${RETENTIONS[config.retention] ?? config.retention}</dd>
    <dt>Readers look for news</dt><dd>each ${duration(config.refreshMs)}</dd>
    <dt>Checkpoints</dt><dd>
      ${config.checkpointIntervalMs < 0 ? 'never by itself' : `each ${duration(config.checkpointIntervalMs)}`},
      ${' '}${number(config.maxOutstandingCheckpoints)} at most under way</dd>
    <${UnderWay} workflow=${data.workflow} q=${`${data.scope}/${data.name}`} />
    <dt>Streams</dt><dd>${Object.entries(config.streams).map(
      ([name, cuts]) => html`<p key=${name}><${StreamLink} ...${split(name)} tab="readers" />
      <span class="muted"> from ${cut(cuts.start, 'its head')} to ${cut(cuts.end, 'no end')}</span></p>`,
    )}</dd>
  </dl>`;
}

const RETENTIONS = /** @type {Record<string, string>} */ ({
  none: 'none: streams do not wait for it',
  manual: 'manual: its client says how far it is',
  automatic: 'automatic: each checkpoint says how far it is',
});

/** @param {Record<string, number> | undefined} found @param {string} or */
function cut(found, or) {
  return found && Object.keys(found).length > 0 ? `a cut of ${count(Object.keys(found).length, 'segment')}` : or;
}

/** @param {{data: GroupReadersModel}} props */
function Readers({data}) {
  /** @type {{name: string | null, segments: HeldSegment[]}[]} */
  const held = [...data.readers, {name: null, segments: data.unassigned}];
  const rows = held.flatMap(({name, segments}) => {
    /** @type {{name: string | null, segment?: HeldSegment, first: boolean}[]} */
    const own = segments.map((segment, index) => ({name, segment, first: index === 0}));
    return own.length > 0 || name === null ? own : [{name, first: true}];
  });
  const read = data.readers.reduce((sum, one) => sum + one.segments.length, 0);
  const none = data.unassigned.length;
  const open = none > 0 && html`, <${Badge} tone="warn">${number(none)} without a reader<//>`;
  const known = data.lag.ms !== undefined;
  const inTime = known && html`, <${Behind} lag=${data.lag} complete=${data.complete} of="ms" /> in time`;
  const part = !data.complete && html`<span class="muted">${PART}</span>`;
  return html`
    <p class="says">${count(data.readers.length, 'reader')}, ${count(read, 'segment')} read${open}.
      Behind by <${Behind} lag=${data.lag} complete=${data.complete} of="bytes" />${inTime}. ${part}</p>
    ${
      rows.length === 0
        ? html`<${Empty} text="No reader is there, and no segment waits for one."
          cli=${cli`stream read ${'demo/orders'}`} />`
        : html`
    <${Plain} heads=${['Reader', 'Segment', '#Offset']}>
      ${rows.map(
        (row, index) => html`<tr key=${index} class=${row.first ? 'first' : ''}>
      <td>${row.first ? (row.name ?? html`<${Badge} tone="warn">no reader<//>`) : ''}</td>
      <td>${
        row.segment
          ? html`<span class="muted">${row.segment.stream} </span>
        <${SegmentLink} ...${split(row.segment.stream)} id=${row.segment.segment} />`
          : html`<span class="muted">none</span>`
      }</td>
      <td class="num">
        ${row.segment ? (Number(row.segment.offset) < 0 ? 'its end' : number(row.segment.offset)) : ''}</td></tr>`,
      )}<//>`
    }
    <p class="muted">Offsets are what readers last wrote into the group's state, so they are coarse; before the first
      reader the group is at its start. Lag in time is 6 h at most, as of half a minute ago.</p>`;
}

/**
 * The lag while the page is open.
 * @param {{lag: {bytes?: number, ms?: number} | undefined, at: number | undefined}} props
 */
function Trend({lag, at}) {
  const points = useRef(/** @type {{at: number, bytes: number}[]} */ ([]));
  const [, draw] = useState(0);
  useEffect(() => {
    if (lag?.bytes === undefined || !at || points.current.at(-1)?.at === at) return;
    points.current = [...points.current, {at, bytes: Number(lag.bytes)}].slice(-KEPT_POINTS);
    draw((turn) => turn + 1);
  }, [at]);
  if (points.current.length < 2) return null;
  return html`<${Panel} title="Lag since this page was opened"><${Lines} label="Lag in bytes"
    times=${points.current.map((one) => one.at)} format=${bytes}
    series=${[{label: 'bytes', values: points.current.map((one) => one.bytes), hue: 1}]} /><//>`;
}
