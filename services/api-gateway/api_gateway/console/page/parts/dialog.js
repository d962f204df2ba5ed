/**
 * Actions: their buttons, and whether they are offered. `act` opens the dialog that every action goes through, see
 * `action-dialog.js`.
 */
import {html, signal, useLater} from '../core/html.js';
import {liveState} from '../core/live.js';
import {inPast} from '../core/time.js';
/** @import {Action} from './types.d.ts' */

const current = signal(/** @type {{action: Action, end: () => void} | null} */ (null));

/**
 * Ask for an action and carry it out; ends when the dialog is closed.
 * @param {Action} action @returns {Promise<void>}
 */
export function act(action) {
  return new Promise((resolve) => {
    current.value = {
      action,
      end: () => {
        current.value = null;
        resolve();
      },
    };
  });
}

/**
 * A button of an action: greyed with its reason where it is not allowed, in the past, read-only or on old data.
 * @param {{children?: any, onClick: () => void, allowed?: {allowed: boolean, why?: string} | null, danger?: boolean,
 *   small?: boolean, title?: string}} props
 */
export function ActionButton({children, onClick, allowed, danger = false, small = false, title}) {
  const why = whyNot(allowed);
  return html`<button type="button" class=${`${small ? 'small' : ''} ${danger ? 'danger' : ''}`}
    aria-disabled=${why ? 'true' : undefined}
    title=${why || title} onClick=${() => !why && onClick()}>${children}</button>`;
}

/** Whether nothing may be changed by this page, and why; set once by what `/me` says. */
export const readOnly = signal('');

/** What the caller may do with what is in no scope, as `/me` says it: READ_UPDATE, READ or NONE, by its name there. */
export const rights = signal(/** @type {Record<string, string>} */ ({}));

/**
 * Whether the caller may change what is in no scope, in the form of an entry of `allowed`.
 * @param {'root' | 'workflows' | 'deadLetters'} what
 */
export function mayChange(what) {
  return {allowed: (rights.value[what] ?? 'READ_UPDATE') === 'READ_UPDATE', why: 'the credentials do not allow it'};
}

/**
 * Why an action is not offered, or ''.
 * @param {{allowed: boolean, why?: string} | null | undefined} [allowed] one of `allowed` of a description
 */
export function whyNot(allowed) {
  if (inPast.value) return 'a past moment is shown';
  if (readOnly.value) return readOnly.value;
  if (liveState.value === 'old') return 'what is shown is too old to act on';
  return allowed && !allowed.allowed ? (allowed.why ?? 'not allowed now') : '';
}

/**
 * The entry of an action in `allowed` of a description.
 * @param {{allowed?: {action: string, allowed: boolean, why?: string}[]} | undefined} description
 * @param {string} action
 */
export function allowedOf(description, action) {
  return description?.allowed?.find((one) => one.action === action);
}

/** The place of the dialog, once on the page; its module is loaded with the first action. */
export function Dialogs() {
  const shown = current.value;
  const Dialog = useLater(Boolean(shown), () => import('./action-dialog.js'))?.ActionDialog;
  return shown && Dialog ? html`<${Dialog} key=${shown.action.title} ...${shown} />` : null;
}
