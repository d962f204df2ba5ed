/**
 * Rows of things on one time axis: bars have a beginning and an end, marks a time. Bands, timelines and lanes are made
 * of it; each paints its things itself.
 *
 * Whatever is done with the pointer can be done with keys: the rows keep what has focus, and say it.
 */

import {exactText, spanText, ticks, tickText} from './axis.js';
import {Surface} from './surface.js';
/** @import {Box, Clock, Context, Item, RowsModel, RowsOptions, Theme} from './types.d.ts' */

const AXIS_PX = 22;
const GAP_PX = 3;
const LABEL_MOST = 0.3;
const MOST_PX = 12_000;
const LEAST_ROW_PX = 5;
const TICK_PX = 84;
const NEAR_PX = 5;
/** Beside the axis, so that what lies at its ends is seen whole. */
const PAD_PX = 8;
const LEAST_SPAN_MS = 5;
const MARK_PX = 16;

export class Rows {
  /** @param {HTMLElement} host @param {RowsOptions} options */
  constructor(host, options) {
    this.options = options;
    /** @type {RowsModel} */
    this.model = {rows: [], from: 0, to: 1};
    this.from = 0;
    this.to = 1;
    /** @type {{row: number, item: number} | null} */
    this.lit = null;
    this._labelWidth = 0;
    this._width = 1;
    this._zoomed = false;
    this.surface = new Surface(host, {
      label: options.label,
      height: () => AXIS_PX + this._rowHeight() * this.model.rows.length,
      draw: (pen, width, height, theme) => this._draw(pen, width, height, theme),
      key: (event) => this._key(event.key, event.shiftKey),
      hover: (x, y) => this._light(Number.isNaN(x) ? null : this._hit(x, y)),
      press: (x, y) => this._open(this._hit(x, y)),
      select: (from, to) => this._see(this._time(from), this._time(to)),
      zoom: (x, factor) => this._zoom(this._time(x), factor),
      reset: () => this._see(this.model.from, this.model.to),
      focus: (focused) => {
        if (focused && this.lit === null) this._light(this._first());
      },
    });
  }

