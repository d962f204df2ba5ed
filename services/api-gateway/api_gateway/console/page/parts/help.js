/** All keys that do something here and now. */
import {html, useEffect, useRef} from '../core/html.js';
import {bindings} from '../core/keys.js';

const HERE = 'On this page';

/** @param {{close: () => void}} props */
export function Help({close}) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => box.current?.showModal(), []);
  const found = [
    ...new Map(bindings.value.map((one) => [one.keys, one])).values(),
    {keys: 'Enter', what: 'open the row', group: HERE},
    {keys: 'Esc', what: 'close', group: 'Everywhere'},
  ];
  return html`<dialog ref=${box} class="keys" aria-labelledby="keys-title" onClose=${close}>
    <header class="row"><h2 id="keys-title">Keys</h2><span class="spread"></span><button type="button" class="quiet"
      onClick=${() => box.current?.close()}>Close</button></header>
    <div class="columns">${['Everywhere', 'Pages', HERE].map(
      (name) => html`<section key=${name}><h3>${name}</h3>
      <dl>${found
        .filter((one) => one.group === name)
        .map(
          (one) => html`<div key=${one.keys}><dt>
        ${one.keys.split(' ').map((key) => html`<kbd key=${key}>${key}</kbd> `)}</dt><dd>${one.what}</dd></div>`,
        )}</dl></section>`,
    )}</div>
    <p class="muted">No key changes anything without a dialog. Pictures take arrows, Enter, + and −.</p>
  </dialog>`;
}
