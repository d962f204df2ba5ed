/** The first visit: an empty system offers to fill itself; one that does says so, can be stopped, and can go on. */
import {html} from '../core/html.js';
import {href} from '../core/router.js';
import {useResource} from '../core/store.js';
import {act, ActionButton, mayChange} from './dialog.js';
import {Cli, cli} from './cli.js';
import {Age} from './link.js';
import {Panel} from './panel.js';
/** @import {DemonstrationModel} from 'api' */

/**
 * Shown while the demonstration runs, where it has been, and where there is no scope yet.
 * @param {{isEmpty: boolean}} props
 */
export function Demonstration({isEmpty}) {
  const found = useResource('demonstration');
  const {data} = found;
  if (!data || !(data.running || data.present || isEmpty)) return null;
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
  return html`${
    data.present
      ? html`<p>It has ended. What it made is in <a href=${href(['scopes', data.scope])}>${data.scope}</a> still, and
          goes on from there when it is started.</p>`
      : html`<p>Nothing is here yet. The demonstration fills a scope of its own: a stream that is written to and scales
          by itself, transactions, a reader group.</p>`
  }
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
      <a href=${href(['streams', data.scope, 'readings'])}>readings</a> is loud for three minutes and silent for
        five: it splits within three minutes and merges within eight, if segment stores report load as soon as those
          of <code>make run</code>.</p>
    <div class="row"><${ActionButton} allowed=${mayChange('root')}
      onClick=${() => void stop()}>End the demonstration…<//><${Cli} line=${line} /></div>`;
}
