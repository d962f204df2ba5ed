/** The entries of a key-value table, page by page, or the one of a key. */
import {html, onText, useState} from '../core/html.js';
import {number, segment} from '../core/format.js';
import {useResource} from '../core/store.js';
import {Cli, cli} from '../parts/cli.js';
import {Brief, Datum, Foreign, useForm} from '../parts/data.js';
import {Empty, Panel} from '../parts/panel.js';
/** @import {EntryItem, EntryList, PartitionProblem} from 'api' */

const SHOWN = 50;

/** @param {{name: string, path: string, hasSecondary: boolean}} props `path` of the table's description */
export function Entries({name, path, hasSecondary}) {
  const [key, setKey] = useState('');
  const [secondary, setSecondary] = useState('');
  const [asked, ask] = useState(/** @type {Record<string, string>} */ ({}));
  const found = useResource(`${path}/entries`, {query: {...asked, limit: SHOWN}, keep: true});
  const {form, choice} = useForm();
  const line = !asked.key
    ? cli`table entries ${name} --limit ${SHOWN}`
    : asked.secondary
      ? cli`table get ${name} ${asked.key} --secondary ${asked.secondary}`
      : cli`table get ${name} ${asked.key}`;
  return html`<${Panel} title="Entries" of=${found}
    tools=${html`<${Foreign} by="clients" />${choice}
      <button type="button" class="small" onClick=${found.reload}>Read again</button><${Cli} line=${line} />`}>
    ${(/** @type {EntryList} */ data) => html`
      <form class="filters" onSubmit=${(/** @type {Event} */ event) => {
        event.preventDefault();
        ask(key ? {key, ...(hasSecondary ? {secondary} : {})} : {});
      }}>
        <label>Key <input type="search" spellcheck=${false} autocomplete="off" value=${key}
          onInput=${onText(setKey)} /></label>
        ${
          hasSecondary
            ? html`<label>Secondary <input type="search" spellcheck=${false} autocomplete="off" value=${secondary}
          onInput=${onText(setSecondary)} /></label>`
            : null
        }<button type="submit">Find</button></form>
      ${data.items.length === 0 ? html`<${Empty} text=${asked.key ? 'No entry of this key.' : 'No entries.'} />` : null}
      <ol class="records data">${data.items.map(
        (/** @type {EntryItem} */ one) => html`<${Datum} key=${`${one.partition}/${one.version}`} data=${one.value}
        form=${form} head=${html`<span class="id" title=${`partition ${segment(one.partition)}`}>
            <${Brief} data=${one.key} form=${form} />${
              one.secondary ? html` / <${Brief} data=${one.secondary} form=${form} />` : null
            }</span>
          <span class="num muted" title="version">v${number(one.version)}</span>`} />`,
      )}</ol>
      ${data.problems.map(
        (/** @type {PartitionProblem} */ one) => html`<p class="warn" role="status"><b class="id">
          ${segment(one.partition)}</b>: ${one.problem}</p>`,
      )}
      <div class="row">${
        asked.after ? html`<button type="button" onClick=${() => ask({})}>First page</button>` : null
      }${
        data.next
          ? html`<button type="button" onClick=${() => ask({after: String(data.next)})}>Next page</button>`
          : null
      }</div>`}
  <//>`;
}
