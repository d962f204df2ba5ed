/** The first visit: an empty system offers to fill itself, and one that does says so and can be stopped. */
import {html} from '../core/html.js';
import {href} from '../core/router.js';
import {useResource} from '../core/store.js';
import {act, ActionButton, mayChange} from './dialog.js';
import {Cli, cli} from './cli.js';
import {Age} from './link.js';
import {Panel} from './panel.js';
/** @import {DemonstrationModel} from 'api' */

const EVERY_MS = 5000;

/** Shown while the demonstration runs, and where there is no scope yet. @param {{isEmpty: boolean}} props */
export function Demonstration({isEmpty}) {
  const found = useResource('demonstration', {every: EVERY_MS});
  const {data} = found;
  if (!data || !(data.running || isEmpty)) return null;
  return html`<${Panel} title="Demonstration" of=${found}>
    ${() => (data.running ? html`<${Running} data=${data} />` : html`<${Offer} data=${data} />`)}<//>`;
}

/** @param {{data: DemonstrationModel}} props */
function Offer({data}) {
  const line = cli`demonstration start`;
  const start = () =>
    act({
      title: 'Start the demonstration',
      verb: 'Start',
      method: 'POST',
      path: 'demonstration',
      cli: line,
      what: html`A program beside this gateway makes the scope <b class="id">
        ${data.scope}</b> and writes into it by the ordinary client, until it is ended.`,
      done: () => html`<b>It has begun.</b> Its first stream is here in a moment.`,
    });
  return html`<p>Nothing is here yet. The demonstration fills a scope of its own: a stream that is written to and scales
    by itself, transactions, a reader group.</p>
    ${data.problem ? html`<p class="bad">The last one ended: ${data.problem}</p>` : null}
    <div class="row"><${ActionButton} allowed=${data.refusal ? {allowed: false, why: data.refusal} : mayChange('root')}
      onClick=${() => void start()}>Start the demonstration…<//><${Cli} line=${line} /></div>
    ${data.refusal ? html`<p class="muted">${data.refusal}</p>` : null}`;
}

/** @param {{data: DemonstrationModel}} props */
function Running({data}) {
  const line = cli`demonstration stop`;
  const stop = () =>
    act({
      title: 'End the demonstration',
      verb: 'End',
      method: 'DELETE',
      path: 'demonstration',
      cli: line,
      what: html`Its program ends. What it has made stays in the scope <b class="id">${data.scope}</b>.`,
    });
  return html`<p>It has been running for <${Age} at=${data.since} /> in <a href=${href(['scopes', data.scope])}>
    ${data.scope}</a>. The stream${' '}
      <a href=${href(['streams', data.scope, 'readings'])}>readings</a> is loud for four minutes and quiet for six, so
        it splits and merges; for the first time after ten minutes or more, because segment stores report no load of a
          segment before that.</p>
    <div class="row"><${ActionButton} allowed=${mayChange('root')}
      onClick=${() => void stop()}>End the demonstration…<//><${Cli} line=${line} /></div>`;
}
