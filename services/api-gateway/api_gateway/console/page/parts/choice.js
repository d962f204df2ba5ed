/** Buttons of which one is chosen. */
import {html, onText} from '../core/html.js';
import {duration} from '../core/format.js';

/**
 * @param {{label: string, value: string, options: [string, string][], onChange: (value: string) => void, small?:
 *   boolean}} props
 *   `options`: each with its words
 */
export function Choice({label, value, options, onChange, small = false}) {
  const button = (/** @type {[string, string]} */ [name, text]) => html`<button type="button" key=${name}
    class=${small ? 'small' : ''} aria-pressed=${String(name === value)} onClick=${() => onChange(name)}>
      ${text}</button>`;
  return html`<span class="choice" role="group" aria-label=${label}>${options.map(button)}</span>`;
}

const HOUR_MS = 3_600_000;

/** Spans to look back over, as an address has them. @type {[string, number][]} */
export const SPANS = [
  ['1h', HOUR_MS],
  ['6h', 6 * HOUR_MS],
  ['24h', 24 * HOUR_MS],
  ['7d', 168 * HOUR_MS],
];

/** The same with their words, for a choice. */
export const SPAN_WORDS = SPANS.map(([name, ms]) => /** @type {[string, string]} */ ([name, duration(ms)]));

/**
 * A list of which one is chosen.
 * @param {{value: string, options: [string, string][], onChange: (value: string) => void, label?: string}} props
 *   `label`:
 *   where no other one stands before it
 */
export function Select({value, options, onChange, label}) {
  const option = (/** @type {[string, string]} */ [name, text]) =>
    html`<option key=${name} value=${name}>${text}</option>`;
  return html`<select aria-label=${label} value=${value} onChange=${onText(onChange)}>${options.map(option)}</select>`;
}
