/**
 * What is drawn over the picture while it is used: what is pointed at with those before and after it, the focus, what
 * is pinned, the dividing line that is dragged, the part of the keys that is brushed, where a key goes.
 */

import {FONT, line} from './draw.js';
import {spanOf, toX, toY} from './view.js';
import {keyText} from './words.js';
/** @import {Context, Lit, Model, Palette, View} from '../types.d.ts' */

/** @param {Context} context @param {Model} model @param {View} view @param {Lit} lit @param {Palette} theme */
export function drawLit(context, model, view, lit, theme) {
  context.save();
  context.beginPath();
  context.rect(view.left - 2, view.top - 2, view.width + 4, view.height + 4);
  context.clip();
  if (lit.sought) drawSought(context, model, view, lit.sought, theme);
  for (const rect of lit.kin.before) outline(context, model, view, rect, theme.before, [6, 3], 0.22);
  for (const rect of lit.kin.after) outline(context, model, view, rect, theme.after, [], 0.22);
  if (lit.pinned >= 0) outline(context, model, view, lit.pinned, theme.ink, [], 0, 3);
  if (lit.focused >= 0) outline(context, model, view, lit.focused, theme.focus, [], 0, 3, theme.paper);
  if (lit.hovered >= 0) outline(context, model, view, lit.hovered, theme.ink, [], 0.08);
  if (lit.divider) drawDivider(context, model, view, lit.divider, theme);
  if (lit.brush) {
    context.fillStyle = theme.accent;
    context.globalAlpha = 0.18;
    context.fillRect(view.left, lit.brush.y0, view.width, lit.brush.y1 - lit.brush.y0);
    context.globalAlpha = 1;
  }
  context.restore();
  if (lit.pointer) drawPointer(context, view, lit.pointer, theme);
}

/** @param {Model} model @param {View} view @param {number} rect @returns {[number, number, number, number]} */
export function boxOf(model, view, rect) {
  const [from, to] = spanOf(model, view.axis, rect);
  const x0 = Math.max(toX(view, from), view.left - 1);
  const x1 = Math.min(toX(view, to), view.left + view.width + 1);
  const y0 = Math.max(toY(view, model.high[rect]), view.top - 1);
  const y1 = Math.min(toY(view, model.low[rect]), view.top + view.height + 1);
  return [x0, y0, Math.max(x1 - x0, 1), Math.max(y1 - y0, 1)];
}

/**
 * @param {Context} context @param {Model} model @param {View} view @param {number} rect @param {string} color
 * @param {number[]} dash @param {number} fill how strongly the inside is tinted @param {number} [width]
 * @param {string} [halo]
 */
function outline(context, model, view, rect, color, dash, fill, width = 2, halo = '') {
  const [x, y, w, h] = boxOf(model, view, rect);
  if (x > view.left + view.width || x + w < view.left || y > view.top + view.height || y + h < view.top) return;
  if (fill) {
    context.globalAlpha = fill;
    context.fillStyle = color;
    context.fillRect(x, y, w, h);
    context.globalAlpha = 1;
  }
  const inside = width / 2;
  const box = /** @type {const} */ ([
    x + inside - 0.5,
    y + inside - 0.5,
    Math.max(w - width, 1),
    Math.max(h - width, 1),
  ]);
  if (halo) {
    context.strokeStyle = halo;
    context.lineWidth = width + 3;
    context.strokeRect(...box);
  }
  context.setLineDash(dash);
  context.strokeStyle = color;
  context.lineWidth = width;
  context.strokeRect(...box);
  context.setLineDash([]);
}

/**
 * @param {Context} context @param {Model} model @param {View} view @param {{position: number, rects: number[]}} sought
 * @param {Palette} theme
 */
function drawSought(context, model, view, {position, rects}, theme) {
  for (const rect of rects) outline(context, model, view, rect, theme.accent, [], 0.1, 1.5);
  const y = Math.round(toY(view, position)) + 0.5;
  context.strokeStyle = theme.accent;
  context.lineWidth = 1.5;
  line(context, view.left, y, view.left + view.width, y);
}

/**
 * @param {Context} context @param {Model} model @param {View} view
 * @param {{at: number[], low: number, high: number}} divider @param {Palette} theme
 */
function drawDivider(context, model, view, {at, low, high}, theme) {
  const edge = toX(view, view.axis === 'time' ? model.now : model.epochs.count);
  const from = Math.max(edge - 120, view.left);
  context.fillStyle = theme.accent;
  context.globalAlpha = 0.16;
  context.fillRect(from, toY(view, high), edge - from, toY(view, low) - toY(view, high));
  context.globalAlpha = 1;
  at.forEach((key) => drawKeyLine(context, view, key, from, edge, theme));
}

/**
 * @param {Context} context @param {View} view @param {number} key @param {number} from @param {number} to
 * @param {Palette} theme
 */
function drawKeyLine(context, view, key, from, to, theme) {
  context.strokeStyle = theme.accent;
  context.lineWidth = 2.5;
  const y = toY(view, key);
  line(context, from, y, to, y);
  context.font = `600 ${FONT}`;
  const text = keyText(Number(key.toFixed(6)));
  const width = context.measureText(text).width + 12;
  context.fillStyle = theme.accent;
  context.beginPath();
  context.roundRect(from - width - 4, y - 9, width, 18, 4);
  context.fill();
  context.fillStyle = theme.paper;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillText(text, from - width / 2 - 4, y + 0.5);
}

/**
 * The key at the pointer, on its axis.
 * @param {Context} context @param {View} view @param {{x: number, y: number}} pointer @param {Palette} theme
 */
function drawPointer(context, view, {y}, theme) {
  if (y < view.top || y > view.top + view.height) return;
  const key = view.y1 - ((y - view.top) / view.height) * (view.y1 - view.y0);
  const digits = Math.min(Math.max(Math.ceil(-Math.log10((view.y1 - view.y0) / view.height)), 2), 12);
  context.font = FONT;
  const text = key.toFixed(digits);
  const width = context.measureText(text).width + 8;
  context.fillStyle = theme.ink;
  context.beginPath();
  context.roundRect(Math.max(view.left - width - 2, 0), y - 8, width, 16, 3);
  context.fill();
  context.fillStyle = theme.paper;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.fillText(text, Math.max(view.left - width - 2, 0) + 4, y + 0.5);
}
