/**
 * What lies over the picture while it is used: what is pointed at with those before and after it, the focus, what is
 * pinned, the dividing line that is dragged, the part of the keys that is brushed, where a key goes. These are
 * elements; the style sheet says what each looks like.
 */

import {html, render} from '../../core/html.js';
import {spanOf, toX, toY} from './view.js';
import {keyText} from './words.js';
/** @import {Lit, Model, View} from '../types.d.ts' */

/** @param {number} left @param {number} top @param {number} width @param {number} height */
function place(left, top, width, height) {
  return {left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px`};
}

/** @param {HTMLElement} host over the picture, and as large @param {Model} model @param {View} view @param {Lit} lit */
export function drawLit(host, model, view, lit) {
  const {sought, divider, brush, pointer} = lit;
  const down = (/** @type {number} */ key) => toY(view, key) - view.top;
  const box = (/** @type {number} */ rect, /** @type {string} */ look) => {
    const [from, to] = spanOf(model, view.axis, rect);
    const [x0, x1] = [Math.max(toX(view, from) - view.left, -3), Math.min(toX(view, to) - view.left, view.width + 3)];
    const [y0, y1] = [Math.max(down(model.high[rect]), -3), Math.min(down(model.low[rect]), view.height + 3)];
    return html`<i class=${look} style=${place(x0, y0, Math.max(x1 - x0, 1), Math.max(y1 - y0, 1))}></i>`;
  };
  render(
    html`<div class="plot" style=${place(view.left, view.top, view.width, view.height)}>
      ${sought?.rects.map((rect) => box(rect, 'sought'))}
      ${sought && html`<i class="key" style=${{top: `${down(sought.position)}px`}}></i>`}
      ${lit.kin.before.map((rect) => box(rect, 'before'))}
      ${lit.kin.after.map((rect) => box(rect, 'after'))}
      ${lit.pinned >= 0 && box(lit.pinned, 'pinned')}
      ${lit.focused >= 0 && box(lit.focused, 'focused')}
      ${lit.hovered >= 0 && box(lit.hovered, 'hovered')}
      ${divider && dividing(model, view, divider, down)}
      ${brush && html`<i class="brush" style=${place(0, brush.y0 - view.top, view.width, brush.y1 - brush.y0)}></i>`}
    </div>
    ${pointer && keyAt(view, pointer.y)}`,
    host,
  );
}

/**
 * @param {Model} model @param {View} view @param {{at: number[], low: number, high: number}} divider
 * @param {(key: number) => number} down
 */
function dividing(model, view, {at, low, high}, down) {
  const edge = toX(view, view.axis === 'time' ? model.now : model.epochs.count) - view.left;
  const from = Math.max(edge - 120, 0);
  return html`<i class="brush" style=${place(from, down(high), edge - from, down(low) - down(high))}></i>
    ${at.map(
      (key, index) => html`<i key=${index} class="divider" style=${place(from, down(key), edge - from, 0)}>
        <b>${keyText(Number(key.toFixed(6)))}</b></i>`,
    )}`;
}

/** The key at the pointer, on its axis. @param {View} view @param {number} y */
function keyAt(view, y) {
  if (y < view.top || y > view.top + view.height) return null;
  const key = view.y1 - ((y - view.top) / view.height) * (view.y1 - view.y0);
  const digits = Math.min(Math.max(Math.ceil(-Math.log10((view.y1 - view.y0) / view.height)), 2), 12);
  const right = `calc(100% - ${view.left - 2}px)`;
  return html`<b class="at" style=${{top: `${y}px`, right}}>${key.toFixed(digits)}</b>`;
}
