/**
 * A canvas picture within a page: drawn anew with its model, with what has focus said below it, and as a table beside
 * it.
 */
import {html, useEffect, useRef, useState} from '../core/html.js';
import {utc} from '../core/time.js';
/** @import {Model} from '../pictures/types.d.ts' */

/**
 * @template Model
 * @param {{
 * make: (host: HTMLElement, options: any) => {update: (model: Model) => void, setClock?: (clock: any) => void, destroy:
 * () => void},
 *   model: Model, options?: Record<string, any>, hint?: string, legend?: any, table?: () => any, most?: number,
 * }} props `make` and what `options` hold are those of the first time; `hint` stands where nothing has focus; `table`
 *   draws the same as text once it is opened; `most` is the height from which it scrolls, in px
 */
export function Picture({make, model, options = {}, hint = '', legend, table, most}) {
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  const picture = useRef(/** @type {any} */ (null));
  const current = useRef(options);
  const [says, setSays] = useState('');
  const [open, setOpen] = useState(false);
  current.current = options;
  const clock = utc.value ? 'utc' : 'local';

  useEffect(() => {
    if (host.current === null) return undefined;
    /** @type {Record<string, any>} */
    const calls = {};
    for (const name of Object.keys(options)) {
      calls[name] =
        typeof options[name] === 'function'
          ? (/** @type {any[]} */ ...values) => current.current[name](...values)
          : options[name];
    }
    picture.current = make(host.current, {clock, ...calls, onFocus: setSays});
    return () => picture.current.destroy();
  }, []);
  useEffect(() => picture.current?.setClock?.(clock), [clock]);
  useEffect(() => picture.current?.update(model), [model]);

  return html`
    <figure class="picture">
      ${legend}
      <div class="picture-place ${most ? 'scrolls' : ''}" style=${most ? {maxHeight: `${most}px`} : undefined}
        ref=${host}></div>
      <figcaption class="picture-says">${says || html`<span class="muted">${hint}</span>`}</figcaption>
      ${
        table &&
        html`
        <details class="picture-table" onToggle=${(event) => setOpen(event.currentTarget.open)}>
          <summary>As a table</summary>
          ${open && table()}
        </details>`
      }
    </figure>`;
}
