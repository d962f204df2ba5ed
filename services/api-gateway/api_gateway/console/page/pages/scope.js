/** A scope: what is in it, its streams in short, its deletion. */
import {html, useEffect, useMemo} from '../core/html.js';
import {under} from '../core/api.js';
import {number} from '../core/format.js';
import {href} from '../core/router.js';
import {useResource} from '../core/store.js';
import {deleteScope} from '../parts/actions.js';
import {UnderWay} from '../parts/badges.js';
import {Cli, cli} from '../parts/cli.js';
import {ActionButton, mayChange} from '../parts/dialog.js';
import {Time} from '../parts/link.js';
import {Gone, Panel} from '../parts/panel.js';
import {TimeSlider} from '../parts/slider.js';
import {Table} from '../parts/table.js';
import {columnsOf} from './stream-columns.js';
import {rowOf} from './stream-list.js';
import {StreamLoads} from './stream-loads.js';
/** @import {StreamRow} from './types.d.ts' */

const MOST = 20;

export const title = (/** @type {Record<string, string>} */ {scope}) => scope;

/** @param {{params: Record<string, string>, at: string | null}} props */
export default function Scope({params: {scope}, at}) {
  const found = useResource(under`scopes/${scope}`, {of: [`scope:${scope}`], past: true});
  return html`<div class="page">
    <div class="title"><h1><span class="muted">scope</span> ${scope}</h1>
      <span class="tools"><${Cli} line=${cli`scope show ${scope}`} /><${ActionButton} danger
        allowed=${found.problem?.kind === 'missing' ? {allowed: false, why: 'it is not there'} : mayChange('root')}
        onClick=${() => void deleteScope(scope, true)}>Delete with everything…<//></span></div>
    <${TimeSlider} name=${`scope:${scope}`} path="journal" query=${{key: scope}} />
    <${Panel} title="What is in it" of=${found} gone=${(problem) => html`<${Gone} problem=${problem}>
        <a href=${href('/journal', {key: `scope:${scope}`, from: '-7d'})}>What became of it</a>
        <${Cli} line=${cli`scope create ${scope}`} /><//>`}>${(data) => html`
      <dl class="facts">
        <dt>Streams</dt><dd><a href=${href('/streams', {scope})}>${number(data.streams)}</a></dd>
        <dt>Reader groups</dt><dd><a href=${href('/groups', {scope})}>${number(data.readerGroups)}</a></dd>
        <dt>Tables</dt><dd><a href=${href('/tables', {scope})}>${number(data.tables)}</a></dd>
        ${data.createdAt ? html`<dt>Created</dt><dd><${Time} at=${data.createdAt} /></dd>` : null}
        <${UnderWay} workflow=${data.workflow} q=${scope} />
      </dl>`}<//>
    ${at === null && !found.problem && html`<${Streams} scope=${scope} />`}
  </div>`;
}

/** The streams that changed last, in short. @param {{scope: string}} props */
function Streams({scope}) {
  const found = useResource('streams', {query: {scope, sort: 'changed', limit: MOST}, of: [`scope:${scope}`]});
  const loads = useMemo(() => new StreamLoads(), []);
  useEffect(() => loads.begin(), [loads]);
  const columns = useMemo(() => columnsOf(loads), [loads]);
  void loads.version.value;
  const rows = useMemo(() => (found.data?.items ?? []).map(rowOf), [found.data]);
  loads.wanted = () => rows.map(({key}) => key);
  useEffect(() => loads.moved(), [rows]);
  return html`<${Panel} title="Streams that changed last" of=${found} flush
    tools=${html`<a href=${href('/streams', {scope})}>all</a>`}
    emptyText="There is no stream in it." emptyCli=${cli`stream create ${`${scope}/orders`} --segments 4`}>
    ${() => html`<${Table} label="Streams" rows=${rows} columns=${columns}
      rowKey=${(/** @type {StreamRow} */ row) => row.key}
      open=${(/** @type {StreamRow} */ row) => href(['streams', row.scope, row.name])} />`}<//>`;
}
