/** The one polite live region: what happened, for who does not see it; at most a message in 5 s, the latest counts. */
import {html, signal} from '../core/html.js';

const EVERY_MS = 5000;
const message = signal('');
let next = '';
let saidAt = 0;
let isWaiting = false;

/** @param {string} text */
export function say(text) {
  next = text;
  if (isWaiting) return;
  isWaiting = true;
  const speak = () => {
    isWaiting = false;
    saidAt = Date.now();
    message.value = next;
  };
  setTimeout(speak, Math.max(0, saidAt + EVERY_MS - Date.now()));
}

export function LiveRegion() {
  return html`<div class="away" role="status" aria-live="polite">${message.value}</div>`;
}
