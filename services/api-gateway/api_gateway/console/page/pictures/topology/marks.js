/** Draws the overlays of a picture: bands, what the head has dropped, stairs, flags, spans, the watermark's strip. */

import {FONT, line, pattern} from './draw.js';
import {active} from './model.js';
import {toX, toY} from './view.js';
/** @import {Context, Flag, Marks, Model, Palette, Span, Stair, View} from '../types.d.ts' */

/** Room above the plot for flags, and below it for the watermark. */
export const ABOVE = 34;
export const STRIP = 12;
const GRIPS_APART = 10;

/**
 * @param {Context} context @param {Model} model @param {View} view @param {Marks} marks @param {Palette} theme
 * @param {boolean} canDivide whether dividing lines can be dragged
 */
export function drawMarks(context, model, view, marks, theme, canDivide) {
  const {left, top, width, height} = view;
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  for (const {x0, x1} of marks.bands) {
    context.fillStyle = theme.band;
    context.fillRect(x0, top, x1 - x0, height);
  }
  drawConfigLines(context, view, marks.flags, theme);
  const dropped = marks.stairs.find((stair) => stair.overlay === 'head');
  if (dropped) drawDropped(context, view, dropped, theme);
  marks.stairs.forEach((stair) => drawStair(context, stair, theme));
  context.restore();
  drawEdge(context, model, view, theme, canDivide);
  drawHeld(context, view, marks.held, theme);
  marks.flags.forEach((flag) => drawFlag(context, view, flag, theme));
  drawWords(context, view, marks.flags, theme);
  drawLabels(context, view, marks.stairs, theme);
  if (marks.watermark) drawWatermark(context, view, marks.watermark, theme);
}

/** @param {Context} context @param {View} view @param {Flag[]} flags @param {Palette} theme */
function drawConfigLines(context, {top, height}, flags, theme) {
  context.strokeStyle = theme.faint;
  context.globalAlpha = 0.35;
  context.lineWidth = 1;
  context.setLineDash([2, 3]);
  for (const {kind, x} of flags)
    if (kind === 'config') line(context, Math.round(x) + 0.5, top, Math.round(x) + 0.5, top + height);
  context.setLineDash([]);
  context.globalAlpha = 1;
}

/**
 * What lies before the head is hatched, also within a segment.
 * @param {Context} context @param {View} view @param {Stair} stair @param {Palette} theme
 */
function drawDropped(context, view, {steps}, theme) {
  context.fillStyle = pattern(context, 'hatch', theme.hatch);
  for (const {x, y0, y1} of steps) if (x > view.left) context.fillRect(view.left, y0, x - view.left, y1 - y0);
}

/** @param {Stair} stair @param {Palette} theme */
function colorOf({overlay, tone}, theme) {
  if (overlay === 'head' || overlay === 'truncations') return theme.head;
  return overlay === 'pasted' ? theme.pasted : theme.cuts[tone % theme.cuts.length];
}

/** @param {Context} context @param {Stair} stair @param {Palette} theme */
function drawStair(context, stair, theme) {
  const {steps, overlay} = stair;
  const width = overlay === 'head' ? 3.5 : overlay === 'truncations' ? 1 : 2;
  context.lineCap = 'butt';
  // Paper around the line, so that it stands out from any colour below it.
  for (const [color, wide] of /** @type {[string, number][]} */ ([
    [theme.paper, width + 2],
    [colorOf(stair, theme), width],
  ])) {
    context.strokeStyle = color;
    context.lineWidth = wide;
    context.globalAlpha = overlay === 'truncations' ? 0.55 : color === theme.paper ? 0.8 : 1;
    for (const exact of [true, false]) {
      context.setLineDash(exact ? [] : [5, 4]);
      context.beginPath();
      for (const step of steps) {
        if (step.exact !== exact) continue;
        context.moveTo(step.x, step.y0);
        context.lineTo(step.x, step.y1);
      }
      context.stroke();
    }
    context.setLineDash([]);
    context.beginPath();
    for (let i = 1; i < steps.length; i++) {
      context.moveTo(steps[i - 1].x, steps[i - 1].y0);
      context.lineTo(steps[i].x, steps[i].y1);
    }
    context.stroke();
  }
  context.globalAlpha = 1;
}

/**
 * Now: a bright edge, to which the segments grow.
 * @param {Context} context @param {Model} model @param {View} view @param {Palette} theme @param {boolean} canDivide
 */
function drawEdge(context, model, view, theme, canDivide) {
  const x = toX(view, view.axis === 'time' ? model.now : model.epochs.count);
  if (x < view.left || x > view.left + view.width + 1) return;
  context.strokeStyle = model.sealed ? theme.faint : theme.now;
  context.lineWidth = 2;
  line(context, x, view.top - 5, x, view.top + view.height + 4);
  context.fillStyle = context.strokeStyle;
  context.font = FONT;
  context.textBaseline = 'bottom';
  // To the left are the marks of what was a moment ago.
  context.textAlign = x > view.left + view.width - 24 ? 'right' : 'left';
  context.fillText(
    model.sealed ? 'sealed' : model.past ? 'then' : 'now',
    x + (context.textAlign === 'right' ? 3 : -3),
    view.top - 18,
  );
  if (canDivide && !model.sealed) drawGrips(context, model, view, x);
}

/**
 * Where dividing lines can be dragged: a grip at now, for those that are far enough apart.
 * @param {Context} context @param {Model} model @param {View} view @param {number} x
 */
