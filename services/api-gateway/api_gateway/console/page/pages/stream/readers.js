/** Which reader groups hold a stream, how far each has read and who reads. */
import {html} from '../../core/html.js';
import {under} from '../../core/api.js';
import {bytes, count, duration, number, segment} from '../../core/format.js';
import {href} from '../../core/router.js';
import {useResource} from '../../core/store.js';
import {Badge} from '../../parts/badges.js';
import {Cli, cli} from '../../parts/cli.js';
import {Age, Time} from '../../parts/link.js';
import {Failed, Panel} from '../../parts/panel.js';
import {Plain} from '../../parts/plain.js';
/** @import {OfStream} from '../types.d.ts' */
/** @import {GroupReadersModel, HeldSegment, StreamDescription, SubscriberModel} from 'api' */

const READERS_MS = 5000;

/** @param {OfStream & {description: StreamDescription, live: boolean}} props */
export function ReadersTab({scope, stream, description, live}) {
  const {subscribers} = description;
  const create = cli`reader-group create ${`${scope}/readers`} --stream ${`${scope}/${stream}`} --retention automatic`;
  return html`<${Panel} title="Reader groups that the stream is kept for"
    tools=${html`<a href=${href('/groups', {q: `${scope}/`})}>all groups</a>`}>
    ${
      subscribers.length === 0
        ? html`<div class="state empty">
          <p>No reader group has the stream kept for it. Groups with retention manual or automatic do; what others read
            is seen on their own pages.</p>
      <${Cli} line=${create} /></div>`
        : subscribers.map(
            (one) =>
              html`<${Subscriber} key=${one.name} scope=${scope} stream=${stream} subscriber=${one} live=${live} />`,
          )
    }
  <//>`;
}

/** @param {OfStream & {subscriber: SubscriberModel, live: boolean}} props */
function Subscriber({scope, stream, subscriber, live}) {
  const [groupScope, group] = subscriber.name.split('/');
  const readers = useResource(live ? `${under`scopes/${groupScope}/readergroups/${group}`}/readers` : null, {
    every: READERS_MS,
    of: [`stream:${scope}/${stream}`],
  });
  const cut = Object.entries(subscriber.cut);
  return html`<section class="subscriber">
    <h3><a href=${href(['groups', groupScope, group])}>${subscriber.name}</a></h3>
    <p>${
      cut.length
        ? html`Reported <${Age} at=${subscriber.updatedAt} /> ago (<${Time} at=${subscriber.updatedAt} />) a cut
          through ${count(cut.length, 'segment')};
      <a href=${href(['streams', scope, stream], {cut: cut.map(([id, offset]) => `${id}=${offset}`).join(',')})}>show it
        in the picture</a>`
        : 'Has not reported yet how far it is.'
    }</p>
    ${readers.problem && !readers.data ? html`<${Failed} problem=${readers.problem} retry=${readers.reload} />` : null}
    ${readers.data ? html`<${Readers} data=${readers.data} name=${`${scope}/${stream}`} />` : null}
  </section>`;
}

/** @param {{data: GroupReadersModel, name: string}} props */
function Readers({data, name}) {
  const own = (/** @type {HeldSegment} */ one) => one.stream === name;
  const rows = data.readers
    .map((reader) => ({...reader, segments: reader.segments.filter(own)}))
    .filter((reader) => reader.segments.length);
  const unassigned = data.unassigned.filter(own);
  const behind = data.lag.bytes === undefined ? 'it is not known how far' : bytes(data.lag.bytes);
  const inTime = data.lag.ms === undefined ? '' : `, ${duration(data.lag.ms)} in time`;
  const none = unassigned.length;
  const open = none > 0 && html`<${Badge} tone="warn">${count(none, 'segment')} without a reader<//>`;
  return html`
    <p>${count(rows.length, 'reader')} ${rows.length === 1 ? 'reads' : 'read'} it, ${behind} behind${inTime}. ${open}
      ${data.complete ? null : html`<span class="muted">Not all stores have answered.</span>`}</p>
    ${
      rows.length
        ? html`<${Plain} heads=${['Reader', 'Segments, with the offset it had reached']}>
      ${rows.map(
        (reader) => html`<tr key=${reader.name}><td>${reader.name}</td><td>
        ${reader.segments.map(
          (one) => html`<span key=${String(one.segment)} class="read"><span class="id">
          ${segment(one.segment)}</span> <span class="muted num">
            ${Number(one.offset) < 0 ? 'to its end' : number(one.offset)}</span></span> `,
        )}</td></tr>`,
      )}<//>`
        : null
    }`;
}
