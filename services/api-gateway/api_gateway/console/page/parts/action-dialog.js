/**
 * Every action goes through this dialog: what, what it will do in numbers, the command line, the name to type where
 * there is no undo; then the id of the request and what became of it. An outcome that is not known is never "failed".
 *
 *     act({
 *       title: 'Truncate demo/orders', what: 'Everything before the cut is dropped.', verb: 'Truncate', danger: true,
 *       confirm: 'demo/orders', cli: cli`stream truncate ${'demo/orders'} --cut ${cutText}`,
 *       method: 'POST', path: under`scopes/${scope}/streams/${name}/truncate`, body: {cut}, dryRun: true,
 *     });
 */
import {html, useEffect, useRef, useState, onText} from '../core/html.js';
import {api, Problem} from '../core/api.js';
import {bytes, number} from '../core/format.js';
import {refresh} from '../core/store.js';
import {say} from './announce.js';
import {Cli} from './cli.js';
import {RequestLink} from './link.js';
/** @import {Action, Progress} from './types.d.ts' */

/** @param {{action: Action, end: () => void}} props */
export function ActionDialog({action, end}) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [typed, setTyped] = useState('');
  const stopped = useRef(false);
  const [effects, setEffects] = useState(/** @type {any} */ (undefined));
  const [state, setState] = useState(/** @type {Progress} */ ({step: 'asks'}));

  useEffect(() => {
    const element = /** @type {HTMLDialogElement} */ (box.current);
    element.showModal();
    /** @type {HTMLElement | null} */ (element.querySelector('[data-first="true"]'))?.focus();
    const call = new AbortController();
    if (action.dryRun)
      void dryRun(action, call.signal).then(setEffects, (error) => !call.signal.aborted && setEffects(error));
    return () => call.abort();
  }, []);

  useEffect(() => {
    if (state.step !== 'asks')
      /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector('footer .primary'))?.focus();
  }, [state.step]);

  async function carryOut() {
    setState({step: 'sent', since: Date.now()});
    try {
      if (action.run)
        setState({
          step: 'done',
          ended: await action.run(
            (progress) => setState({step: 'sent', since: Date.now(), progress}),
            () => stopped.current,
          ),
        });
      else {
        const reply = await api.send(action.method, action.path, {
          query: action.query,
          body: action.body,
          ifMatch: action.ifMatch,
          ifNoneMatch: action.ifNoneMatch,
        });
        setState({step: 'done', reply});
      }
      say(`${action.title}: done`);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setState({step: error.kind === 'unknown' ? 'unknown' : 'refused', problem: error});
      say(`${action.title}: ${error.kind === 'unknown' ? 'outcome not known yet' : 'refused'}`);
    }
    refresh();
  }

  const impossible = effects?.refused || (effects instanceof Problem && effects.kind !== 'unreachable');
  const isReady =
    (!action.confirm || typed === action.confirm) && !impossible && !(action.dryRun && effects === undefined);
  return html`<dialog ref=${box} class="action" data-busy=${state.step === 'sent' ? '' : undefined}
    aria-labelledby="action-title" onClose=${end}
    onCancel=${(/** @type {Event} */ event) => state.step === 'sent' && event.preventDefault()}>
    <form method="dialog" onSubmit=${(/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      if (state.step !== 'asks') box.current?.close();
      else if (isReady) void carryOut();
    }}>
      <h2 id="action-title">${action.title}</h2>
      ${action.what ? html`<div class="what">${action.what}</div>` : null}
      ${action.dryRun || action.effects ? html`<${Effects} given=${action.effects} effects=${effects} />` : null}
      ${effects instanceof Problem && effects.kind === 'changed' ? action.compare?.(effects) : null}
      ${
        state.step === 'asks' &&
        action.confirm &&
        !impossible &&
        html`<label class="field"><span>There is no undo. Type <b class="id">${action.confirm}</b> to go on.</span>
        <input type="text" data-first="true" autocomplete="off" autocapitalize="off" spellcheck=${false} value=${typed}
          onInput=${onText(setTyped)} /></label>`
      }
      <${Outcome} action=${action} state=${state} />
      ${action.cli ? html`<p class="line"><${Cli} line=${action.cli} /></p>` : null}
      <footer>
        ${
          state.step === 'asks'
            ? html`<button type="button" data-first=${!action.confirm && (action.danger || action.dryRun)}
              onClick=${() => box.current?.close()}>Leave it</button>
            <button type="submit" data-first=${!action.confirm && !action.danger && !action.dryRun}
              class=${action.danger ? 'primary danger' : 'primary'} disabled=${!isReady}>${action.verb}</button>`
            : html`${
                state.step === 'sent' && action.canStop
                  ? html`<button type="button" onClick=${() => (stopped.current = true)}>Stop after this one</button>`
                  : null
              }
            <button type="submit" class="primary" disabled=${state.step === 'sent'}>Close</button>`
        }
      </footer>
    </form>
  </dialog>`;
}

