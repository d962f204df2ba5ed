/** Small marks: a word with a tone and a shape, so that colour alone says nothing. */
import {html} from '../core/html.js';
import {number, words, count} from '../core/format.js';
import {href} from '../core/router.js';
import {Age} from './link.js';
/** @import {Tone} from './types.d.ts' */
/** @import {RunningWorkflow} from 'api' */

const SHAPES = {ok: '●', warn: '▲', bad: '◆', busy: '◐', idle: '○', info: '■'};

/** @param {{tone?: Tone, title?: string, children?: any, shape?: boolean}} props */
export function Badge({tone = 'idle', title, children, shape = true}) {
  return html`<span class=${`badge ${tone}`} title=${title}>
    ${shape ? html`<span aria-hidden="true" class="shape">${SHAPES[tone]}</span>` : null}${children}</span>`;
}

/** States, by the tone that they have. */
const STATES = {
  ok: 'ACTIVE committed',
  busy: 'CREATING SCALING UPDATING TRUNCATING COMMITTING SEALING DELETING running committing aborting',
  idle: 'SEALED queued aborted gone',
  bad: 'failing',
  warn: 'waiting',
  info: 'open',
};
const TONES = new Map(
  Object.entries(STATES).flatMap(([tone, states]) => states.split(' ').map((one) => [one, /** @type {Tone} */ (tone)])),
);

/**
 * The state of a stream, group, table, workflow or transaction. Of a stream or table of which segments cannot be
 * reached that is said instead. @param {{state: string | undefined, title?: string, unreachable?: number}} props
 */
export function State({state, title, unreachable}) {
  if (!state) return null;
  if (unreachable)
    return html`<${Badge} tone="bad" title=${`${words(state)}, ${unreachable} unreachable`}>unreachable<//>`;
  return html`<${Badge} tone=${TONES.get(state) ?? 'info'} title=${title}>${words(state)}<//>`;
}

/**
 * How many segments can be neither written nor read, since when and why.
 * @param {{found: {segments: number, since: number, stores: string[], gone: string[]}, of: number, what: string}} props
 */
export function Unreachable({found, of, what}) {
  const why = found.stores
    .map((store) => `${store} ${found.gone.includes(store) ? 'has gone' : 'does not answer'}`)
    .join(', ');
  return html`<span><${Badge} tone="bad">${number(found.segments)} of ${number(of)} ${what} unreachable<//>
    ${found.since > 0 ? html` for <${Age} at=${found.since} />` : null}: ${why || 'no segment store runs them'}</span>`;
}

/** A tag, foreign text. @param {{text: string}} props */
export function Tag({text}) {
  return html`<span class="tag" title=${text}>${text}</span>`;
}

/** Steps as beads: done, the one that is tried, to come. @param {{steps: string[], step: string, tone?: Tone}} props */
export function Beads({steps, step, tone = 'busy'}) {
  const at = steps.indexOf(step);
  const label = at < 0 ? step || 'begins' : `step ${at + 1} of ${steps.length}: ${words(step)}`;
  return html`<span class=${`beads ${tone}`} role="img" aria-label=${label} title=${label}>
    ${steps.map((one, index) => html`<i key=${one} class=${index < at ? 'done' : index === at ? 'at' : ''}></i>`)}
  </span>`;
}

/**
 * The facts of the workflow that something is in, to stand in a list of facts.
 * @param {{workflow?: RunningWorkflow, q: string}} props `q`: what finds it among all
 */
export function UnderWay({workflow, q}) {
  if (!workflow) return null;
  const {kind, since, attempts, lastError} = workflow;
  return html`<dt>Under way</dt><dd><a href=${href('/workflows', {q})}>${words(kind)}</a> for <${Age} at=${since} />
    ${lastError && html` <${Badge} tone="bad">${count(attempts, 'attempt')}<//> ${lastError}`}</dd>`;
}
