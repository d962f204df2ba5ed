/** One key-value table: its configuration and its partitions by key range. */
import '../parts/pages-style.js';
import {html} from '../core/html.js';
import {under} from '../core/api.js';
import {bytes, count, key, segment} from '../core/format.js';
import {useResource} from '../core/store.js';
import {Unreachable, UnderWay} from '../parts/badges.js';
import {Time} from '../parts/link.js';
import {Panel} from '../parts/panel.js';
import {Plain} from '../parts/plain.js';
import {Entries} from './entries.js';
import {OnePage} from '../parts/one.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {TableDescription, TablePartition} from 'api' */

/** @param {Filters} params */
export const title = ({scope, table}) => `${scope}/${table}`;

/** @param {{params: Record<string, string>, at: string | null}} props */
export default function OneTable({params: {scope, table}, at}) {
  const name = `${scope}/${table}`;
  const path = under`scopes/${scope}/tables/${table}`;
  const found = useResource(path, {of: [`table:${name}`, 'cluster'], past: true});
  const facts = (/** @type {TableDescription} */ data) => html`<dl class="facts">
    ${
      data.unreachable &&
      html`<dt>Unreachable</dt><dd><${Unreachable} found=${data.unreachable}
      of=${data.segments.length} what="partitions" /></dd>`
    }
    <dt>Created</dt><dd><${Time} at=${data.createdAt} /></dd>
    <dt>Keys</dt><dd>${count(data.config.primaryKeyLength, 'byte')}${
      data.config.secondaryKeyLength > 0 && ` and ${count(data.config.secondaryKeyLength, 'byte')} of a secondary key`
    }</dd>
    <dt>Rollover</dt><dd>
      ${data.config.rolloverSizeBytes ? `at ${bytes(data.config.rolloverSizeBytes)}` : 'as stores do'}</dd>
    <${UnderWay} workflow=${data.workflow} q=${name} />
  </dl>`;
  return html`<${OnePage} title="Table" kind="table" command="table" name=${table} lost="All its entries are gone."
    ...${{scope, path, found, at, facts}}>
    <${Panel} title="Partitions, by key range" of=${found}>${(data) => html`
      <${Plain} heads=${['Partition', 'Keys from', 'to', html`<span class="away">share</span>`]}>
      ${data.segments.map(
        (/** @type {TablePartition} */ one) => html`<tr key=${one.id}>
        <td class="id">${segment(one.id)}</td><td class="num">${key(one.low)}</td><td class="num">${key(one.high)}</td>
        <td class="range">
          <i style=${{marginLeft: `${one.low * 100}%`, width: `${(one.high - one.low) * 100}%`}}></i></td></tr>`,
      )}<//>`}<//>
    ${
      at === null && found.data
        ? html`<${Entries} name=${name} path=${path} hasSecondary=${found.data.config.secondaryKeyLength > 0} />`
        : null
    }
  <//>`;
}
