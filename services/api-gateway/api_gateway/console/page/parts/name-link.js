/** Names in lists. */
import {html} from '../core/html.js';

const TAIL = 9;
const SHORT = 20;

/**
 * A link by a name that is cut in its middle where there is no room: names differ at their ends.
 * @param {{scope: string, name: string, to: string}} props
 */
export function NameLink({scope, name, to}) {
  const whole = `${scope}/${name}`;
  const at = name.length > SHORT ? name.length - TAIL : name.length;
  return html`<a class="name" href=${to} title=${whole} aria-label=${whole}><span class="cut"><span class="muted">
    ${scope}/</span>${name.slice(0, at)}</span><span>${name.slice(at)}</span></a>`;
}
