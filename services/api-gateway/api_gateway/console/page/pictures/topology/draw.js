/**
 * Draws the rectangles of a picture, its axes and their patterns on a canvas. What is not visible is skipped, what is
 * smaller than a pixel is a pixel. Draws only; decides nothing.
 */

import {clockTime} from '../../core/format.js';
import {CREATING, DUPLICATE, MERGED, TRUNCATED} from './model.js';
import {FOUND_WIDTH, columnTicks, extent, keyTicks, timeTicks, toX, toY} from './view.js';
/** @import {Coloring, Context, History, Model, Palette, Placed, View} from '../types.d.ts' */

export const FONT = '11px system-ui, "DejaVu Sans", sans-serif';

/** @type {WeakMap<Context, Map<string, CanvasPattern>>} */
const patterns = new WeakMap();

/**
 * A pattern for a state, made once: `hatch` for truncated, `dots` for merged, `cross` for duplicates.
 * @param {Context} context @param {'hatch' | 'dots' | 'cross'} kind @param {string} color
 */
export function pattern(context, kind, color) {
  const made = patterns.get(context) ?? new Map();
  patterns.set(context, made);
  const key = `${kind}${color}`;
  if (!made.has(key)) made.set(key, tile(context, kind, color));
  return made.get(key);
}

/** @param {Context} context @param {'hatch' | 'dots' | 'cross'} kind @param {string} color */
function tile(context, kind, color) {
  const size = 8;
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = size * 2;
  const to = /** @type {Context} */ (canvas.getContext('2d'));
  to.scale(2, 2);
  to.strokeStyle = to.fillStyle = color;
  to.lineWidth = 1.3;
  if (kind === 'dots') {
    for (const [x, y] of [
      [2, 2],
      [6, 6],
    ])
      to.fillRect(x - 0.7, y - 0.7, 1.4, 1.4);
  } else {
    to.beginPath();
    for (const shift of [-size, 0, size]) {
      to.moveTo(shift - 1, size + 1);
      to.lineTo(shift + size + 1, -1);
      if (kind === 'cross') {
        to.moveTo(shift - 1, -1);
        to.lineTo(shift + size + 1, size + 1);
      }
    }
    to.stroke();
  }
  const made = /** @type {CanvasPattern} */ (context.createPattern(canvas, 'repeat'));
  made.setTransform(new DOMMatrix([0.5, 0, 0, 0.5, 0, 0]));
  return made;
}

/**
 * Where each visible rectangle is, on whole pixels of the screen, so that no two of them blur into each other.
 * @param {Model} model @param {View} view @param {number} ratio pixels of the screen for one of the page
 * @returns {Placed}
 */
export function placed(model, view, ratio) {
  const from = view.axis === 'time' ? model.born : model.first;
  const to = view.axis === 'time' ? model.end : model.last;
  const edge = view.axis === 'time' ? model.now : model.epochs.count;
  const ahead = extent(model, view.axis)[1];
  const rect = new Int32Array(model.count);
  const box = new Float32Array(model.count * 4);
  const round = (/** @type {number} */ px) => Math.round(px * ratio) / ratio;
  const right = view.left + view.width;
  const bottom = view.top + view.height;
  const kx = view.width / (view.x1 - view.x0);
  const ky = view.height / (view.y1 - view.y0);
  let count = 0;
  let heights = 0;
  for (let i = 0; i < model.count; i++) {
    const isCreated = !(model.flags[i] & CREATING);
    const begin = isCreated ? from[i] : edge;
    const end = isCreated ? Math.min(to[i], edge) : ahead;
    if (end < view.x0 || begin > view.x1 || model.high[i] <= view.y0 || model.low[i] >= view.y1) continue;
    const back = view.axis === 'time' ? Math.max(model.found[i] * (FOUND_WIDTH - kx), 0) : 0;
    const x0 = round(Math.max(view.left + (begin - view.x0) * kx - back, view.left));
    const least = back ? FOUND_WIDTH : 1 / ratio;
    const x1 = Math.max(round(Math.min(view.left + (end - view.x0) * kx - back, right)), x0 + least);
    const y0 = round(Math.max(view.top + (view.y1 - model.high[i]) * ky, view.top));
    const y1 = Math.max(round(Math.min(view.top + (view.y1 - model.low[i]) * ky, bottom)), y0 + 1 / ratio);
    rect[count] = i;
    const at = count * 4;
    box[at] = x0;
    box[at + 1] = y0;
    box[at + 2] = x1 - x0;
    box[at + 3] = y1 - y0;
    heights += y1 - y0;
    count++;
  }
  return {count, rect, box, gap: heights / count >= GAP_FROM ? 1 : 0};
}

