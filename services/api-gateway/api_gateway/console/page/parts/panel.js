/**
 * A part of a page with data of its own, and each state that these can have: loading (a skeleton after 150 ms), empty
 * (what would be here, and the command that makes one), stale, refused, gone, failed. Panels fail alone.
 *
 *     html`<${Panel} title="Members" of=${useResource('members')}
 *       emptyText="No service has reported." emptyCli=${cli`member list`}>${(data) => html`…`}<//>`
 */
import {html, useErrorBoundary, useEffect, useState} from '../core/html.js';
import {clockTime} from '../core/format.js';
import {Problem} from '../core/api.js';
import {Cli} from './cli.js';
import {RequestLink} from './link.js';
/** @import {ResourceView} from '../core/types.d.ts' */
/** @import {PanelProps} from './types.d.ts' */

const SKELETON_MS = 150;

/** @param {PanelProps} props */
export function Panel({title, of, tools, class: name = '', flush = false, children, ...content}) {
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
      <${Contained} what="part" retry=${of?.reload}>
        ${of ? html`<${Content} ...${content} of=${of}>${children}<//>` : children}
      <//>
    </div>
  </section>`;
}

/** @param {PanelProps & {of: ResourceView}} props */
function Content({of, empty, emptyText, emptyCli, lines, gone, children}) {
  if (of.problem?.kind === 'missing') return gone ? gone(of.problem) : html`<${Gone} problem=${of.problem} />`;
  if (of.data === undefined)
    return of.problem
      ? html`<${Failed} problem=${of.problem} retry=${of.reload} />`
      : html`<${Skeleton} lines=${lines} />`;
  const isEmpty = empty ? empty(of.data) : emptyText && of.data.items.length === 0;
  if (isEmpty) return html`<${Empty} text=${emptyText} cli=${emptyCli} />`;
  return children(of.data);
}

/**
 * What could not be drawn stays within its panel, or its page.
 * @param {{what: string, retry?: () => void, children?: any}} props
 */
export function Contained({what, retry, children}) {
  const [error, reset] = useErrorBoundary((caught) => console.error(caught));
  if (!error) return children;
  const again = () => {
    reset();
    retry?.();
  };
  if (error instanceof Problem) return html`<${Failed} problem=${error} retry=${again} />`;
  return html`<div class="state bad" role="alert"><p>
    <b>This ${what} could not be drawn.</b> ${String(error.message)}</p>
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
