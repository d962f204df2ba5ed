/**
 * The picture of a stream: its segments over time, or epochs, and keys.
 *
 * A canvas has what changes with data and view; what follows the pointer and the focus are elements over it. So
 * pointing at something moves a few outlines and draws no rectangle. A picture draws at most once a frame. What is
 * beside it (controls, legend, card, table) is the page's: it gets words and rectangles by callbacks, and says what
 * to show.
 */

import {DARK, LIGHT, NO_FACTS, coloring} from './topology/colors.js';
import {drawAxes, drawRectangles, placed} from './topology/draw.js';
import {firstFocus, focusOn, stepped} from './topology/focus.js';
import {drawLit} from './topology/hover.js';
import {rectAtPixel, whereGoes} from './topology/hit.js';
import {ABOVE, STRIP, drawMarks} from './topology/marks.js';
import {Minimap} from './topology/minimap.js';
import {kin} from './topology/model.js';
import {NO_EXTRAS, OVERLAYS, markAt, marksOf} from './topology/overlays.js';
import {Pointer} from './topology/pointer.js';
import {around, fromAddress, grown, held, spanOf, toAddress, whole, zoomed} from './topology/view.js';
/** @import {Callbacks, Context, Extras, Focus, Lit, Marks, Mode, Model, Overlay, View} from './types.d.ts' */

const LEFT = 46;
const RIGHT = 12;
const BELOW = 24;
const MAP_HEIGHT = 46;
const NO_KIN = {before: [], after: []};

export class Topology {
  /**
   * @param {{base: HTMLCanvasElement, over: HTMLElement, lights: HTMLElement, map: HTMLCanvasElement}} hosts `over`
   *   lies upon `base` and can have the focus; `lights` is in it
   * @param {Callbacks} callbacks @param {{x?: string | null, view?: string | null}} address
   */
  constructor({base, over, lights, map}, callbacks, address) {
    this.base = base;
    this.over = over;
    this.lights = lights;
    this.callbacks = callbacks;
    this.address = address;
    this.minimap = new Minimap(map, (view) => this.look(view));
    this.map = map;
    this.utc = false;
    this.canDivide = false;
    /** @type {Mode} */
    this.mode = 'flow';
    this.facts = NO_FACTS;
    /** @type {Extras} */
    this.extras = NO_EXTRAS;
    /** @type {Set<Overlay>} */
    this.overlays = new Set(OVERLAYS.filter((one) => one.on).map((one) => one.name));
    /** @type {Model | null} */
    this.model = null;
    /** @type {View | null} */
    this.view = null;
    /** @type {Marks | null} */
    this.marks = null;
    /** @type {Focus | null} */
    this.focus = null;
    /** @type {Lit} */
    this.lit = {
      hovered: -1,
      kin: NO_KIN,
      focused: -1,
      pinned: -1,
      divider: null,
      brush: null,
      sought: null,
      pointer: null,
    };
    /** @type {string | null} */
    this.sought = null;
    this.theme = LIGHT;
    this.frame = 0;
    this.stale = true;
    this.ended = new AbortController();
    this.pointer = new Pointer(this);
    this.#listen();
  }

