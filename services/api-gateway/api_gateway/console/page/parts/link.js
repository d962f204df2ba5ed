/** Every time, id, store and request is a link to what it names. */
import {html} from '../core/html.js';
import {href} from '../core/router.js';
import {clock} from '../core/time.js';
import {aggregateParts, duration, exact, segment, time} from '../core/format.js';
/** @import {OfStream} from '../pages/types.d.ts' */

/**
 * A moment: exact in the tooltip; a click shows the page as it was then.
 * @param {{at: number | null | undefined, path?: string}} props
 */
export function Time({at, path}) {
  if (!at) return html`<span class="muted">–</span>`;
  const link = path === undefined ? location.hash.split('?')[0].slice(1) || '/' : path;
  return html`<a class="time" href=${href(link, {at: exact(at)})} title=${exact(at)}><time datetime=${exact(at)}>
    ${time(at)}</time></a>`;
}

/** How long ago, kept up to date; exact in the tooltip. @param {{at: number | null | undefined}} props */
export function Age({at}) {
  if (!at) return html`<span class="muted">–</span>`;
  return html`<time class="num" datetime=${exact(at)} title=${exact(at)}>
    ${duration(Math.max(0, clock.value - at))}</time>`;
}

/** How long until then, kept up to date. @param {{at: number | null | undefined, over?: string}} props */
export function Until({at, over = 'now'}) {
  if (!at) return null;
  const left = at - clock.value;
  return html`<time class="num" datetime=${exact(at)} title=${exact(at)}>
    ${left > 0 ? `in ${duration(left)}` : over}</time>`;
}

/** @param {OfStream & {tab?: string, short?: boolean}} props */
export function StreamLink({scope, stream, tab, short = false}) {
  return html`<a href=${href(['streams', scope, stream], {tab})}>
    ${short ? null : html`<span class="muted">${scope}/</span>`}<span>${stream}</span></a>`;
}

/** @param {{scope: string}} props */
export function ScopeLink({scope}) {
  return html`<a href=${href(['scopes', scope])}>${scope}</a>`;
}

/** So much of a long id is shown of its beginning and of its end. */
const ENDS = 11;

/** A request, by its id; a long one is cut in the middle. @param {{id: string}} props */
export function RequestLink({id}) {
  const text = id.length > 2 * ENDS + 2 ? `${id.slice(0, ENDS)}…${id.slice(-ENDS)}` : id;
  return id ? html`<a class="id request" href=${href(['requests', id])} title=${id}>${text}</a>` : null;
}

/** A segment by name; a click marks it in the picture. @param {OfStream & {id: number | bigint}} props */
export function SegmentLink({scope, stream, id}) {
  return html`<a class="id" href=${href(['streams', scope, stream], {segment: String(id)})} title=${`id ${id}`}>
    ${segment(id)}</a>`;
}

/** A segment store, host:port. @param {{store: string | null | undefined}} props */
export function StoreLink({store}) {
  return store
    ? html`<a class="id" href=${href('/cluster', {store})}>${store}</a>`
    : html`<span class="muted">no store</span>`;
}

/** @param {{container: number | null | undefined}} props */
export function ContainerLink({container}) {
  return container === null || container === undefined
    ? null
    : html`<a href=${href('/cluster', {container})}>container ${container}</a>`;
}

/** Where an aggregate `stream:S/N`, `txn:S/N/ID` … is shown. @param {string} aggregate */
export function aggregateHref(aggregate) {
  const {kind, scope, name, id} = aggregateParts(aggregate);
  if (kind === 'scope') return href(['scopes', scope]);
  if (kind === 'stream') return href(['streams', scope, name]);
  if (kind === 'commits') return href(['streams', scope, name], {tab: 'transactions'});
  if (kind === 'txn' || kind === 'prepared')
    return href(['streams', scope, name], {tab: 'transactions', transaction: id});
  if (kind === 'group') return href(['groups', scope, name]);
  if (kind === 'table') return href(['tables', scope, name]);
  return href('/cluster');
}

const KINDS = /** @type {Record<string, string>} */ ({
  scope: 'scope',
  stream: 'stream',
  commits: 'commits of',
  txn: 'transaction of',
  prepared: 'transaction of',
  group: 'reader group',
  table: 'table',
});

/** @param {{aggregate: string, kind?: boolean}} props `kind`: whether to say what it is */
export function AggregateLink({aggregate, kind = true}) {
  const {kind: of, scope, name, id} = aggregateParts(aggregate);
  return html`<a href=${aggregateHref(aggregate)} title=${aggregate}>
    ${kind ? html`<span class="muted">${KINDS[of] ?? of} </span>` : null}${scope}${name ? `/${name}` : ''}
      ${id ? html` <span class="id">…${id.slice(-8)}</span>` : null}
  </a>`;
}
