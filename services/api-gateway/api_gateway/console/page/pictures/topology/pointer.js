/**
 * The pointer on a picture: pointing lights, a click pins, dragging moves, a double click goes closer. Dragging on the
 * key
 * axis, or with Shift, brushes keys; dragging a dividing line near now moves it. The wheel zooms with Ctrl only, so
 * that
 * a page with the picture can be scrolled.
 */

import {dividerAt, rectAtPixel} from './hit.js';
import {fromY, held, moved, zoomed} from './view.js';
/** @import {Drag} from '../types.d.ts' */

/** A press that moves less than this, in pixels, is a click. */
const CLICK = 4;

export class Pointer {
  /** @param {import('../topology.js').Topology} picture */
  constructor(picture) {
    this.picture = picture;
    /** @type {Drag | null} */
    this.drag = null;
    const {over} = picture;
    const options = {signal: picture.ended.signal};
    over.addEventListener('pointerdown', (event) => this.#down(event), options);
    over.addEventListener('pointermove', (event) => this.#move(event), options);
    over.addEventListener('pointerup', (event) => this.#up(event), options);
    over.addEventListener('pointercancel', () => this.#end(), options);
    over.addEventListener('pointerleave', () => this.drag || picture.leave(), options);
    over.addEventListener('dblclick', (event) => this.#double(event), options);
    over.addEventListener('wheel', (event) => this.#wheel(event), {...options, passive: false});
  }

  get isDown() {
    return this.drag !== null;
  }

  /** @param {PointerEvent} event */
  #down(event) {
    const {model, view, canDivide, over} = this.picture;
    if (!model || !view || event.button !== 0) return;
    const [x, y] = [event.offsetX, event.offsetY];
    const divider = canDivide ? dividerAt(model, view, x, y) : null;
    const begun = {x, y, hasMoved: false};
    this.drag = divider
      ? {kind: 'divide', ...divider, ...begun}
      : {kind: x < view.left || event.shiftKey ? 'brush' : 'move', ...begun};
    over.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const {picture, drag} = this;
    const {model, view, over} = picture;
    if (!model || !view) return;
    const [x, y] = [event.offsetX, event.offsetY];
    if (!drag) {
      over.style.cursor =
        picture.canDivide && dividerAt(model, view, x, y) ? 'ns-resize' : x < view.left ? 'row-resize' : 'default';
      picture.hover(x, y);
      return;
    }
    if (!drag.hasMoved && Math.hypot(x - drag.x, y - drag.y) < CLICK) return;
    drag.hasMoved = true;
    if (drag.kind === 'move') {
      over.style.cursor = 'grabbing';
      picture.look(moved(view, model, x - drag.x, y - drag.y));
      Object.assign(drag, {x, y});
    } else if (drag.kind === 'brush') {
      picture.light({brush: {y0: Math.min(drag.y, y), y1: Math.max(drag.y, y)}, hovered: -1});
    } else if (drag.kind === 'divide') {
      picture.light({
        divider: {at: [this.#dividedAt(drag, y)], low: model.low[drag.below], high: model.high[drag.above]},
        hovered: -1,
      });
    }
  }

  /**
   * A key on whole pixels, within what the two segments have.
   * @param {{below: number, above: number}} drag @param {number} y
   */
  #dividedAt({below, above}, y) {
    const {model, view} = this.picture;
    if (!model || !view) return 0;
    const digits = 10 ** Math.max(Math.ceil(-Math.log10((view.y1 - view.y0) / view.height)), 2);
    return Math.min(Math.max(Math.round(fromY(view, y) * digits) / digits, model.low[below]), model.high[above]);
  }

  /** @param {PointerEvent} event */
  #up(event) {
    const {picture, drag} = this;
    const {model, view} = picture;
    this.#end();
    if (!drag || !model || !view) return;
    if (!drag.hasMoved) {
      if (drag.kind === 'move') picture.callbacks.onPin(rectAtPixel(model, view, event.offsetX, event.offsetY));
    } else if (drag.kind === 'brush') {
      const [a, b] = [fromY(view, drag.y), fromY(view, event.offsetY)];
      picture.look(held({...view, y0: Math.min(a, b), y1: Math.max(a, b)}, model));
    } else if (drag.kind === 'divide') {
      picture.callbacks.onDivide(drag.below, drag.above, this.#dividedAt(drag, event.offsetY));
    }
  }

  #end() {
    this.drag = null;
    this.picture.light({brush: null, divider: null});
    this.picture.over.style.cursor = 'default';
  }

  /** @param {MouseEvent} event */
  #double(event) {
    const {model, view} = this.picture;
    if (!model || !view) return;
    if (event.offsetX < view.left) {
      this.picture.look({...view, y0: 0, y1: 1});
      return;
    }
    const rect = rectAtPixel(model, view, event.offsetX, event.offsetY);
    if (rect >= 0) this.picture.zoomTo(rect);
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    const {model, view} = this.picture;
    if (!model || !view || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    const factor = Math.exp(Math.min(Math.max(event.deltaY, -120), 120) * 0.004);
    const at = {px: event.offsetX, py: event.offsetY};
    this.picture.look(
      zoomed(view, model, event.shiftKey || event.offsetX < view.left ? {y: factor, ...at} : {x: factor, ...at}),
    );
  }
}
