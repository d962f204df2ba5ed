/** The legend of the picture: what its colours and patterns say, and the overlays with their keys. */
import {html, useEffect, useMemo, useRef} from '../../core/html.js';
import {number} from '../../core/format.js';
import {CREATING, DUPLICATE, MERGED, TRUNCATED} from '../../pictures/topology/model.js';
import {OVERLAYS} from '../../pictures/topology/overlays.js';
/** @import {Coloring, Model} from '../../pictures/types.d.ts' */

/** @param {{coloring: Coloring, model: Model, note: string}} props */
export function Legend({coloring, model, note}) {
  const flags = useMemo(() => model.flags.reduce((all, one) => all | one, 0), [model]);
  const states = [
    {flag: TRUNCATED, pattern: 'hatch', label: 'truncated'},
    {flag: CREATING, pattern: 'dashed', label: 'being created'},
    {flag: DUPLICATE, pattern: 'cross', label: 'duplicate of a rolling commit'},
    {flag: MERGED, pattern: 'dots', label: 'stands for several: there are too many to show each'},
  ].filter(({flag}) => flags & flag);
  return html`<div class="picture-legend" aria-label="Legend" role="group">
    <b>${coloring.title}</b>
    ${coloring.classes.map(
      (one) =>
        (one.count || (coloring.isOrdered && one !== coloring.classes.at(-1))) &&
        html`<span key=${one.label}><${Swatch} fill=${one.fill} ink=${one.ink}
      mark=${one.mark} /> ${one.label} <span class="muted num">${number(one.count)}</span></span>`,
    )}
    ${note ? html`<span class="muted">${note}</span>` : null}
    ${model.found.some(Boolean) && html`<span><i class="swatch found"></i> found by a restore, drawn wider</span>`}
    ${states.map(({pattern, label}) => html`<span key=${label}><i class=${`swatch ${pattern}`}></i> ${label}</span>`)}
  </div>`;
}

/** @param {{fill: string, ink: string, mark?: string}} props */
function Swatch({fill, ink, mark}) {
  const own = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    own.current?.style.setProperty('background-color', fill);
    own.current?.style.setProperty('color', ink);
  }, [fill, ink]);
  return html`<i ref=${own} class="swatch">${mark ?? ''}</i>`;
}

/**
 * The overlays, each with what it looks like and what it says.
 * @param {{on: Set<string>, onToggle: (name: any) => void, available: (name: string) => string, note: any}} props
 *   `available` gives why one shows nothing, or ''
 */
export function Overlays({on, onToggle, available, note}) {
  return html`<div class="picture-overlays">
    ${OVERLAYS.map(({name, label, hint}) => {
      const why = available(name);
      return html`<label key=${name} class="check"><input type="checkbox" checked=${on.has(name)}
        onChange=${() => onToggle(name)} />
        <i class=${`key ${name}`} aria-hidden="true"></i><span><b>${label}</b> <span class="muted">
          ${why || hint}</span></span></label>`;
    })}
    ${note}
  </div>`;
}