/** Rectangles smaller than this, in pixels, have no gap between them. */
const GAP_FROM = 4;
const DASHED_FROM = 6;
/** How wide the rate of now is drawn, in pixels. */
const EDGE_WIDTH = 10;
const NAME_HEIGHT = 15;
const NAME_WIDTH = 34;
const FULL_NAME_WIDTH = 92;

/**
 * Draw all rectangles: colour, state, name.
 * @param {Context} context @param {Model} model @param {View} view @param {Placed} visible @param {Coloring} colors
 * @param {Palette} theme @param {History | null} history past rates to paint into rectangles
 * @param {{names?: boolean, truncated?: boolean}} [how] `truncated`: hatch what is, unless the head's overlay does
 */
export function drawRectangles(
  context,
  model,
  view,
  visible,
  colors,
  theme,
  history,
  {names = true, truncated = true} = {},
) {
  const {count, rect} = visible;
  if (colors.isOrdered) {
    // Smaller than a pixel, the highest class is what is seen: what is hot or large does not get lost.
    for (let kind = 0; kind < colors.classes.length; kind++) {
      context.fillStyle = colors.classes[kind].fill;
      for (let i = 0; i < count; i++) if (colors.of[rect[i]] === kind) fill(context, visible, i);
    }
  } else {
    for (let i = 0; i < count; i++) {
      context.fillStyle = colors.classes[colors.of[rect[i]]].fill;
      fill(context, visible, i);
    }
  }
  const hasHistory = history !== null && colors.classOfRate !== null && view.axis === 'time';
  if (hasHistory) drawHistory(context, model, view, visible, colors, history);
  const now = toX(view, view.axis === 'time' ? model.now : model.epochs.count);
  if (colors.edge && now <= view.left + view.width + 1) drawEdges(context, visible, colors.classes, colors.edge);
  drawFound(context, model, visible, colors, theme);
  drawStates(context, model, visible, theme, truncated);
  if (names) drawNames(context, model, visible, colors, hasHistory ? theme : null);
}

/** @param {Context} context @param {Placed} visible @param {number} i */
function fill(context, {box, gap}, i) {
  const at = i * 4;
  context.fillRect(
    box[at],
    box[at + 1],
    box[at + 2] >= GAP_FROM ? box[at + 2] - gap : box[at + 2],
    box[at + 3] >= 2 ? box[at + 3] - gap : box[at + 3],
  );
}

/**
 * The rate of now, at the edge to which a rectangle grows.
 * @param {Context} context @param {Placed} visible @param {Coloring['classes']} classes @param {Int8Array} edge
 */
function drawEdges(context, {count, rect, box, gap}, classes, edge) {
  for (let i = 0; i < count; i++) {
    const kind = edge[rect[i]];
    if (kind < 0) continue;
    const at = i * 4;
    const width = Math.min(EDGE_WIDTH, box[at + 2]);
    context.fillStyle = classes[kind].fill;
    context.fillRect(box[at] + box[at + 2] - width, box[at + 1], width, box[at + 3] - (box[at + 3] >= 2 ? gap : 0));
  }
}

/**
 * A frame around what a restore found: these are drawn wider than they were, above what they would be hidden by.
 * @param {Context} context @param {Model} model @param {Placed} visible @param {Coloring} colors @param {Palette} theme
 */
