/** The page of one thing that lies in a scope, a reader group or a table: its head, its moment and its facts. */
import {html} from '../core/html.js';
import {href} from '../core/router.js';
import {State} from './badges.js';
import {Cli, quoted} from './cli.js';
import {act, ActionButton, allowedOf} from './dialog.js';
import {ScopeLink} from './link.js';
import {Gone, Panel} from './panel.js';
import {TimeSlider} from './slider.js';
/** @import {Problem} from '../core/api.js' */
/** @import {ResourceView} from '../core/types.d.ts' */

/**
 * @param {object} props
 * @param {string} props.title of its facts: "Reader group" @param {string} props.kind in keys of the journal
 * @param {string} props.scope @param {string} props.name @param {string} props.path of its description
 * @param {ResourceView} props.found @param {string | null} props.at
 * @param {string} props.command of the command line @param {string} props.lost what goes with it
 * @param {(data: any) => any} props.facts @param {any} [props.children] what stands below them
 */
export function OnePage({title, kind, scope, name, path, found, at, command, lost, facts, children}) {
  const full = `${scope}/${name}`;
  const what = `${title.toLowerCase()} ${full}`;
  const line = (/** @type {string} */ verb) => `sluice ${command} ${verb} ${quoted(full)}`;
  const remove = () =>
    act({
      title: `Delete ${what}`,
      what: lost,
      verb: 'Delete',
      danger: true,
      confirm: full,
      method: 'DELETE',
      path,
      cli: line('delete'),
    });
  const gone = (/** @type {Problem} */ problem) => html`<${Gone} problem=${problem}>
    <a href=${href('/journal', {key: `${kind}:${full}`, from: '-7d'})}>What the journal has of it</a><//>`;
  return html`<div class="page">
    <div class="title"><h1><span class="muted"><${ScopeLink} scope=${scope} />/</span>${name}</h1>
      <${State} state=${found.data?.state} unreachable=${found.data?.unreachable?.segments} />
      <span class="tools"><${Cli} line=${at === null ? line('show') : `${line('show')} --at ${quoted(at)}`} />
        <${ActionButton} danger onClick=${remove} allowed=${allowedOf(found.data, 'delete')}>Delete<//></span></div>
    <${TimeSlider} name=${what} query=${{key: `${kind}:${full}`}} />
    <${Panel} title=${title} of=${found} gone=${gone}>${facts}<//>
    ${children}
  </div>`;
}
