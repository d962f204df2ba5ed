/**
 * A part of a page with data of its own, and each state that these can have: loading (a skeleton after 150 ms), empty
 * (what would be here, and the command that makes one), stale, refused, gone, failed. Panels fail alone.
 *
 *     html`<${Panel} title="Members" of=${useResource('members')} empty=${(data) => data.items.length === 0}
 *       emptyText="No service has reported." emptyCli=${cli`cluster members`}>${(data) => html`…`}<//>`
 */
import {html, useErrorBoundary, useEffect, useState} from '../core/html.js';
import {clockTime} from '../core/format.js';
import {Cli} from './cli.js';
import {RequestLink} from './link.js';
/** @import {ResourceView} from '../core/types.d.ts' */

const SKELETON_MS = 150;

/**
 * @param {object} props
 * @param {any} [props.title] a heading; without one the panel has a head only to say that its data are old
 * @param {ResourceView} [props.of] where the data come from; without it children are drawn as they are
 * @param {(data: any) => boolean} [props.empty]
 * @param {any} [props.emptyText] what would be here
 * @param {string} [props.emptyCli] the command that makes one
 * @param {any} [props.tools] on the right of the head
 * @param {string} [props.class]
 * @param {boolean} [props.flush] whether the content goes to the edges
 * @param {number} [props.lines] of the skeleton
 * @param {(problem: import('../core/api.js').Problem) => any} [props.gone] the tombstone, for what is not there (any
 *   more)
 * @param {any} props.children a function of the data, or elements
 */
export function Panel({
  title,
  of,
  empty,
  emptyText,
  emptyCli,
  tools,
  class: name = '',
  flush = false,
  lines = 3,
  gone,
  children,
}) {
  const isOld = Boolean(of?.problem) && of?.data !== undefined;
  return html`<section class=${`panel ${name} ${flush ? 'flush' : ''}`}
    aria-busy=${of?.loading && of.data === undefined ? 'true' : undefined}>
    ${
      title || tools || isOld
        ? html`<header>${title ? html`<h2>${title}</h2>` : null}
      ${isOld ? html`<${Freshness} of=${of} />` : null}<span class="tools">${tools}</span></header>`
        : null
    }
    <div class="content">
      <${Contained} retry=${of?.reload}>
        ${of ? html`<${Content} ...${{of, empty, emptyText, emptyCli, lines, gone, children}} />` : children}
      <//>
    </div>
  </section>`;
}

/** @param {any} props */
function Content({of, empty, emptyText, emptyCli, lines, gone, children}) {
  if (of.problem?.kind === 'missing') return gone ? gone(of.problem) : html`<${Gone} problem=${of.problem} />`;
  if (of.data === undefined)
    return of.problem
      ? html`<${Failed} problem=${of.problem} retry=${of.reload} />`
      : html`<${Skeleton} lines=${lines} />`;
  if (empty?.(of.data)) return html`<${Empty} text=${emptyText} cli=${emptyCli} />`;
  return children(of.data);
}

/** What could not be drawn stays within its panel. @param {{retry?: () => void, children?: any}} props */
function Contained({retry, children}) {
  const [error, reset] = useErrorBoundary((caught) => console.error(caught));
  if (!error) return children;
  const again = () => {
    reset();
    retry?.();
  };
  return html`<div class="state bad" role="alert"><p>
    <b>This part could not be drawn.</b> ${String(error.message ?? error)}</p>
    <button type="button" onClick=${again}>Try again</button></div>`;
}

/** Data that are older than they should be say so. @param {{of: ResourceView}} props */
function Freshness({of}) {
  return html`<span class="badge warn" title=${of.problem?.detail}><span class="shape"
    aria-hidden="true">▲</span>as of ${clockTime(of.fetchedAt)}
    <button type="button" class="small quiet" onClick=${of.reload}>retry</button></span>`;
}

/** Grey lines, once loading takes long enough to be noticed. @param {{lines?: number}} props */
export function Skeleton({lines = 3}) {
  const [shown, show] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => show(true), SKELETON_MS);
    return () => clearTimeout(timer);
  }, []);
  return html`<div class=${`skeleton ${shown ? 'shown' : ''}`} aria-hidden="true">
    ${Array.from({length: lines}, (_, index) => html`<i key=${index}></i>`)}</div>`;
}

/** @param {{text?: any, cli?: string}} props */
export function Empty({text = 'Nothing here.', cli}) {
  return html`<div class="state empty"><p>${text}</p>${cli ? html`<${Cli} line=${cli} />` : null}</div>`;
}

const HEADS = /** @type {Record<string, string>} */ ({
  refused: 'Refused',
  forbidden: 'Not allowed',
  login: 'Not logged in',
  busy: 'Not at the moment',
  unreachable: 'Not reachable',
  changed: 'Changed meanwhile',
  unknown: 'Outcome unknown',
  missing: 'Not there',
});

/** Why there are no data. @param {{problem: import('../core/api.js').Problem, retry?: () => void}} props */
export function Failed({problem, retry}) {
  return html`<div class=${`state ${problem.kind === 'busy' ? 'warn' : 'bad'}`} role="alert">
    <p><b>${HEADS[problem.kind]}:</b> ${problem.detail}</p>
    ${problem.reason ? html`<p class="muted id">${problem.reason}</p>` : null}
    ${problem.request ? html`<p>Request <${RequestLink} id=${problem.request} /></p>` : null}
    ${retry && problem.kind !== 'forbidden' ? html`<button type="button" onClick=${retry}>Try again</button>` : null}
  </div>`;
}

/**
 * The tombstone of what is not there, or not there any more.
 * @param {{problem: import('../core/api.js').Problem, children?: any}} props
 */
export function Gone({problem, children}) {
  return html`<div class="state gone"><p><b>Not there:</b> ${problem.detail}</p>${children}</div>`;
}
