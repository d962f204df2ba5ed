/**
 * Counts by kind in equal spans of time, stacked. Kinds differ in pattern as well as in colour; the span that has focus
 * is said in numbers.
 */

import {exactText, ticks, tickText} from './axis.js';
import {hatch} from './bands.js';
import {Surface} from './surface.js';
/** @import {Clock, Context, Stack, StacksModel, Theme} from './types.d.ts' */

const HEIGHT_PX = 150;
const AXIS_PX = 20;
const TOP_PX = 14;
const LEFT_PX = 40;
const TICK_PX = 84;

/** Round numbers for an axis from 0 to at least `most`. @param {number} most @returns {number[]} */
export function levels(most) {
  const wanted = Math.max(most, 1) / 3;
  const size = 10 ** Math.floor(Math.log10(wanted));
  const step = Math.max([1, 2, 5, 10].map((one) => one * size).find((one) => one >= wanted) ?? size * 10, 1);
  const found = [0];
  while (found[found.length - 1] < most) found.push(found.length * step);
  return found;
}

export class Stacks {
  /**
   * @param {HTMLElement} host
   * @param {{label: string, clock: Clock, onFocus?: (says: string) => void, onOpen?: (stack: Stack) => void}} options
   */
  constructor(host, options) {
    this.options = options;
    /** @type {StacksModel} */
    this.model = {from: 0, to: 1, bucketMs: 1, kinds: [], stacks: []};
    this.lit = -1;
    this._width = 1;
    this.surface = new Surface(host, {
      label: options.label,
      height: () => HEIGHT_PX,
      draw: (pen, width, height, theme) => this._draw(pen, width, height, theme),
      key: (event) => this._key(event.key),
      hover: (x) => this._light(Number.isNaN(x) ? -1 : this._nearest(x)),
      press: (x) => {
        this._light(this._nearest(x));
        if (this.lit >= 0) options.onOpen?.(this.model.stacks[this.lit]);
      },
      select: () => undefined,
      zoom: () => undefined,
      reset: () => undefined,
      focus: (focused) => {
        if (focused && this.lit < 0) this._light(this.model.stacks.length - 1);
      },
    });
  }

  /** @param {StacksModel} model */
  update(model) {
    this.model = model;
    if (this.lit >= model.stacks.length) this.lit = -1;
    this.surface.changed();
  }

  /** @param {Clock} clock */
  setClock(clock) {
    this.options.clock = clock;
    this.surface.changed();
  }

  destroy() {
    this.surface.destroy();
  }

  /** @param {number} at */
  _x(at) {
    return LEFT_PX + ((at - this.model.from) / (this.model.to - this.model.from)) * (this._width - LEFT_PX);
  }

  /** @param {Context} pen @param {number} width @param {number} height @param {Theme} theme */
  _draw(pen, width, height, theme) {
    this._width = width;
    const {from, to, bucketMs, kinds, stacks} = this.model;
    const total = (/** @type {Stack} */ one) => one.counts.reduce((sum, count) => sum + count, 0);
    const marks = levels(Math.max(...stacks.map(total), 1));
    const bottom = height - AXIS_PX;
    const y = (/** @type {number} */ count) => bottom - (count / marks[marks.length - 1]) * (bottom - TOP_PX);
    for (const mark of marks) {
      pen.fillStyle = theme('--line');
      pen.fillRect(LEFT_PX, Math.round(y(mark)), width - LEFT_PX, 1);
      pen.fillStyle = theme('--muted');
      const text = mark.toLocaleString('en');
      pen.fillText(text, LEFT_PX - 6 - pen.measureText(text).width, y(mark));
    }
    const {step, times} = ticks(from, to, Math.max(Math.floor((width - LEFT_PX) / TICK_PX), 1), this.options.clock);
    for (const at of times) {
      const text = tickText(at, step, this.options.clock);
      const wide = pen.measureText(text).width;
      pen.fillText(text, Math.min(Math.max(this._x(at) - wide / 2, LEFT_PX), width - wide), height - AXIS_PX / 2 + 2);
    }
    const thick = Math.max(this._x(from + bucketMs) - LEFT_PX - 1, 1);
    stacks.forEach((stack, index) => {
      const x = this._x(stack.at);
      let below = 0;
      stack.counts.forEach((count, kind) => {
        if (count === 0) return;
        const [top, low] = [y(below + count), y(below)];
        const box = {x, y: top, width: thick, height: Math.max(low - top, 1)};
        pen.fillStyle = theme(kinds[kind].colour);
        pen.fillRect(box.x, box.y, box.width, box.height);
        if (kinds[kind].hatched) hatch(pen, box, theme('--surface'));
        below += count;
      });
      if (index === this.lit) {
        pen.strokeStyle = theme('--accent');
        pen.lineWidth = 2;
        pen.strokeRect(x - 1, y(below) - 1, thick + 2, bottom - y(below) + 2);
        pen.lineWidth = 1;
      }
    });
  }

  /** @param {number} x */
  _nearest(x) {
    const {from, to, bucketMs, stacks} = this.model;
    const at = from + ((x - LEFT_PX) / Math.max(this._width - LEFT_PX, 1)) * (to - from);
    const away = stacks.map((stack) => Math.abs(stack.at + bucketMs / 2 - at));
    const least = Math.min(...away);
    return least <= bucketMs * 2 ? away.indexOf(least) : -1;
  }

  /** @param {number} index */
  _light(index) {
    if (index === this.lit) return;
    this.lit = index;
    const stack = this.model.stacks[index];
    this.options.onFocus?.(stack === undefined ? '' : this._says(stack));
    this.surface.changed();
  }

  /** @param {Stack} stack */
  _says(stack) {
    const counts = this.model.kinds.map((kind, index) => `${stack.counts[index]} ${kind.label}`);
    return `${exactText(stack.at, this.options.clock)}: ${counts.join(', ')}`;
  }

  /** @param {string} key */
  _key(key) {
    const last = this.model.stacks.length - 1;
    const to = {ArrowLeft: this.lit - 1, ArrowRight: this.lit + 1, Home: 0, End: last}[key];
    if (to !== undefined) this._light(Math.min(Math.max(to, 0), last));
    else if (key === 'Enter' && this.lit >= 0) this.options.onOpen?.(this.model.stacks[this.lit]);
    else return false;
    return true;
  }
}
