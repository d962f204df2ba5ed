/** The form that makes a stream: name, scaling, retention; then the dialog of the action. */
import {html, onText, signal, useEffect, useRef, useState} from '../core/html.js';
import {under} from '../core/api.js';
import {href} from '../core/router.js';
import {act} from './dialog.js';
import {cli} from './cli.js';
import {Select} from './choice.js';

const SCALINGS = [
  ['fixed', 'by hand: a fixed number of segments'],
  ['events', 'by itself, at a rate of events per second'],
  ['kbytes', 'by itself, at a rate of kilobytes per second'],
];

const shown = signal(/** @type {{scope: string} | null} */ (null));

/** Ask for the facts of a new stream. @param {string} [scope] */
export function createStream(scope = '') {
  shown.value = {scope};
}

/** The place of the form, once on the page. */
export function CreateStream() {
  return shown.value ? html`<${Form} scope=${shown.value.scope} end=${() => (shown.value = null)} />` : null;
}

/** @param {{scope: string, end: () => void}} props */
function Form({scope, end}) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [name, setName] = useState(scope ? `${scope}/` : '');
  const [type, setType] = useState('fixed');
  const [segments, setSegments] = useState(1);
  const [rate, setRate] = useState(100);
  const [factor, setFactor] = useState(2);
  useEffect(() => box.current?.showModal(), []);
  const names = /^([A-Za-z0-9._-]+)\/([A-Za-z0-9._-]+)$/.exec(name);

  /** @param {Event} event */
  function next(event) {
    event.preventDefault();
    if (!names) return;
    const [, inScope, stream] = names;
    const scaling =
      type === 'fixed' ? {minSegments: segments} : {type, targetRate: rate, scaleFactor: factor, minSegments: segments};
    box.current?.close();
    void act({
      title: `Create ${name}`,
      verb: 'Create',
      method: 'PUT',
      path: under`scopes/${inScope}/streams/${stream}`,
      body: {scaling},
      ifNoneMatch: '*',
      effects: html`Creates ${segments} ${segments === 1 ? 'segment' : 'segments'} and the stream of its watermarks. Its
        scope has to be there.`,
      cli:
        type === 'fixed'
          ? cli`stream create ${name} --segments ${segments}`
          : cli`stream create ${name} --scale ${`${type}:${rate}`} --factor ${factor} --min ${segments}`,
      done: () => html`<b>It is there.</b> <a href=${href(['streams', inScope, stream])}>Open it</a>`,
    });
  }

  /** @param {string} label @param {number} value @param {(value: number) => void} set */
  const figure = (label, value, set) =>
    html`<label class="field">${label}<input type="number" min="1" max="10000" required value=${value}
      onInput=${(event) => set(event.currentTarget.valueAsNumber)} /></label>`;
  return html`<dialog ref=${box} class="action" aria-labelledby="create-title" onClose=${end}><form onSubmit=${next}>
    <h2 id="create-title">Create a stream</h2>
    <label class="field">Scope and name<input type="text" required placeholder="demo/orders" autocomplete="off"
      spellcheck=${false} value=${name} onInput=${onText((text) => setName(text.trim()))} /></label>
    <label class="field">Scaling<${Select} value=${type} options=${SCALINGS} onChange=${setType} /></label>
    <div class="grid">${figure(type === 'fixed' ? 'Segments' : 'At least so many segments', segments, setSegments)}
      ${
        type === 'fixed'
          ? null
          : html`${figure('Target of a segment, per second', rate, setRate)}
        ${figure('A hot segment becomes so many', factor, setFactor)}`
      }</div>
    <footer><button type="button" onClick=${() => box.current?.close()}>Leave it</button><button type="submit"
      class="primary" disabled=${!names}>Next</button></footer>
  </form></dialog>`;
}
