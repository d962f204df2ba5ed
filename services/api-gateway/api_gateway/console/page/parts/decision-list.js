/** Decisions as a list, newest first: what was decided in words, the reason, its numbers, and the request it led to. */
import {html} from '../core/html.js';
import {bytes, duration, number} from '../core/format.js';
import {Badge} from './badges.js';
import {CODES, KINDS, codeWords} from './decision-words.js';
import {RequestLink, StreamLink, Time} from './link.js';
/** @import {DecisionModel} from 'api' */

/** What was decided, with its shape: filled acts, empty does not. @param {{code: string}} props */
export function Code({code}) {
  const known = CODES[code];
  return html`<${Badge} tone=${known?.acts ? 'ok' : 'idle'} title=${known?.means ?? code}>${codeWords(code)}<//>`;
}

/** What became of the request that a decision made. @param {{decided: DecisionModel}} props */
export function Outcome({decided}) {
  if (!decided.request) return null;
  const words = decided.carriedOut === undefined ? 'requested' : decided.carriedOut ? 'carried out' : 'not carried out';
  return html`<span class="became">
    <${Badge} tone=${decided.carriedOut === false ? 'warn' : decided.carriedOut ? 'ok' : 'info'}>
      ${words}<//> <${RequestLink} id=${decided.request} />
  </span>`;
}

/**
 * A number whose unit is the end of its name: `heldBytes`, `minimumMs`, `targetEvents`.
 * @param {string} name @param {number} value
 */
function amount(name, value) {
  if (typeof value === 'string') return value;
  if (name.endsWith('Bytes')) return bytes(value);
  if (name.endsWith('Ms')) return duration(Number(value));
  return name === 'targetEvents'
    ? `${number(value)} events/s`
    : name === 'targetKBytes'
      ? `${number(value)} KB/s`
      : number(value);
}

/** The numbers that a decision rests on. @param {{numbers: Record<string, number> | undefined}} props */
export function Numbers({numbers}) {
  if (!numbers || Object.keys(numbers).length === 0) return null;
  return html`<dl class="numbers">${Object.entries(numbers).map(
    ([name, value]) => html`
    <div key=${name}><dt>${name
      .replace(/(Bytes|Ms|Events|KBytes)$/, '')
      .replaceAll(/([A-Z])/g, ' $1')
      .toLowerCase()}</dt><dd>${amount(name, value)}</dd></div>`,
  )}</dl>`;
}

/**
 * @param {{items: DecisionModel[], streams?: boolean, scrolls?: boolean}} props `streams`: whether each says which
 *   stream it is about; `scrolls`: within its place
 */
export function DecisionList({items, streams = false, scrolls = false}) {
  return html`<ol class="decisions" tabindex=${scrolls ? 0 : undefined} aria-label=${scrolls ? 'Decisions' : undefined}>
    ${items.map(
      (one, index) => html`
    <li key=${`${one.at} ${one.stream ?? ''} ${one.kind} ${index}`}>
      <span class="when"><${Time} at=${one.at} /></span>
      <span class="what"><${Code} code=${one.code} /></span><span class="kind muted">
        ${KINDS[one.kind] ?? one.kind}</span>
      <div class="why">
        ${streams && one.stream ? html`<${StreamLink} ...${split(one.stream)} tab="why" /> ` : null}<span>
          ${one.reason}</span>
        <${Numbers} numbers=${one.numbers} />
      </div>
      <${Outcome} decided=${one} />
    </li>`,
    )}</ol>`;
}

/** @param {string} stream scope/name */
export function split(stream) {
  const slash = stream.indexOf('/');
  return {scope: stream.slice(0, slash), stream: stream.slice(slash + 1)};
}
