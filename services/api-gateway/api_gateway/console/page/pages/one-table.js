/** One key-value table: its configuration and its partitions by key range. */
import '../parts/past-style.js';
import {html} from '../core/html.js';
import {under} from '../core/api.js';
import {bytes, count, key, segment} from '../core/format.js';
import {href} from '../core/router.js';
import {useResource} from '../core/store.js';
import {State, Unreachable, UnderWay} from '../parts/badges.js';
import {cli, Cli} from '../parts/cli.js';
import {act, ActionButton, allowedOf} from '../parts/dialog.js';
import {ScopeLink, Time} from '../parts/link.js';
import {Gone, Panel} from '../parts/panel.js';
import {TimeSlider} from '../parts/slider.js';
import {Plain} from '../parts/plain.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {TablePartition} from 'api' */

/** @param {Filters} params */
export const title = ({scope, table}) => `${scope}/${table}`;

/** @param {{params: Record<string, string>, at: string | null}} props */
export default function OneTable({params: {scope, table}, at}) {
  const name = `${scope}/${table}`;
  const path = under`scopes/${scope}/tables/${table}`;
  const found = useResource(path, {of: [`table:${name}`, 'cluster'], past: true});
  const remove = () =>
    act({
      title: `Delete table ${name}`,
      what: 'All its entries are gone.',
      verb: 'Delete',
      danger: true,
      confirm: name,
      method: 'DELETE',
      path,
      cli: cli`table delete ${name}`,
    });
  return html`<div class="page">
    <div class="title"><h1><span class="muted"><${ScopeLink} scope=${scope} />/</span>${table}</h1>
      <${State} state=${found.data?.state} unreachable=${found.data?.unreachable?.segments} />
      <span class="tools"><${Cli} line=${at === null ? cli`table show ${name}` : cli`table show ${name} --at ${at}`} />
        <${ActionButton} danger onClick=${remove}
          allowed=${allowedOf(found.data, 'delete')}>Delete<//></span></div>
    <${TimeSlider} name=${`table ${name}`} query=${{key: `table:${name}`}} />
    <${Panel} title="Table" of=${found}
      gone=${(problem) => html`<${Gone} problem=${problem}>
        <a href=${href('/journal', {key: `table:${name}`, from: '-7d'})}>What the journal has of it</a><//>`}>
      ${(data) => html`<dl class="facts">
        ${
          data.unreachable &&
          html`<dt>Unreachable</dt><dd><${Unreachable} found=${data.unreachable}
          of=${data.segments.length} what="partitions" /></dd>`
        }
        <dt>Created</dt><dd><${Time} at=${data.createdAt} /></dd>
        <dt>Keys</dt><dd>${count(data.config.primaryKeyLength, 'byte')}${
          data.config.secondaryKeyLength > 0 &&
          ` and ${count(data.config.secondaryKeyLength, 'byte')} of a secondary key`
        }</dd>
        <dt>Rollover</dt><dd>
          ${data.config.rolloverSizeBytes ? `at ${bytes(data.config.rolloverSizeBytes)}` : 'as stores do'}</dd>
        <${UnderWay} workflow=${data.workflow} q=${name} />
      </dl>`}<//>
    <${Panel} title="Partitions, by key range" of=${found}>${(data) => html`
      <${Plain} heads=${['Partition', 'Keys from', 'to', html`<span class="away">share</span>`]}>
      ${data.segments.map(
        (/** @type {TablePartition} */ one) => html`<tr key=${one.id}>
        <td class="id">${segment(one.id)}</td><td class="num">${key(one.low)}</td><td class="num">${key(one.high)}</td>
        <td class="range">
          <i style=${{marginLeft: `${one.low * 100}%`, width: `${(one.high - one.low) * 100}%`}}></i></td></tr>`,
      )}<//>`}<//>
  </div>`;
}
