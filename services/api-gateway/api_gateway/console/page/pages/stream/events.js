/**
 * What lies in a stream: its last events, or those from a cut on. The cut, the routing key and the segment are those of
 * the picture above.
 */
import {html} from '../../core/html.js';
import {under} from '../../core/api.js';
import {count, number, segment} from '../../core/format.js';
import {href, setQuery} from '../../core/router.js';
import {useResource} from '../../core/store.js';
import {Cli, quoted} from '../../parts/cli.js';
import {Datum, Foreign, useForm} from '../../parts/data.js';
import {Empty, Panel} from '../../parts/panel.js';
import {cutIn} from '../../pictures/topology/cuts.js';
/** @import {Filters} from '../../core/types.d.ts' */
/** @import {OfStream} from '../types.d.ts' */
/** @import {EventItem, EventList, EventSegment} from 'api' */

const SHOWN = 50;

/** @param {OfStream & {query: Filters}} props */
export function EventsTab({scope, stream, query}) {
  const {key = '', segment: chosen = ''} = query;
  const cut = cutOf(query.cut ?? '');
  const asked = {from: cut, limit: SHOWN, ...(key ? {key} : {segment: chosen})};
  const found = useResource(`${under`scopes/${scope}/streams/${stream}`}/events`, {query: asked, keep: true});
  const {form, choice} = useForm();
  const name = `${scope}/${stream}`;
  const only = key ? ['--key', key] : chosen ? ['--segment', segment(BigInt(chosen))] : [];
  const words = [name, ...only, ...(cut ? ['--from', cut] : []), '--limit', SHOWN];
  return html`<${Panel} title=${cut ? 'Events from the cut on' : 'Last events'} of=${found}
    tools=${html`<${Foreign} by="writers" />${choice}
      <button type="button" class="small" onClick=${found.reload}>Read again</button>
      <${Cli} line=${`sluice stream events ${words.map(quoted).join(' ')}`} />`}>
    ${(/** @type {EventList} */ data) => html`
      <${Chosen} name=${key ? `the segment of key "${key}"` : chosen ? `segment ${segment(BigInt(chosen))}` : ''}
        cut=${cut} more=${data.moreSegments} />
      ${
        data.items.length === 0
          ? html`<${Empty} text="No events there. What was written before a scale: choose its segments above." />`
          : null
      }
      <ol class="records data">${shown(data, !cut).map(
        (one) => html`<${Datum} key=${`${one.segment}/${one.offset}`} data=${one.data} form=${form}
        head=${html`<span class="id">${segment(one.segment)}</span>
          <span class="num" title="offset in the segment">${number(one.offset)}</span>`}
        links=${html`<a class="id" title="only this segment"
          href=${href(['streams', scope, stream], {...query, segment: String(one.segment)})}>
          ${segment(one.segment)}</a>`} />`,
      )}</ol>
      ${data.segments.map((one) => html`<${Trouble} key=${one.id} of=${one} />`)}
      ${
        cut && data.items.length > 0
          ? html`<button type="button" onClick=${() => setQuery({cut: cutText(data.next)}, {replace: false})}>
        Go on from there</button>`
          : null
      }`}
  <//>`;
}

/** Those of one segment stay together, the newest first if `last`. @param {EventList} data @param {boolean} last */
function shown({items, segments}, last) {
  const of = (/** @type {EventSegment} */ {id}) => items.filter((/** @type {EventItem} */ one) => one.segment === id);
  return segments.flatMap((one) => (last ? of(one).reverse() : of(one)));
}

/** The cut of the picture as a call takes it, '' if it is none. @param {string} text */
function cutOf(text) {
  try {
    return text ? cutText(Object.fromEntries(cutIn(text))) : '';
  } catch {
    // The picture says what is wrong with it.
    return '';
  }
}

/** @param {Record<string, number | bigint>} cut */
function cutText(cut) {
  return Object.entries(cut)
    .map(([id, offset]) => `${id}=${offset}`)
    .join(',');
}

/** @param {{name: string, cut: string, more: number}} props */
function Chosen({name, cut, more}) {
  return html`<p class="muted">${
    name
      ? html`Only ${name}. <button type="button" class="small" onClick=${() => setQuery({key: '', segment: ''})}>All
        segments</button> `
      : null
  }${
    cut
      ? html`From the cut above on. <button type="button" class="small"
        onClick=${() => setQuery({cut: ''})}>The last events</button> `
      : null
  }${more > 0 ? `${count(more, 'more segment')} not read: choose one, or a routing key, in the picture. ` : null}
    Between segments there is no order.</p>`;
}

/** @param {{of: EventSegment}} props */
function Trouble({of}) {
  return of.problem ? html`<p class="warn" role="status"><b class="id">${segment(of.id)}</b>: ${of.problem}</p>` : null;
}