function drawFound(context, model, {count, rect, box}, colors, theme) {
  context.strokeStyle = theme.ink;
  context.lineWidth = 1;
  for (let i = 0; i < count; i++) {
    if (!model.found[rect[i]]) continue;
    const [x, y, width, height] = box.subarray(i * 4, i * 4 + 4);
    context.fillStyle = colors.classes[colors.of[rect[i]]].fill;
    context.fillRect(x, y, width, height);
    context.strokeRect(x + 0.5, y + 0.5, Math.max(width - 1, 1), Math.max(height - 1, 1));
  }
}

/**
 * Past rates in the rectangles: buckets of one class side by side are one strip.
 * @param {Context} context @param {Model} model @param {View} view @param {Placed} visible @param {Coloring} colors
 * @param {History} history
 */
function drawHistory(context, model, view, visible, colors, {from, bucketMs, segments}) {
  const rowOf = new Map();
  for (let i = 0; i < visible.count; i++) rowOf.set(visible.rect[i], i);
  const classOf = colors.classOfRate ?? (() => 0);
  const unknown = colors.classes.length - 1;
  for (const [id, rates] of segments) {
    const place = model.index.get(id);
    const row = place === undefined ? undefined : rowOf.get(model.known.rect[place]);
    if (place === undefined || row === undefined) continue;
    const [x, y, width, height] = visible.box.subarray(row * 4, row * 4 + 4);
    const gap = height >= 2 ? visible.gap : 0;
    for (let first = 0; first < rates.length; ) {
      const kind = classOf(rates[first]);
      let last = first + 1;
      while (last < rates.length && classOf(rates[last]) === kind) last++;
      const begin = Math.max(from + first * bucketMs, model.known.born[place]);
      const end = Math.min(from + last * bucketMs, model.known.end[place], model.now);
      first = last;
      const x0 = Math.max(toX(view, begin), x);
      const x1 = Math.min(toX(view, end), x + width - (width >= GAP_FROM ? visible.gap : 0));
      if (kind === unknown || x1 <= x0) continue;
      context.fillStyle = colors.classes[kind].fill;
      context.fillRect(x0, y, x1 - x0, height - gap);
    }
  }
}

/**
 * @param {Context} context @param {Model} model @param {Placed} visible @param {Palette} theme
 * @param {boolean} truncated
 */
function drawStates(context, model, visible, theme, truncated) {
  const {count, rect, box} = visible;
  const kinds = /** @type {const} */ ([
    [TRUNCATED, 'hatch'],
    [MERGED, 'dots'],
    [DUPLICATE, 'cross'],
  ]);
  for (const [flag, kind] of kinds) {
    if (flag === TRUNCATED && !truncated) continue;
    let isSet = false;
    for (let i = 0; i < count; i++) {
      if (!(model.flags[rect[i]] & flag)) continue;
      if (!isSet) context.fillStyle = pattern(context, kind, theme.hatch);
      isSet = true;
      fill(context, visible, i);
    }
  }
  context.setLineDash([5, 3]);
  context.strokeStyle = theme.ink;
  context.lineWidth = 1.5;
  for (let i = 0; i < count; i++) {
    if (!(model.flags[rect[i]] & CREATING)) continue;
    const at = i * 4;
    context.clearRect(box[at], box[at + 1], box[at + 2], box[at + 3]);
    if (box[at + 3] >= DASHED_FROM)
      context.strokeRect(box[at] + 1, box[at + 1] + 1, Math.max(box[at + 2] - 3, 1), Math.max(box[at + 3] - 3, 1));
  }
  context.setLineDash([]);
}

/**
 * @param {Context} context @param {Model} model @param {Placed} visible @param {Coloring} colors
 * @param {Palette | null} halo what is below has many colours: names get a rim
 */