  /** @param {RowsModel} model the focus stays where the same row has as many items */
  update(model) {
    const before = this.model;
    this.model = model;
    if (!this._zoomed) [this.from, this.to] = [model.from, model.to];
    if (this.lit !== null) {
      const same = before.rows[this.lit.row]?.label === model.rows[this.lit.row]?.label;
      if (!same || model.rows[this.lit.row].items[this.lit.item] === undefined) this.lit = null;
    }
    this.surface.drawing.label = `${this.options.label}, ${model.rows.length} rows`;
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

  /** When something is, in words: at a time, or from one to another and how long that is. @param {Item} item */
  when(item) {
    const {clock} = this.options;
    const point = (/** @type {number} */ at) =>
      clock === 'since' ? tickText(at, 1, clock, this.model.from) : exactText(at, clock);
    if (item.to === undefined) return point(item.at);
    return `${point(item.at)} to ${point(item.to)}, ${spanText(item.to - item.at)}`;
  }

  _rowHeight() {
    const count = Math.max(this.model.rows.length, 1);
    return Math.max(LEAST_ROW_PX, Math.min(this.options.rowHeight, Math.floor(MOST_PX / count)));
  }

  /** How wide the axis is. */
  _inner() {
    return Math.max(this._width - this._labelWidth - 2 * PAD_PX, 1);
  }

  /** @param {number} at */
  _x(at) {
    return this._labelWidth + PAD_PX + ((at - this.from) / (this.to - this.from)) * this._inner();
  }

  /** @param {number} x */
  _time(x) {
    const part = (x - this._labelWidth - PAD_PX) / this._inner();
    return this.from + Math.min(Math.max(part, 0), 1) * (this.to - this.from);
  }

  /** @param {Item} item @param {number} row @returns {Box} */
  _box(item, row) {
    const high = this._rowHeight();
    const gap = high > 8 ? GAP_PX : 1;
    const y = AXIS_PX + row * high + gap;
    const height = high - 2 * gap;
    const x = this._x(item.at);
    if (item.to === undefined) {
      const size = Math.min(height, MARK_PX);
      return {x: x - size / 2, y: y + (height - size) / 2, width: size, height: size};
    }
    return {x, y, width: Math.max(this._x(item.to) - x, 1), height};
  }

  /** @param {Context} pen @param {number} width @param {number} height @param {Theme} theme */
  _draw(pen, width, height, theme) {
    this._width = width;
    const {rows} = this.model;
    const high = this._rowHeight();
    const widest = rows.reduce((most, row) => Math.max(most, pen.measureText(row.label).width), 0);
    this._labelWidth = Math.min(Math.ceil(widest) + (widest > 0 ? 8 : 0), Math.floor(width * LABEL_MOST));
    this._drawAxis(pen, width, height, theme);
    rows.forEach((row, index) => {
      const middle = AXIS_PX + (index + 0.5) * high;
      pen.fillStyle = theme('--line');
      pen.fillRect(this._labelWidth, Math.round(AXIS_PX + (index + 1) * high) - 0.5, width - this._labelWidth, 0.5);
      if (high >= 10) {
        pen.fillStyle = theme(this.lit?.row === index ? '--text' : '--muted');
        pen.fillText(shortened(pen, row.label, this._labelWidth - 8), 0, middle);
      }
    });
    pen.save();
    pen.beginPath();
    pen.rect(this._labelWidth, 0, width - this._labelWidth, height);
    pen.clip();
    for (const gap of this.model.gaps ?? []) this._drawGap(pen, gap, height, theme);
    for (const bars of [true, false]) {
      rows.forEach((row, index) => {
        row.items.forEach((item, position) => {
          if ((item.to !== undefined) !== bars || (item.to ?? item.at) < this.from || item.at > this.to) return;
          const lit = this.lit?.row === index && this.lit.item === position;
          const box = this._box(item, index);
          this.options.paint(pen, item, box, theme, lit);
          if (lit) ring(pen, box, theme);
        });
      });
    }
    pen.restore();
    for (const line of this.model.lines ?? []) this._drawLine(pen, line, height, theme);
  }

  /** @param {Context} pen @param {number} width @param {number} height @param {Theme} theme */
  _drawAxis(pen, width, height, theme) {
    const {clock} = this.options;
    const most = Math.max(Math.floor((width - this._labelWidth) / TICK_PX), 1);
    const {step, times} = ticks(this.from, this.to, most, clock, this.model.from);
    const labels = (this.model.lines ?? []).filter((one) => one.label !== '').map((one) => this._labelOf(pen, one));
    for (const at of times) {
      const x = Math.round(this._x(at));
      pen.fillStyle = theme('--line');
      pen.fillRect(x, AXIS_PX - 5, 1, height - AXIS_PX + 5);
      pen.fillStyle = theme('--muted');
      const text = tickText(at, step, clock, this.model.from);
      const wide = pen.measureText(text).width;
      const left = Math.min(Math.max(x - wide / 2, this._labelWidth), width - wide);
      // A line's own label comes before a tick's.
      if (labels.every((one) => left > one.left + one.wide + 4 || left + wide + 4 < one.left))
        pen.fillText(text, left, AXIS_PX / 2 - 2);
    }
  }

  /**
   * Where a line's label stands: beside it, where there is room.
   * @param {Context} pen @param {{at: number, label: string}} line
   */
  _labelOf(pen, line) {
    const x = this._x(line.at);
    const wide = pen.measureText(line.label).width;
    return {left: x + wide + 8 > this._width ? x - wide - 5 : x + 5, wide};
  }

  /**
   * @param {Context} pen @param {{from: number, to: number, label: string}} gap @param {number} height
   * @param {Theme} theme
   */
  _drawGap(pen, gap, height, theme) {
    const [x0, x1] = [Math.max(this._x(gap.from), this._labelWidth), Math.min(this._x(gap.to), this._width)];
    if (x1 <= x0) return;
    pen.save();
    pen.beginPath();
    pen.rect(x0, AXIS_PX, x1 - x0, height - AXIS_PX);
    pen.clip();
    pen.strokeStyle = theme('--line');
    pen.beginPath();
    for (let x = x0 - height; x < x1; x += 8) {
      pen.moveTo(x, height);
      pen.lineTo(x + height, 0);
    }
    pen.stroke();
    pen.restore();
    const wide = pen.measureText(gap.label).width;
    if (wide + 8 < x1 - x0 && height > AXIS_PX + 12) {
      pen.fillStyle = theme('--muted');
      pen.fillText(gap.label, (x0 + x1 - wide) / 2, AXIS_PX + Math.min((height - AXIS_PX) / 2, 12));
    }
  }

  /** @param {Context} pen @param {{at: number, label: string}} line @param {number} height @param {Theme} theme */
  _drawLine(pen, line, height, theme) {
    if (line.at < this.from || line.at > this.to) return;
    const x = Math.round(this._x(line.at)) + 0.5;
    pen.strokeStyle = theme('--accent');
    pen.beginPath();
    pen.moveTo(x, 0);
    pen.lineTo(x, height);
    pen.stroke();
    pen.fillStyle = theme('--accent');
    pen.fillText(line.label, this._labelOf(pen, line).left, AXIS_PX / 2 - 2);
  }

  /** @param {number} x @param {number} y */
  _hit(x, y) {
    const row = Math.floor((y - AXIS_PX) / this._rowHeight());
    const items = this.model.rows[row]?.items ?? [];
    let best = null;
    let least = Infinity;
    items.forEach((item, index) => {
      const box = this._box(item, row);
      const beside = Math.max(box.x - x, x - box.x - box.width, 0);
      // A mark over a bar is the smaller aim, and meant.
      const distance = beside + (item.to === undefined ? 0 : 0.5);
      if (beside <= NEAR_PX && distance <= least) [best, least] = [{row, item: index}, distance];
    });
    return best;
  }

  /** @param {{row: number, item: number} | null} found */
  _light(found) {
    if (found?.row === this.lit?.row && found?.item === this.lit?.item) return;
    this.lit = found;
    const row = found === null ? null : this.model.rows[found.row];
    this.options.onFocus?.(row === null || found === null ? null : row.items[found.item], row);
    this.surface.changed();
  }

  /** @param {{row: number, item: number} | null} found */
  _open(found) {
    if (found === null) return;
    this._light(found);
    const row = this.model.rows[found.row];
    this.options.onOpen?.(row.items[found.item], row);
  }

  _first() {
    const row = this.model.rows.findIndex((one) => one.items.length > 0);
    return row < 0 ? null : {row, item: 0};
  }

  /** @param {string} key @param {boolean} shift */
  _key(key, shift) {
    const span = this.to - this.from;
    switch (key) {
      case 'ArrowLeft':
      case 'ArrowRight': {
        const way = key === 'ArrowLeft' ? -1 : 1;
        if (shift) this._see(this.from + (way * span) / 4, this.to + (way * span) / 4);
        else this._along(way);
        return true;
      }
      case 'ArrowUp':
      case 'ArrowDown':
        this._across(key === 'ArrowUp' ? -1 : 1);
        return true;
      case 'Home':
      case 'End':
        this._end(key === 'Home');
        return true;
      case '+':
      case '=':
      case '-': {
        const at =
          this.lit === null ? (this.from + this.to) / 2 : this.model.rows[this.lit.row].items[this.lit.item].at;
        this._zoom(at, key === '-' ? 2 : 0.5);
        return true;
      }
      case '0':
        this._see(this.model.from, this.model.to);
        return true;
      case 'Enter':
        this._open(this.lit);
        return this.lit !== null;
      default:
        return false;
    }
  }

  /** @param {number} way -1 to the earlier thing of the row, 1 to the later one */
  _along(way) {
    if (this.lit === null) return this._goTo(this._first());
    const item = this.lit.item + way;
    if (this.model.rows[this.lit.row].items[item] !== undefined) this._goTo({row: this.lit.row, item});
  }

  /** @param {number} way -1 to the row above, 1 to the one below: to what is nearest in time there */
  _across(way) {
    if (this.lit === null) return this._goTo(this._first());
    const at = this.model.rows[this.lit.row].items[this.lit.item].at;
    for (let row = this.lit.row + way; this.model.rows[row] !== undefined; row += way) {
      const {items} = this.model.rows[row];
      if (items.length === 0) continue;
      const away = items.map((item) => Math.max(item.at - at, at - (item.to ?? item.at), 0));
      return this._goTo({row, item: away.indexOf(Math.min(...away))});
    }
  }

  /** @param {boolean} first */
  _end(first) {
    const found = this.lit ?? this._first();
    if (found === null) return;
    this._goTo({row: found.row, item: first ? 0 : this.model.rows[found.row].items.length - 1});
  }

  /** @param {{row: number, item: number} | null} found into view, too */
  _goTo(found) {
    if (found === null) return;
    const item = this.model.rows[found.row].items[found.item];
    const span = this.to - this.from;
    if ((item.to ?? item.at) < this.from || item.at > this.to) this._see(item.at - span / 2, item.at + span / 2);
    this._light(found);
  }

  /** @param {number} around @param {number} factor */
  _zoom(around, factor) {
    this._see(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  /** @param {number} from @param {number} to */
  _see(from, to) {
    const whole = this.model.to - this.model.from;
    const span = Math.min(Math.max(to - from, Math.min(LEAST_SPAN_MS, whole)), whole);
    this.from = Math.min(Math.max(from, this.model.from), this.model.to - span);
    this.to = this.from + span;
    this._zoomed = span < whole;
    this.options.onView?.(this.from, this.to);
    this.surface.changed();
  }
}

/** @param {Context} pen @param {Box} box @param {Theme} theme */
function ring(pen, box, theme) {
  pen.strokeStyle = theme('--accent');
  pen.lineWidth = 2;
  pen.strokeRect(box.x - 1, box.y - 1, box.width + 2, box.height + 2);
  pen.lineWidth = 1;
}

/** As much of a text as fits, with an ellipsis. @param {Context} pen @param {string} text @param {number} width */
export function shortened(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? '' : `${text.slice(0, low)}…`;
}
