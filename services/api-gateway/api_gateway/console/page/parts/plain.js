/** A table of few rows, which are in the document as they are. */
import {html} from '../core/html.js';

/**
 * @param {{heads: any[], class?: string, children?: any}} props `heads`: texts or elements of the columns; one with #
 *   before
 *   its text has numbers
 */
export function Plain({heads, class: name = '', children}) {
  const head = (/** @type {any} */ one) => {
    const isNumber = typeof one === 'string' && one.startsWith('#');
    return html`<th scope="col" class=${isNumber ? 'num' : undefined}>${isNumber ? one.slice(1) : one}</th>`;
  };
  return html`<table class=${`plain ${name}`}><thead><tr>${heads.map(head)}</tr></thead><tbody>
    ${children}</tbody></table>`;
}
