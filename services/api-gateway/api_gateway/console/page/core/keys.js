/**
 * Keys: sequences as `g s`, and single ones that a page adds. No key changes anything without a dialog.
 *
 * Keys do nothing while text is being written or a dialog is open, nor with Ctrl, Alt or Meta. Enter and the space bar
 * belong to the button or link that has the focus.
 */
import {signal, useEffect} from './html.js';
/** @import {Binding} from './types.d.ts' */

/** What is bound at present, for the list of all keys. */
export const bindings = signal(/** @type {Binding[]} */ ([]));

const NEXT_MS = 1500;
let before = '';
let beforeAt = 0;

/**
 * Bind keys, "r" or "g s". Gives what ends it.
 * @param {string} keys @param {string} what @param {string} group in the list of all keys
 * @param {(event: KeyboardEvent) => void} run
 */
export function bindKeys(keys, what, group, run) {
  const binding = {keys, what, run, group};
  bindings.value = [...bindings.peek(), binding];
  return () => {
    bindings.value = bindings.peek().filter((one) => one !== binding);
  };
}

/**
 * The same for as long as a component is shown.
 * @param {string} keys @param {string} what @param {(event: KeyboardEvent) => void} run
 */
export function useKey(keys, what, run) {
  useEffect(() => bindKeys(keys, what, 'On this page', run), [keys, run]);
}

const PRESSES = ['Enter', ' '];

/** Whether the event belongs to a field, a dialog, or what it presses. @param {KeyboardEvent} event */
function isElsewhere(event) {
  const target = event.composedPath()[0];
  if (!(target instanceof Element)) return false;
  const owners = 'input, textarea, select, [contenteditable], dialog';
  return target.closest(PRESSES.includes(event.key) ? `${owners}, a, button, summary` : owners) !== null;
}

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isElsewhere(event)) return;
  if (document.querySelector('dialog[open]')) return;
  const sequence = Date.now() - beforeAt < NEXT_MS ? `${before} ${event.key}` : event.key;
  const found =
    bindings.peek().findLast((one) => one.keys === sequence) ??
    bindings.peek().findLast((one) => one.keys === event.key);
  before = event.key;
  beforeAt = event.key === 'Shift' ? 0 : Date.now();
  if (found) {
    event.preventDefault();
    before = '';
    found.run(event);
  }
});
