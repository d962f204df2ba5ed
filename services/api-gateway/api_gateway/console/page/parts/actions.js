/** Actions that several pages and the search offer, each by its dialog. */
import {html} from '../core/html.js';
import {api, under} from '../core/api.js';
import {count, words} from '../core/format.js';
import {href, navigate} from '../core/router.js';
import {act} from './dialog.js';
import {cli, quoted} from './cli.js';
import {AggregateLink, RequestLink} from './link.js';

/** Of one call, as the gateway takes them. */
export const MAX_RETRIED = 200;

/** @param {string} scope @param {string} stream */
export function sealStream(scope, stream) {
  return act({
    title: `Seal ${scope}/${stream}`,
    verb: 'Seal',
    danger: true,
    method: 'POST',
    path: under`scopes/${scope}/streams/${stream}/seal`,
    dryRun: true,
    what: html`Nothing more can be written to it. What is there can be read.
      Open transactions are aborted. It cannot be opened again.`,
    confirm: `${scope}/${stream}`,
    cli: cli`stream seal ${`${scope}/${stream}`}`,
  });
}

/** @param {string} scope @param {string} stream */
export function deleteStream(scope, stream) {
  return act({
    title: `Delete ${scope}/${stream}`,
    verb: 'Delete',
    danger: true,
    method: 'DELETE',
    path: under`scopes/${scope}/streams/${stream}`,
    dryRun: true,
    what: 'All its events are gone. It has to be sealed before.',
    confirm: `${scope}/${stream}`,
    cli: cli`stream delete ${`${scope}/${stream}`}`,
  });
}

/** @param {string} scope @param {boolean} recursive */
export function deleteScope(scope, recursive) {
  return act({
    title: `Delete scope ${scope}`,
    verb: 'Delete',
    danger: true,
    method: 'DELETE',
    path: under`scopes/${scope}`,
    query: recursive ? {recursive: true} : {},
    what: recursive
      ? 'With everything in it: all events of all its streams, its reader groups and tables are gone.'
      : 'It has to be empty.',
    confirm: scope,
    cli: recursive ? cli`scope delete ${scope} --recursive` : cli`scope delete ${scope}`,
  });
}

/** @param {string} scope */
export function createScope(scope) {
  return act({
    title: `Create scope ${scope}`,
    verb: 'Create',
    method: 'PUT',
    path: under`scopes/${scope}`,
    cli: cli`scope create ${scope}`,
    done: () => html`<b>It is there.</b> <a href=${href(['scopes', scope])}>Open it</a>`,
  });
}

/** @param {{aggregate: string, kind: string}} workflow */
export function retryWorkflow({aggregate, kind}) {
  return act({
    title: `Retry ${words(kind)} now`,
    verb: 'Retry now',
    method: 'POST',
    path: 'workflows/retry',
    body: {aggregate},
    what: html`<p>
      <${AggregateLink} aggregate=${aggregate} /> tries its step again now instead of waiting for its next
        attempt.</p>`,
    effects: html`One more attempt; nothing is lost if it fails.`,
    cli: cli`workflow retry ${aggregate}`,
    done: () => html`<b>It tries again.</b>`,
  });
}

/**
 * @param {{aggregate: string, kind: string}[]} workflows at most MAX_RETRIED
 * @param {string} [why] what they have in common
 */
export function retryWorkflows(workflows, why) {
  return act({
    title: `Retry ${count(workflows.length, 'workflow')} now`,
    verb: `Retry ${workflows.length}`,
    method: 'POST',
    path: 'workflows/retry-each',
    what: html`<p>
      ${why ? `All of: ${why}` : 'Each tries its step again now instead of waiting for its next attempt.'}</p>`,
    effects: html`${count(workflows.length, 'more attempt')}, side by side; nothing is lost if one fails.`,
    cli: `sluice workflow retry ${workflows.map(({aggregate}) => quoted(aggregate)).join(' ')}`,
    async run() {
      const reply = await api.send('POST', 'workflows/retry-each', {
        body: {aggregates: workflows.map((one) => one.aggregate)},
      });
      const items = /** @type {{aggregate: string, status: string, detail?: string, request?: string}[]} */ (
        reply.data.items
      );
      const not = items.filter((one) => one.status !== 'SUCCESS');
      return html`<b>${items.length - not.length} of ${items.length} try again.</b>
        ${
          not.length > 0 &&
          html`<ul>
          ${not.map(
            (one) => html`<li key=${one.aggregate}>
            <${AggregateLink} aggregate=${one.aggregate} />: ${one.detail ?? words(one.status)} <${RequestLink}
              id=${one.request ?? ''} /></li>`,
          )}</ul>`
        }`;
    },
  });
}

/** @param {{aggregate: string, kind: string, id: string}} workflow */
export function cancelWorkflow({aggregate, kind, id}) {
  return act({
    title: `Cancel ${words(kind)}`,
    verb: 'Cancel it',
    danger: true,
    method: 'POST',
    path: 'workflows/cancel',
    body: {aggregate, workflow: id},
    what: html`<p>
      <${AggregateLink} aggregate=${aggregate} /> ends as if this had never begun; what it has done is taken back.</p>`,
    effects: html`The workflow <span class="id">${id}</span> ends; its caller gets a refusal.`,
    cli: cli`workflow cancel ${aggregate}`,
    done: () => html`<b>It is being cancelled.</b>`,
  });
}

const FORMS = {SCOPE: '([^/\\s]+)', 'SCOPE/STREAM': '([^/\\s]+)/([^/\\s]+)', 'PARTITION/OFFSET': '(\\d+)/(\\d+)'};

/** @param {string} verb @param {keyof typeof FORMS} names @param {(...names: string[]) => unknown} run */
function written(verb, names, run) {
  return {verb, form: new RegExp(`^${verb} ${FORMS[names]}$`), what: `${verb} ${names}`, run};
}

/** Actions as the search offers them: "seal demo/orders". */
export const WRITTEN = [
  written('seal', 'SCOPE/STREAM', sealStream),
  written('delete', 'SCOPE/STREAM', deleteStream),
  written('scale', 'SCOPE/STREAM', (scope, stream) => navigate(href(['streams', scope, stream]))),
  written('retry', 'SCOPE/STREAM', (scope, stream) =>
    retryWorkflow({aggregate: `stream:${scope}/${stream}`, kind: 'the workflow'}),
  ),
  written('replay', 'PARTITION/OFFSET', (partition, offset) =>
    navigate(href('/dead-letters', {letter: `${partition}/${offset}`})),
  ),
  written('create', 'SCOPE', createScope),
];