function drawGrips(context, model, view, x) {
  const living = active(model);
  context.lineWidth = 3;
  context.lineCap = 'round';
  let last = Infinity;
  for (let i = 1; i < living.length; i++) {
    const y = toY(view, model.low[living[i]]);
    if (
      y < view.top ||
      y > view.top + view.height ||
      last - y < GRIPS_APART ||
      model.high[living[i - 1]] !== model.low[living[i]]
    )
      continue;
    last = y;
    line(context, x + 3, y, x + 9, y);
  }
  context.lineCap = 'butt';
}

/**
 * Epochs that are held: a bracket above the plot.
 * @param {Context} context @param {View} view @param {Span[]} held @param {Palette} theme
 */
function drawHeld(context, view, held, theme) {
  context.strokeStyle = theme.held;
  context.lineWidth = 2;
  const y = view.top - 4.5;
  for (const {x0, x1} of held) {
    const from = Math.max(x0 + 1, view.left);
    const to = Math.max(Math.min(x1 - 1, view.left + view.width), from + 2);
    context.beginPath();
    context.moveTo(from, y + 4);
    context.lineTo(from, y);
    context.lineTo(to, y);
    context.lineTo(to, y + 4);
    context.stroke();
  }
}

/** @param {Context} context @param {View} view @param {Flag} flag @param {Palette} theme */
function drawFlag(context, view, {kind, x, count}, theme) {
  const y = view.top - (kind === 'scale' ? 11 : 23);
  const size = count > 1 ? 5 : 4;
  context.fillStyle =
    kind === 'hot' ? theme.rates[2] : kind === 'cold' ? theme.rates[1] : kind === 'config' ? theme.config : theme.faint;
  context.beginPath();
  if (kind === 'scale') {
    context.rect(x - (count > 1 ? 1.5 : 0.75), y - 4, count > 1 ? 3 : 1.5, 9);
  } else if (kind === 'config') {
    context.moveTo(x, y - size - 1);
    context.lineTo(x + size + 1, y);
    context.lineTo(x, y + size + 1);
    context.lineTo(x - size - 1, y);
  } else {
    const up = kind === 'hot' ? -1 : 1;
    context.moveTo(x - size - 1, y - up * size);
    context.lineTo(x + size + 1, y - up * size);
    context.lineTo(x, y + up * size);
  }
  context.fill();
}

/**
 * Why each scale was, beside its mark, where there is room up to the next one and to the word "now".
 * @param {Context} context @param {View} view @param {Flag[]} flags @param {Palette} theme
 */
function drawWords(context, view, flags, theme) {
  const scales = flags.filter(({kind}) => kind === 'scale');
  context.font = FONT;
  context.fillStyle = theme.faint;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  scales.forEach(({x, word, count}, i) => {
    if (!word) return;
    const text = count > 1 ? `${word} ×${count}` : word;
    const end = i + 1 < scales.length ? scales[i + 1].x - 4 : view.left + view.width;
    if (x + 5 + context.measureText(text).width <= end) context.fillText(text, x + 5, view.top - 11);
  });
}

/**
 * The names of stairs, each beside a step of its own, none upon another.
 * @param {Context} context @param {View} view @param {Stair[]} stairs @param {Palette} theme
 */
function drawLabels(context, view, stairs, theme) {
  /** @type {{x: number, y: number, width: number}[]} */
  const taken = [];
  context.font = `600 ${FONT}`;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  for (const stair of stairs) {
    if (!stair.name) continue;
    const width = context.measureText(stair.name).width + 10;
    const place = freePlace(stair, view, width, taken);
    if (!place) continue;
    taken.push({...place, width});
    context.fillStyle = theme.paper;
    context.globalAlpha = 0.9;
    context.beginPath();
    context.roundRect(place.x, place.y - 8, width, 16, 3);
    context.fill();
    context.globalAlpha = 1;
    context.fillStyle = colorOf(stair, theme);
    context.fillRect(place.x, place.y - 8, 2, 16);
    context.fillText(stair.name, place.x + 6, place.y + 0.5);
  }
}

/**
 * @param {Stair} stair @param {View} view @param {number} width @param {{x: number, y: number, width: number}[]} taken
 */
function freePlace({steps}, view, width, taken) {
  for (const {x, y0, y1} of [...steps].reverse()) {
    const y = Math.min(Math.max((y0 + y1) / 2, view.top + 10), view.top + view.height - 10);
    if (x < view.left || x > view.left + view.width) continue;
    const at = x + 5 + width > view.left + view.width ? x - 5 - width : x + 5;
    if (!taken.some((one) => Math.abs(one.y - y) < 18 && at < one.x + one.width && one.x < at + width))
      return {x: at, y};
  }
  return null;
}

/** @param {Context} context @param {View} view @param {Span} span @param {Palette} theme */
function drawWatermark(context, view, {x0, x1}, theme) {
  const y = view.top + view.height + 3;
  const from = Math.max(Math.min(x0, x1), view.left);
  const to = Math.min(Math.max(x0, x1), view.left + view.width);
  if (to < view.left || from > view.left + view.width) return;
  context.fillStyle = theme.cuts[0];
  context.globalAlpha = 0.35;
  context.fillRect(from, y, Math.max(to - from, 2), STRIP - 7);
  context.globalAlpha = 1;
  context.fillRect(x0 - 1, y - 2, 3, STRIP - 3);
}
