/**
 * The whole stream, small, with the part that the picture shows: dragging moves it, a click goes there.
 * What does not change from one view to the next is drawn once and kept.
 */

import {drawRectangles, placed} from './draw.js';
import {fromX, held, toX, toY, whole} from './view.js';
/** @import {Coloring, Context, Model, View} from '../types.d.ts' */

export class Minimap {
  /** @param {HTMLCanvasElement} canvas @param {(view: View) => void} onView */
  constructor(canvas, onView) {
    this.canvas = canvas;
    this.kept = document.createElement('canvas');
    /** @type {View | null} */
    this.own = null;
    /** @type {View | null} */
    this.view = null;
    /** @type {Model | null} */
    this.model = null;
    this.onView = onView;
    /** @type {{x: number, y: number} | null} */
    this.grip = null;
    canvas.addEventListener('pointerdown', (event) => this.#down(event));
    canvas.addEventListener('pointermove', (event) => this.#move(event));
    canvas.addEventListener('pointerup', () => (this.grip = null));
    canvas.addEventListener('pointercancel', () => (this.grip = null));
  }

  /**
   * Take in what there is; draws it for keeping.
   * @param {Model} model @param {'time' | 'epoch'} axis @param {Coloring} colors
   * @param {typeof import('./colors.js').LIGHT} theme
   * @param {{left: number, width: number, height: number, ratio: number}} size
   */
  show(model, axis, colors, theme, {left, width, height, ratio}) {
    this.model = model;
    this.theme = theme;
    this.ratio = ratio;
    this.own = whole(model, axis, {left, top: 2, width, height: height - 4});
    for (const canvas of [this.canvas, this.kept]) {
      canvas.width = Math.round((left + width + 12) * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const context = /** @type {Context} */ (this.kept.getContext('2d'));
    context.scale(ratio, ratio);
    context.fillStyle = theme.grid;
    context.fillRect(left, 2, width, height - 4);
    drawRectangles(context, model, this.own, placed(model, this.own, ratio), colors, theme, null, {names: false});
  }

  /** Draw with the part that is shown. @param {View} view */
  draw(view) {
    const {own, theme, kept} = this;
    if (!own || !theme || !kept.width) return;
    this.view = view;
    const context = /** @type {Context} */ (this.canvas.getContext('2d'));
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, kept.width, kept.height);
    context.drawImage(kept, 0, 0);
    context.scale(this.ratio ?? 1, this.ratio ?? 1);
    const [x0, x1] = [Math.max(toX(own, view.x0), own.left), Math.min(toX(own, view.x1), own.left + own.width)];
    const [y0, y1] = [toY(own, view.y1), toY(own, view.y0)];
    context.fillStyle = theme.paper;
    context.globalAlpha = 0.62;
    context.fillRect(own.left, own.top, x0 - own.left, own.height);
    context.fillRect(x1, own.top, own.left + own.width - x1, own.height);
    context.fillRect(x0, own.top, x1 - x0, y0 - own.top);
    context.fillRect(x0, y1, x1 - x0, own.top + own.height - y1);
    context.globalAlpha = 1;
    context.strokeStyle = theme.accent;
    context.lineWidth = 2;
    context.strokeRect(x0 + 1, y0 + 1, Math.max(x1 - x0 - 2, 2), Math.max(y1 - y0 - 2, 2));
  }

  /** @param {PointerEvent} event */
  #down(event) {
    const {own, view, model} = this;
    if (!own || !view || !model) return;
    this.canvas.setPointerCapture(event.pointerId);
    const x = fromX(own, event.offsetX);
    const isInside = x >= view.x0 && x <= view.x1;
    const half = (view.x1 - view.x0) / 2;
    if (!isInside) this.onView(held({...view, x0: x - half, x1: x + half}, model));
    this.grip = {x: event.offsetX, y: event.offsetY};
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const {own, view, model, grip} = this;
    if (!own || !view || !model || !grip) return;
    const dx = ((event.offsetX - grip.x) / own.width) * (own.x1 - own.x0);
    const dy = ((event.offsetY - grip.y) / own.height) * (own.y1 - own.y0);
    this.grip = {x: event.offsetX, y: event.offsetY};
    this.onView(held({...view, x0: view.x0 + dx, x1: view.x1 + dx, y0: view.y0 - dy, y1: view.y1 - dy}, model));
  }
}
