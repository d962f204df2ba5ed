/**
 * A canvas within the page: sharp on every screen, drawn anew when its width or the theme changes, reached by keyboard.
 *
 * A picture draws on it and says what a point or a key means; the surface knows nothing of either. It draws at most
 * once a frame.
 */
/** @import {Drawing, Listeners} from './types.d.ts' */

const DRAG_FROM_PX = 5;
const HINT =
  'Left and right arrows go through time, up and down through rows, Enter opens, plus and minus zoom, 0 shows all.';

export class Surface {
  /** @param {HTMLElement} host an element that is empty and stays the surface's @param {Drawing} drawing */
  constructor(host, drawing) {
    this.host = host;
    this.drawing = drawing;
    this.focused = false;
    /** @type {[number, number] | null} the stretch that is being drawn over, in CSS pixels */
    this.stretch = null;
    this._frame = 0;
    this._ends = new AbortController();
    this._colours = new Map();
    this.canvas = document.createElement('canvas');
    this.canvas.className = 'surface';
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'application');
    this.canvas.setAttribute('aria-roledescription', 'picture');
    this.canvas.setAttribute('aria-description', HINT);
    this._probe = document.createElement('span');
    this._probe.hidden = true;
    host.append(this.canvas, this._probe);
    this._resized = new ResizeObserver(() => this.changed());
    this._resized.observe(host);
    this._listen();
    this.changed();
  }

  /** Draw in the next frame. */
  changed() {
    if (this._frame === 0) this._frame = requestAnimationFrame(() => this._draw());
  }

  destroy() {
    cancelAnimationFrame(this._frame);
    this._ends.abort();
    this._resized.disconnect();
    this.canvas.remove();
    this._probe.remove();
  }

  _draw() {
    this._frame = 0;
    const width = Math.floor(this.host.clientWidth);
    if (width === 0) return;
    const height = Math.ceil(this.drawing.height(width));
    const ratio = Math.min(window.devicePixelRatio || 1, 3);
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const pen = this.canvas.getContext('2d');
    if (pen === null) throw new Error('this browser has no canvas');
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const style = getComputedStyle(this.host);
    pen.font = `${style.fontSize} ${style.fontFamily}`;
    pen.textBaseline = 'middle';
    this.canvas.setAttribute('aria-label', this.drawing.label);
    this.drawing.draw(pen, width, height, (name) => this._colour(name));
    if (this.stretch !== null) {
      pen.globalAlpha = 0.2;
      pen.fillStyle = this._colour('--accent');
      pen.fillRect(this.stretch[0], 0, this.stretch[1] - this.stretch[0], height);
      pen.globalAlpha = 1;
    }
  }

  /**
   * The colour as the browser computes it: a property may hold `light-dark(…)`, which a canvas cannot read.
   * @param {string} name
   */
  _colour(name) {
    let found = this._colours.get(name);
    if (found === undefined) {
      this._probe.style.color = `var(${name}, currentColor)`;
      found = getComputedStyle(this._probe).color;
      this._colours.set(name, found);
    }
    return found;
  }

  _listen() {
    const {canvas, drawing} = this;
    const signal = this._ends.signal;
    const theme = () => {
      this._colours.clear();
      this.changed();
    };
    for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
      matchMedia(query).addEventListener('change', theme, {signal});
    }
    const themed = new MutationObserver(theme);
    themed.observe(document.documentElement, {attributes: true, attributeFilter: ['class', 'data-theme', 'style']});
    signal.addEventListener('abort', () => themed.disconnect());

    this._on({
      keydown: (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || !drawing.key(event)) return;
        event.preventDefault();
        event.stopPropagation();
      },
      focus: () => this._focus(canvas.matches(':focus-visible')),
      blur: () => this._focus(false),
      pointerleave: () => drawing.hover(NaN, NaN),
      dblclick: () => drawing.reset(),
      wheel: (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        drawing.zoom(event.offsetX, event.deltaY < 0 ? 0.8 : 1.25);
      },
    });
    this._listenToDrags();
  }

  /** Listen on the canvas, and draw behind each event. @param {Listeners} listeners */
  _on(listeners) {
    for (const [type, listener] of Object.entries(listeners)) {
      const draws = (/** @type {any} */ event) => {
        listener(event);
        this.changed();
      };
      this.canvas.addEventListener(type, draws, {signal: this._ends.signal, passive: false});
    }
  }

  /** @param {boolean} focused */
  _focus(focused) {
    this.focused = focused;
    this.drawing.focus(focused);
  }

  _listenToDrags() {
    const {canvas, drawing} = this;
    let began = NaN;
    const end = () => {
      began = NaN;
      this.stretch = null;
    };
    this._on({
      pointerdown: (event) => {
        if (event.button !== 0) return;
        began = event.offsetX;
        canvas.setPointerCapture(event.pointerId);
      },
      pointermove: ({offsetX, offsetY}) => {
        const isDrag = Math.abs(offsetX - began) >= DRAG_FROM_PX;
        if (isDrag) this.stretch = [Math.min(began, offsetX), Math.max(began, offsetX)];
        else if (this.stretch === null) drawing.hover(offsetX, offsetY);
      },
      pointerup: ({offsetX, offsetY}) => {
        if (this.stretch !== null) drawing.select(this.stretch[0], this.stretch[1]);
        else if (!Number.isNaN(began)) drawing.press(offsetX, offsetY);
        end();
      },
      pointercancel: end,
    });
  }
}
