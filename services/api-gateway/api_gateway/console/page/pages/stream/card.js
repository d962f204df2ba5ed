/** The card of a segment that was chosen in the picture: what it is, where it is, and what can be done with it. */
import {html, useEffect, useState} from '../../core/html.js';
import {api, Problem, under} from '../../core/api.js';
import {segment} from '../../core/format.js';
import {ActionButton} from '../../parts/dialog.js';
import {Cli, cli, Copy} from '../../parts/cli.js';
import {ContainerLink, StoreLink} from '../../parts/link.js';
import {divided, inParts, keysIn} from '../../pictures/topology/cover.js';
import {active, kin, nameOf, newestId} from '../../pictures/topology/model.js';
import {facts, keyText, rangeText} from '../../pictures/topology/words.js';
import {scaleStream} from './actions.js';
/** @import {Model, Range} from '../../pictures/types.d.ts' */
/** @import {OfStream} from '../types.d.ts' */
/** @import {Allowed} from 'api' */

/**
 * @param {object} props @param {string} props.scope @param {string} props.stream
 * @param {Model} props.model @param {number} props.rect @param {any} props.about what is known of it beside the model
 * @param {Allowed | undefined} props.allowed whether the stream can be scaled
 * @param {(rect: number) => void} props.onPin @param {() => void} props.onZoom
 * @param {(divider: {at: number[], low: number, high: number} | null) => void} props.onDivide shows the line that is
 *   typed
 */
export function Card({scope, stream, model, rect, about, allowed, onPin, onZoom, onDivide}) {
  const {before, after} = kin(model, rect);
  const isActive = model.end[rect] === Infinity && !model.sealed;
  const id = newestId(model, rect);
  return html`<aside class="picture-card" aria-label=${`Segment ${nameOf(model, rect)}`}>
    <header><h3 class="id">${nameOf(model, rect)}</h3><${Copy} text=${id} label="copy id" />
      <button type="button" class="small quiet" aria-label="Close the card"
        onClick=${() => onPin(-1)}>✕</button></header>
    <dl class="facts">${facts(model, rect, about).map(([what, value]) => html`<dt>${what}</dt><dd>${value}</dd>`)}
      ${
        model.known.rect.reduce((many, one) => many + (one === rect ? 1 : 0), 0) > 1
          ? html`<dt>Newest id</dt>
        <dd class="id">${segment(BigInt(id))}</dd>`
          : null
      }
    </dl>
    <${Kin} label="Came for" rects=${before} model=${model} onPin=${onPin} none="one of the first" tone="before" />
    <${Kin} label="Replaced by" rects=${after} model=${model} onPin=${onPin}
      none=${isActive ? 'none: it is written to' : 'none'} tone="after" />
    <div class="row"><button type="button" class="small" onClick=${onZoom}>Show closer</button><${Locate} scope=${scope}
      stream=${stream} id=${id} /></div>
    ${
      isActive &&
      html`<${Split} key=${id} scope=${scope} stream=${stream} model=${model} rect=${rect} id=${id}
          allowed=${allowed} onDivide=${onDivide} />
      <${Merge} key=${`m${id}`} scope=${scope} stream=${stream} model=${model} rect=${rect} allowed=${allowed} />`
    }
    <${Cli} line=${cli`stream successors ${`${scope}/${stream}`} ${segment(BigInt(id))}`} />
  </aside>`;
}

/**
 * @param {{label: string, rects: number[], model: Model, onPin: (rect: number) => void, none: string, tone: string}}
 *   props
 */
function Kin({label, rects, model, onPin, none, tone}) {
  const [all, setAll] = useState(false);
  const shown = all ? rects : rects.slice(0, 6);
  return html`<div class="kin"><span class=${`muted ${tone}`}>${label}</span>
    ${rects.length === 0 ? html`<span class="muted">${none}</span>` : null}
    ${shown.map(
      (rect) => html`<button key=${rect} type="button" class="small id" onClick=${() => onPin(rect)}>
      ${nameOf(model, rect)}</button>`,
    )}
    ${
      rects.length > shown.length &&
      html`<button type="button" class="small quiet" onClick=${() => setAll(true)}>
      ${rects.length - shown.length} more</button>`
    }
  </div>`;
}

