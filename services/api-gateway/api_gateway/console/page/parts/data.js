/** What clients wrote, a line each that opens, as text, JSON or hex. It is foreign: it becomes text nodes only. */
import './pages-style.js';
import {html, useState} from '../core/html.js';
import {bytes} from '../core/format.js';
import {bytesOf, hexLines, jsonOf} from '../core/values.js';
import {Badge} from './badges.js';
import {Choice} from './choice.js';
import {Copy} from './cli.js';
/** @import {Data} from 'api' */

const BRIEF = 200;
const SHOWN_LINES = 1024;

const FORMS = /** @type {[string, string][]} */ ([
  ['text', 'Text'],
  ['json', 'JSON'],
  ['hex', 'Hex'],
]);

/** In which form data are shown, and the choice of it. */
export function useForm() {
  const [form, setForm] = useState('text');
  return {form, choice: html`<${Choice} small label="Shown as" value=${form} options=${FORMS} onChange=${setForm} />`};
}

/** What is no text is hex whatever is chosen. @param {Data} data @param {string} form */
function wholeText(data, form) {
  if (form === 'hex' || data.encoding !== 'text') return hexLines(bytesOf(data), SHOWN_LINES).join('\n');
  return (form === 'json' && jsonOf(data)?.text) || data.value;
}

/** On one line. @param {{data: Data, form: string}} props */
export function Brief({data, form}) {
  if (form !== 'hex' && data.encoding === 'text') return data.value.slice(0, BRIEF);
  return hexLines(bytesOf(data), 2)
    .map((line) => line.slice(8, 56).trim())
    .join(' ');
}

/**
 * One of them: its facts and beginning, and all of it when it is opened.
 * @param {{head: any, links?: any, data: Data, form: string}} props `head`: elements of the line's first columns, none
 *   of which can be pressed; `links`: where it leads to once it is opened
 */
export function Datum({head, links, data, form}) {
  const [open, setOpen] = useState(false);
  const text = open ? wholeText(data, form) : '';
  return html`<li><details onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}>
    <summary>${head}<span class="num muted">${bytes(data.size)}</span>
      <span class="id brief"><${Brief} data=${data} form=${form} /></span></summary>
    ${
      open
        ? html`<div class="detail">${links} <${Copy} text=${text} label="copy" />
      ${
        bytesOf(data).length < data.size
          ? html`<span class="muted">Its first ${bytes(bytesOf(data).length)} of ${bytes(data.size)}.</span>`
          : null
      }<pre tabindex="0" aria-label="data">${text}</pre></div>`
        : null
    }</details></li>`;
}

/** Says of what follows that it is not Sluice's own. @param {{by: string}} props */
export function Foreign({by}) {
  return html`<${Badge} title=${`Written by ${by}; Sluice only shows it.`} shape=${false}>data of ${by}<//>`;
}