/** @param {Action} action @param {AbortSignal} signal */
async function dryRun(action, signal) {
  const reply = await api.send(action.method, action.path, {
    query: {...action.query, dryRun: true},
    body: action.body,
    ifMatch: action.ifMatch,
    asks: true,
    signal,
  });
  return reply.data;
}

/** What each number of a dry run says. @type {Record<string, (value: any) => string>} */
const EFFECTS = {
  segmentsSealed: (n) => `seals ${number(n)} ${n === 1 ? 'segment' : 'segments'}`,
  segmentsCreated: (n) => `creates ${number(n)} ${n === 1 ? 'segment' : 'segments'}`,
  segmentsDeleted: (n) => `deletes ${number(n)} ${n === 1 ? 'segment' : 'segments'}`,
  transactionsAborted: (n) => `aborts ${number(n)} open ${n === 1 ? 'transaction' : 'transactions'}`,
  bytesDropped: (n) => `drops ${bytes(n)}`,
  transactionsCommitted: (n) => `commits ${number(n)} ${n === 1 ? 'transaction' : 'transactions'} first`,
  waitsFor: (text) => `waits for ${text}`,
  readerGroupsBehind: (n) =>
    n === 1
      ? 'passes 1 reader group that has not read so far'
      : `passes ${number(n)} reader groups that have not read so far`,
};

const NO_EFFECT = html`<li>changes nothing that can be counted</li>`;

/** "segmentsSealed" as "segments sealed". @param {string} name */
function spaced(name) {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** @param {{given?: any, effects: any}} props */
function Effects({given, effects}) {
  if (given) return html`<div class="effects">${given}</div>`;
  if (effects === undefined) return html`<div class="effects muted">Works out what it would do…</div>`;
  if (effects instanceof Problem && effects.kind === 'changed')
    return html`<div class="effects bad"><b>Changed meanwhile by another caller.</b> ${effects.detail}</div>`;
  if (effects instanceof Problem)
    return html`<div class="effects"><b>Cannot say what it would do:</b> ${effects.detail}</div>`;
  if (effects.refused)
    return html`<div class="effects bad"><b>It would be refused:</b> ${effects.refused.detail}</div>`;
  const lines = Object.entries(effects.effects ?? {})
    .filter(([, value]) => value !== 0)
    .map(([name, value]) => EFFECTS[name]?.(value) ?? `${spaced(name)}: ${value}`);
  return html`<div class="effects"><b>What it will do</b><ul>
    ${lines.length > 0 ? lines.map((line) => html`<li key=${line}>${line}</li>`) : NO_EFFECT}</ul></div>`;
}

/** @param {{action: Action, state: Progress}} props */
function Outcome({action, state}) {
  if (state.step === 'asks') return null;
  if (state.step === 'sent')
    return html`<div class="outcome" role="status"><span class="spinner"
      aria-hidden="true"></span> ${state.progress ?? null} Asked ${html`<${Since} at=${state.since} />`}. The answer
        comes when it is done.</div>`;
  if (state.step === 'done') {
    const request = state.reply?.request || state.reply?.data?.request || '';
    return html`<div class="outcome ok" role="status">
      ${state.ended ?? (state.reply && action.done?.(state.reply)) ?? html`<b>Done.</b>`}
      ${request ? html`<p>Request <${RequestLink} id=${request} /></p>` : null}</div>`;
  }
  const {problem} = state;
  if (state.step === 'unknown') {
    return html`<div class="outcome warn" role="status">
      <b>Asked; the outcome is not known yet:</b> ${problem.detail}. It may go on.
      ${
        problem.request
          ? html`<p>Follow request <${RequestLink} id=${problem.request} /></p>`
          : html`<p>What is shown
        will say what became of it.</p>`
      }</div>`;
  }
  return html`<div class="outcome bad" role="alert"><b>
    ${problem.kind === 'changed' ? 'Changed meanwhile by another caller.' : 'Refused:'}</b> ${problem.detail}
    ${problem.reason ? html` <span class="id muted">${problem.reason}</span>` : null}
    ${problem.request ? html`<p>Request <${RequestLink} id=${problem.request} /></p>` : null}
    ${problem.kind === 'changed' ? action.compare?.(problem) : null}</div>`;
}

/** @param {{at: number}} props */
function Since({at}) {
  const [, draw] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => draw((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return html`<span class="num">${Math.round((Date.now() - at) / 1000)} s ago</span>`;
}