/** Where the segment is, asked of the gateway when it is wanted. @param {OfStream & {id: string}} props */
function Locate({scope, stream, id}) {
  const [found, setFound] = useState(/** @type {any} */ (null));
  useEffect(() => setFound(null), [id]);
  async function locate() {
    setFound({asked: true});
    try {
      setFound(await api.get(under`scopes/${scope}/streams/${stream}/segments/${id}/location`));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setFound({problem: error.detail});
    }
  }
  if (!found) return html`<button type="button" class="small" onClick=${locate}>Locate</button>`;
  if (found.asked) return html`<span class="muted">asks…</span>`;
  if (found.problem) return html`<span class="bad" role="status">${found.problem}</span>`;
  return html`<span role="status"><span class="id">${found.segment}</span> is
      in <${ContainerLink} container=${found.container} /> at <${StoreLink} store=${found.store} /></span>`;
}

/**
 * @param {OfStream & {model: Model, rect: number, id: string, allowed?: Allowed, onDivide: (divider: any) => void}}
 *   props
 */
function Split({scope, stream, model, rect, id, allowed, onDivide}) {
  /** @type {Range} */
  const range = [model.low[rect], model.high[rect]];
  const [text, setText] = useState(keyText((range[0] + range[1]) / 2));
  const [why, setWhy] = useState('');
  const keys = keysIn(text);
  useEffect(() => {
    const inside = (keys ?? []).filter((key) => key > range[0] && key < range[1]);
    onDivide(inside.length ? {at: inside, low: range[0], high: range[1]} : null);
    return () => onDivide(null);
  }, [text]);
  function split() {
    if (!keys) setWhy('Type one key or several, such as 0.25, 0.5.');
    else setWhy(scaleStream(scope, stream, {ids: [id], gone: [range], come: divided(range, keys)}) ?? '');
  }
  return html`<form class="field" onSubmit=${(/** @type {Event} */ event) => {
    event.preventDefault();
    split();
  }}>
    <label for="split-at">Split at <span class="muted">keys between ${rangeText(model, rect)}</span></label>
    <div class="row"><input id="split-at" type="text" inputmode="decimal" autocomplete="off" value=${text}
      aria-invalid=${why ? 'true' : undefined} onInput=${(event) => {
        setText(event.currentTarget.value);
        setWhy('');
      }} />
      ${[2, 3, 4].map(
        (parts) =>
          html`<button key=${parts} type="button" class="small quiet" title=${`${parts} equal parts`} onClick=${() =>
            setText(
              inParts(range, parts)
                .slice(1)
                .map(([low]) => keyText(low))
                .join(', '),
            )}>÷${parts}</button>`,
      )}
      <${ActionButton} allowed=${allowed} onClick=${split}>Split…<//></div>
    ${why ? html`<p class="bad" role="alert">${why}</p>` : null}
  </form>`;
}

/** @param {OfStream & {model: Model, rect: number, allowed?: Allowed}} props */
function Merge({scope, stream, model, rect, allowed}) {
  const [why, setWhy] = useState('');
  const living = active(model);
  const place = living.indexOf(rect);
  const neighbours = [
    ['above', living[place + 1]],
    ['below', living[place - 1]],
  ].filter((one) => one[1] !== undefined);
  function merge(/** @type {number} */ other) {
    const both = [rect, other].sort((a, b) => model.low[a] - model.low[b]);
    setWhy(
      scaleStream(scope, stream, {
        ids: both.map((one) => newestId(model, one)),
        gone: both.map((one) => [model.low[one], model.high[one]]),
        come: [[model.low[both[0]], model.high[both[1]]]],
      }) ?? '',
    );
  }
  if (!neighbours.length) return null;
  return html`<div class="row"><span class="muted">Merge with</span>
    ${neighbours.map(
      ([where, other]) => html`<${ActionButton} key=${where} small allowed=${allowed}
      onClick=${() => merge(/** @type {number} */ (other))}>
        ${nameOf(model, /** @type {number} */ (other))}, ${where}…<//>`,
    )}
    ${why ? html`<p class="bad" role="alert">${why}</p>` : null}</div>`;
}