  #listen() {
    const options = {signal: this.ended.signal};
    this.resized = new ResizeObserver(() => this.#resize());
    this.resized.observe(this.over);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', () => this.refresh(), options);
    this.over.addEventListener('keydown', (event) => this.#key(event), options);
    this.over.addEventListener('focus', () => this.#focusBegins(), options);
    this.over.addEventListener('blur', () => this.#light({focused: -1, kin: NO_KIN}), options);
  }

  destroy() {
    this.ended.abort();
    this.resized?.disconnect();
    cancelAnimationFrame(this.frame);
  }

  /** Show a stream, or what has become of it. @param {Model} model */
  show(model) {
    const before = this.model;
    this.model = model;
    const box = this.#box();
    if (!before || !this.view) this.view = fromAddress(this.address, model, box);
    else this.view = grown({...this.view, ...box}, before, model);
    if (before) this.#keepPlaces(before, model);
    this.refresh();
  }

  /** Now has moved on: what is written to grows; nothing else has changed. @param {number} now epoch ms */
  grow(now) {
    if (!this.model || !this.view || now <= this.model.now || this.model.sealed) return;
    const before = this.model;
    this.model = {...before, now};
    this.view = grown(this.view, before, this.model);
    this.stale = true;
    this.draw();
  }

  /** How long until growing moves a pixel, ms. */
  get growthMs() {
    const {view} = this;
    return !view || view.axis === 'epoch' ? 10_000 : Math.max((view.x1 - view.x0) / view.width, 1000);
  }

  /**
   * Change what colours and overlays rest on.
   * @param {Partial<Pick<Topology, 'mode' | 'facts' | 'extras' | 'overlays' | 'utc' | 'canDivide'>>} what
   */
  set(what) {
    Object.assign(this, what);
    this.refresh();
  }

  /** Draw everything anew, with the next frame. */
  refresh() {
    if (!this.model || !this.view) return;
    this.theme = getComputedStyle(this.base).getPropertyValue('--picture-theme').trim() === 'dark' ? DARK : LIGHT;
    this.colors = coloring(this.model, this.mode, this.facts, this.theme);
    if (this.sought !== null) this.seek(this.sought);
    this.minimapStale = true;
    this.stale = true;
    this.draw();
  }

  /** Show another part. @param {View} view */
  look(view) {
    this.view = view;
    this.stale = true;
    this.draw();
    if (this.model) this.callbacks.onAddress(toAddress(view, this.model));
  }

  /** Follow the address, after "back". @param {{x?: string | null, view?: string | null}} address */
  follow(address) {
    this.address = address;
    if (!this.model || !this.view) return;
    const own = toAddress(this.view, this.model);
    if (own.x === (address.x ?? null) && own.view === (address.view ?? null)) return;
    this.view = fromAddress(address, this.model, this.#box());
    this.minimapStale = true;
    this.stale = true;
    this.draw();
  }

  /** Closer with a factor below 1, at the focus or in the middle. @param {number} factor */
  zoom(factor) {
    if (this.model && this.view)
      this.look(zoomed(this.view, this.model, {x: factor, y: 1, ...(this.#focusPixel() ?? {})}));
  }

  fit() {
    if (this.model && this.view) this.look(whole(this.model, this.view.axis, this.#box()));
  }

  /** @param {number} rect */
  zoomTo(rect) {
    if (this.model && this.view) this.look(around(this.view, this.model, rect));
  }

  /** @param {number} rect -1 for none */
  pin(rect) {
    this.#light({pinned: rect});
  }

  /** Show the dividing line that somebody types. @param {{at: number[], low: number, high: number} | null} divider */
  divide(divider) {
    this.#light({divider});
  }

  /** Show where a routing key goes; null for none. @param {string | null} key */
  seek(key) {
    this.sought = key;
    this.#light({sought: key === null || !this.model ? null : whereGoes(this.model, key)});
  }

  /** Draw with the next frame, once. */
  draw() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.drawNow());
  }

  /** Draw what has to be drawn. */
  drawNow() {
    this.frame = 0;
    const {model, view, colors} = this;
    if (!model || !view || !colors || !view.width) return;
    const ratio = devicePixelRatio;
    const {theme} = this;
    if (this.stale) {
      const begin = performance.now();
      const context = this.#context(ratio);
      drawAxes(context, model, view, theme, this.utc);
      const visible = placed(model, view, ratio);
      this.marks = marksOf(model, view, this.extras, this.overlays);
      const hasHead = this.marks.stairs.some((stair) => stair.overlay === 'head');
      drawRectangles(context, model, view, visible, colors, theme, this.extras.history, {truncated: !hasHead});
      drawMarks(context, model, view, this.marks, theme, this.canDivide);
      this.stale = false;
      this.callbacks.onDrawn?.({draw: performance.now() - begin, count: visible.count});
      if (this.minimapStale) {
        this.minimap.show(model, view.axis, colors, theme, {left: LEFT, width: view.width, height: MAP_HEIGHT, ratio});
        this.minimapStale = false;
      }
      this.minimap.draw(view);
    }
    drawLit(this.lights, model, view, this.lit);
  }

  /** What lies under the pointer is lit and told. @param {number} px @param {number} py */
  hover(px, py) {
    const {model, view, marks} = this;
    if (!model || !view) return;
    const lines = marks ? markAt(marks, view, px, py) : null;
    const isInPlot = py >= view.top && py <= view.top + view.height && px >= view.left;
    const rect = isInPlot ? rectAtPixel(model, view, px, py) : -1;
    const known = rect === this.lit.hovered ? this.lit.kin : rect < 0 ? NO_KIN : kin(model, rect);
    this.#light({hovered: rect, kin: known, pointer: isInPlot ? {x: px, y: py} : null});
    if (lines) this.callbacks.onMark(lines, px, py);
    else this.callbacks.onHover(rect, px, py);
  }

  leave() {
    this.#light({hovered: -1, kin: NO_KIN, pointer: null});
    this.callbacks.onHover(-1, 0, 0);
  }

  /** @param {Partial<Lit>} what */
  light(what) {
    this.#light(what);
  }

  /** @param {Partial<Lit>} what */
  #light(what) {
    Object.assign(this.lit, what);
    this.draw();
  }

  /**
   * Rectangles are numbered anew with each answer: the focus and what is pinned stay with the segment.
   * @param {Model} before @param {Model} model
   */
  #keepPlaces(before, model) {
    const moved = (/** @type {number} */ rect) => {
      const place = rect < 0 ? undefined : model.index.get(before.id[rect]);
      return place === undefined ? -1 : model.known.rect[place];
    };
    const pinned = moved(this.lit.pinned);
    if (pinned !== this.lit.pinned) this.callbacks.onPin(pinned);
    const focused = this.focus ? moved(this.focus.rect) : -1;
    const axis = this.view?.axis ?? 'time';
    this.focus = this.focus && focused >= 0 ? focusOn(model, axis, focused, this.focus.x, this.focus.key) : null;
    Object.assign(this.lit, {pinned, hovered: -1, kin: NO_KIN, focused: this.lit.focused >= 0 ? focused : -1});
  }

  #focusBegins() {
    if (!this.model || !this.view || this.pointer.isDown) return;
    this.#setFocus(
      this.focus ??
        (this.lit.pinned >= 0
          ? focusOn(this.model, this.view.axis, this.lit.pinned)
          : firstFocus(this.model, this.view.axis)),
    );
  }

  /** @param {Focus | null} focus */
  #setFocus(focus) {
    const {model, view} = this;
    if (!focus || !model || !view) return;
    this.focus = focus;
    this.#reveal(focus);
    this.#light({focused: focus.rect, kin: kin(model, focus.rect)});
    this.callbacks.onFocus(focus.rect);
  }

  /** Moves the view only if the focus is not in it. @param {Focus} focus */
  #reveal({rect, key}) {
    const {model, view} = this;
    if (!model || !view) return;
    const [from, to] = spanOf(model, view.axis, rect);
    const keys = view.y1 - view.y0;
    const length = view.x1 - view.x0;
    const y0 = key < view.y0 || key > view.y1 ? key - keys / 2 : view.y0;
    const x0 =
      to < view.x0 + length * 0.02 || from > view.x1 - length * 0.02
        ? (from + Math.min(to, from + length)) / 2 - length / 2
        : view.x0;
    if (y0 !== view.y0 || x0 !== view.x0) this.look(held({...view, x0, x1: x0 + length, y0, y1: y0 + keys}, model));
  }

  #focusPixel() {
    const {focus, view} = this;
    if (!focus || !view || this.lit.focused < 0) return null;
    return {
      px: view.left + ((focus.x - view.x0) / (view.x1 - view.x0)) * view.width,
      py: view.top + ((view.y1 - focus.key) / (view.y1 - view.y0)) * view.height,
    };
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const {model, view} = this;
    if (!model || !view || event.ctrlKey || event.metaKey || event.altKey) return;
    const {key} = event;
    const next = this.focus ? stepped(model, view.axis, this.focus, key) : null;
    if (next) this.#setFocus(next);
    else if (key === 'Enter' && this.focus) this.callbacks.onPin(this.focus.rect);
    else if (key === '+' || key === '=') this.zoom(0.6);
    else if (key === '-') this.zoom(1 / 0.6);
    else if (key === '0') this.fit();
    else if (key === 'Escape' && this.lit.pinned >= 0) this.callbacks.onPin(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #box() {
    const {clientWidth, clientHeight} = this.over;
    return {
      left: LEFT,
      top: ABOVE,
      width: Math.max(clientWidth - LEFT - RIGHT, 0),
      height: Math.max(clientHeight - ABOVE - BELOW - STRIP, 0),
    };
  }

  #resize() {
    if (!this.model || !this.view) return;
    this.view = {...this.view, ...this.#box()};
    this.minimapStale = true;
    this.stale = true;
    this.draw();
  }

  /** A cleared context, in pixels of the page. @param {number} ratio */
  #context(ratio) {
    const canvas = this.base;
    const width = Math.round(this.over.clientWidth * ratio);
    const height = Math.round(this.over.clientHeight * ratio);
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const context = /** @type {Context} */ (canvas.getContext('2d'));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.over.clientWidth, this.over.clientHeight);
    return context;
  }
}