function drawNames(context, model, {count, rect, box}, colors, halo) {
  context.font = FONT;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  context.lineWidth = 3;
  context.lineJoin = 'round';
  for (let i = 0; i < count; i++) {
    const at = i * 4;
    if (box[at + 2] < NAME_WIDTH || box[at + 3] < NAME_HEIGHT) continue;
    const one = colors.classes[colors.of[rect[i]]];
    const number = String(model.number[rect[i]]);
    const name = box[at + 2] >= FULL_NAME_WIDTH ? `${number}.#epoch.${model.bornEpoch[rect[i]]}` : number;
    if (name.length * 6.6 + 8 > box[at + 2]) continue;
    const y = box[at + 1] + Math.min(box[at + 3] / 2, 14);
    if (halo) {
      context.strokeStyle = halo.paper;
      context.globalAlpha = 0.9;
      context.strokeText(name, box[at] + 6, y);
      context.globalAlpha = 1;
    }
    context.fillStyle = halo ? halo.ink : one.ink;
    context.fillText(name, box[at] + 6, y);
    if (one.mark && box[at + 2] >= FULL_NAME_WIDTH + 24) {
      context.textAlign = 'right';
      context.fillText(one.mark, box[at] + box[at + 2] - 7, y);
      context.textAlign = 'left';
    }
  }
}

/**
 * Paper, grid and the names of the axes.
 * @param {Context} context @param {Model} model @param {View} view @param {Palette} theme @param {boolean} utc
 */
export function drawAxes(context, model, view, theme, utc) {
  const {left, top, width, height} = view;
  const bottom = top + height;
  context.fillStyle = theme.paper;
  context.fillRect(left, top, width, height);
  context.font = FONT;
  context.fillStyle = theme.faint;
  context.strokeStyle = theme.line;
  context.lineWidth = 1;
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  const keys = keyTicks(view);
  for (const key of keys.at) {
    const y = Math.round(toY(view, key)) + 0.5;
    line(context, left - 4, y, left, y);
    context.fillText(decimals(key, keys.step), left - 7, Math.min(Math.max(y, top + 5), bottom - 3));
  }
  context.textAlign = 'center';
  context.textBaseline = 'top';
  const marks =
    view.axis === 'time'
      ? timeMarks(view, utc)
      : columnTicks(view, model.epochs.count).map((column) => ({
          at: column + 0.5,
          text: String(model.epochs.epoch[column]),
        }));
  let free = left - 10;
  for (const {at, text} of marks) {
    const x = Math.round(toX(view, at)) + 0.5;
    const half = context.measureText(text).width / 2;
    if (x < left || x > left + width || x - half < free) continue;
    line(context, x, bottom, x, bottom + 4);
    const middle = Math.min(x, left + width - half);
    context.fillText(text, middle, bottom + 7);
    free = middle + half + 8;
  }
}

/** @param {Context} context @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
export function line(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

/** @param {number} key @param {number} step */
function decimals(key, step) {
  if (step >= 1 / 16) return String(Number(key.toFixed(4)));
  return key.toFixed(Math.min(Math.max(Math.ceil(-Math.log10(step)), 0), 12));
}

/** @type {Map<string, Intl.DateTimeFormat>} */
const formats = new Map();

/** @param {number} at @param {boolean} utc */
function day(at, utc) {
  const key = utc ? 'UTC' : '';
  if (!formats.has(key))
    formats.set(
      key,
      new Intl.DateTimeFormat('en-GB', {day: 'numeric', month: 'short', ...(utc ? {timeZone: 'UTC'} : {})}),
    );
  return /** @type {Intl.DateTimeFormat} */ (formats.get(key)).format(at);
}

/**
 * Times of the axis as text: days at midnight, else the clock, with what the step needs.
 * @param {View} view @param {boolean} utc
 */
function timeMarks(view, utc) {
  const {step, at} = timeTicks(view, utc);
  return at.map((tick) => {
    const clock = clockTime(tick);
    if (step >= 86_400_000 || clock === '00:00:00') return {at: tick, text: day(tick, utc)};
    if (step < 1000) return {at: tick, text: `${clock}.${String(Math.floor(tick) % 1000).padStart(3, '0')}`};
    return {at: tick, text: step < 60_000 ? clock : clock.slice(0, 5)};
  });
}
