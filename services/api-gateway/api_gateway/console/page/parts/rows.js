/**
 * Rows of things on one time axis: bars have a beginning and an end, marks a time. What has focus is said below them,
 * and a table beside them has the same as text. What a thing looks like is a class of the style sheet.
 *
 * Whatever is done with the pointer can be done with keys: the rows keep what has focus, and say it.
 */
import './pages-style.js';
import {html, useEffect, useMemo, useRef, useState} from '../core/html.js';
import {utc} from '../core/time.js';
import {exactText, spanText, ticks, tickText} from '../pictures/axis.js';
/** @import {Item, Lit, RowsModel, RowsProps} from './types.d.ts' */

const TICK_PX = 84;
const NEAR_PX = 5;
/** How wide a mark is, by the style sheet. */
const MARK_PX = 16;
const DRAG_FROM_PX = 5;
const LEAST_SPAN_MS = 5;
const KEYS =
  'Left and right arrows go through time, up and down through rows, Enter opens, plus and minus zoom, 0 shows all.';

/** @param {RowsProps} props */
export function Rows({label, model, high, since = false, onOpen, hint, legend, table, most}) {
  const plot = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, setWidth] = useState(1);
  const [view, setView] = useState(/** @type {[number, number] | null} */ (null));
  const [focused, setFocused] = useState(/** @type {Lit | null} */ (null));
  const pressed = useRef(NaN);
  const [stretch, setStretch] = useState(/** @type {[number, number] | null} */ (null));
  const [open, setOpen] = useState(false);
  const {rows} = model;
  const [from, to] = view ?? [model.from, model.to];
  const clock = since ? 'since' : utc.value ? 'utc' : 'local';
  const percent = (/** @type {number} */ at) => ((at - from) / (to - from)) * 100;
  const place = (/** @type {{at: number, to?: number}} */ one) => ({
    left: `${percent(one.at)}%`,
    width: one.to && `${percent(one.to) - percent(one.at)}%`,
  });
  // The focus stays where the same row has as many items.
  const lit = focused && rows[focused.row]?.label === focused.label ? focused : null;
  const item = lit && rows[lit.row].items[lit.item];

  useEffect(() => {
    const seen = new ResizeObserver(([{contentRect}]) => setWidth(Math.max(contentRect.width, 1)));
    seen.observe(/** @type {HTMLElement} */ (plot.current));
    return () => seen.disconnect();
  }, []);

  /** @param {number} row @param {number} index of what gets the focus, and comes into view */
  function goTo(row, index) {
    const one = rows[row]?.items[index];
    if (!one) return;
    if ((one.to ?? one.at) < from || one.at > to) see(one.at - (to - from) / 2, one.at + (to - from) / 2);
    setFocused({row, item: index, label: rows[row].label});
  }

  const first = () =>
    goTo(
      rows.findIndex((row) => row.items.length > 0),
      0,
    );

  /** @param {number} begin @param {number} end */
  function see(begin, end) {
    const whole = model.to - model.from;
    const span = Math.min(Math.max(end - begin, Math.min(LEAST_SPAN_MS, whole)), whole);
    const start = Math.min(Math.max(begin, model.from), model.to - span);
    setView(span < whole ? [start, start + span] : null);
  }

  /** @param {number} around @param {number} factor */
  const zoom = (around, factor) => see(around - (around - from) * factor, around + (to - around) * factor);

  /** @param {number} way -1 to the row above, 1 to the one below: to what is nearest in time there */
  function across(way) {
    if (!lit || !item) return first();
    let row = lit.row + way;
    while (rows[row]?.items.length === 0) row += way;
    goTo(row, nearest(rows[row]?.items ?? [], item.at).index);
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = event.key === 'ArrowLeft' || event.key === 'ArrowUp' ? -1 : 1;
    const along = () => (lit ? goTo(lit.row, lit.item + way) : first());
    const pan = () => see(from + (way * (to - from)) / 4, to + (way * (to - from)) / 4);
    const middle = item?.at ?? (from + to) / 2;
    const row = lit?.row ?? 0;
    const does = /** @type {Record<string, () => void>} */ ({
      ArrowLeft: event.shiftKey ? pan : along,
      ArrowRight: event.shiftKey ? pan : along,
      ArrowUp: () => across(way),
      ArrowDown: () => across(way),
      Home: () => (lit ? goTo(row, 0) : first()),
      End: () => goTo(row, (rows[row]?.items.length ?? 0) - 1),
      '+': () => zoom(middle, 0.5),
      '=': () => zoom(middle, 0.5),
      '-': () => zoom(middle, 2),
      0: () => setView(null),
      ...(item ? {Enter: () => onOpen?.(item)} : {}),
    })[event.key];
    if (!does) return;
    does();
    event.preventDefault();
    event.stopPropagation();
  }

  /** Where the pointer is, in pixels and in time, and what it is at. @param {MouseEvent} event */
  function pointed(event) {
    const box = /** @type {HTMLElement} */ (plot.current).getBoundingClientRect();
    const x = event.clientX - box.left;
    const at = from + Math.min(Math.max(x / width, 0), 1) * (to - from);
    const row = Math.floor((event.clientY - box.top) / high);
    const ms = (to - from) / width;
    const found = nearest(rows[row]?.items ?? [], at, (MARK_PX / 2) * ms);
    const near = found.away <= NEAR_PX * ms;
    return {x, at, found: near ? {row, item: found.index, label: rows[row].label} : null};
  }

  const pointer = {
    onPointerDown(/** @type {PointerEvent} */ event) {
      if (event.button !== 0) return;
      pressed.current = pointed(event).x;
      plot.current?.setPointerCapture(event.pointerId);
    },
    onPointerMove(/** @type {PointerEvent} */ event) {
      const {x, found} = pointed(event);
      if (Math.abs(x - pressed.current) >= DRAG_FROM_PX) setStretch([pressed.current, x]);
      else if (!stretch) setFocused(found);
    },
    onPointerUp(/** @type {PointerEvent} */ event) {
      const {at, found} = pointed(event);
      const begun = from + (pressed.current / width) * (to - from);
      if (stretch) see(Math.min(begun, at), Math.max(begun, at));
      else if (found && !Number.isNaN(pressed.current)) {
        setFocused(found);
        onOpen?.(rows[found.row].items[found.item]);
      }
      pointer.onPointerCancel();
    },
    onPointerCancel() {
      pressed.current = NaN;
      setStretch(null);
    },
    onPointerLeave: () => setFocused(null),
    onDblClick: () => setView(null),
    onWheel(/** @type {WheelEvent} */ event) {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(pointed(event).at, event.deltaY < 0 ? 0.8 : 1.25);
    },
  };

  /** When something is: at a time, or from one to another and how long that is. @param {Item} one */
  function when(one) {
    const point = (/** @type {number} */ at) => (since ? tickText(at, 1, clock, model.from) : exactText(at, clock));
    return one.to === undefined ? point(one.at) : `${point(one.at)} to ${point(one.to)}, ${spanText(one.to - one.at)}`;
  }

  const things = useMemo(
    () =>
      rows.map(
        (row) =>
          html`<div key=${row.label} class="row">${row.behind}${row.items.map((one, index) => {
            if ((one.to ?? one.at) < from || one.at > to) return null;
            return html`<i key=${index} class=${`${one.to === undefined ? 'mark' : 'bar'} ${one.look}`}
            style=${place(one)}>${one.text}</i>`;
          })}</div>`,
      ),
    [model, from, to],
  );
  const {step, times} = ticks(from, to, Math.max(Math.floor(width / TICK_PX), 1), clock, model.from);
  const lines = (model.lines ?? []).filter((one) => one.at >= from && one.at <= to);
  return html`<figure class="picture">
    ${legend}
    <div class=${`rows ${most ? 'scrolls' : ''}`} style=${{'--high': `${high}px`, maxHeight: most && `${most}px`}}
      tabindex="0" role="application" aria-roledescription="picture" aria-label=${`${label}, ${rows.length} rows`}
      aria-description=${KEYS} onKeyDown=${onKey}
      onFocus=${(/** @type {FocusEvent} */ event) =>
        !lit && /** @type {HTMLElement} */ (event.currentTarget).matches(':focus-visible') && first()}>
      <div class="axis" aria-hidden="true">
        ${times.map((at) => html`<span key=${at} style=${place({at})}>${tickText(at, step, clock, model.from)}</span>`)}
        ${lines.map(
          (one) => html`<b key=${one.at} class=${percent(one.at) > 75 ? 'before' : ''} style=${place(one)}>
            ${one.label}</b>`,
        )}</div>
      <div class="names" aria-hidden="true">
        ${rows.map(
          (row, index) => html`<span key=${row.label} class=${lit?.row === index ? 'lit' : ''}>
          ${row.label}</span>`,
        )}</div>
      <div class="plot" aria-hidden="true" ref=${plot} ...${pointer}>
        ${times.map((at) => html`<i key=${at} class="tick" style=${place({at})}></i>`)}
        ${model.gaps?.map(
          (gap) => html`<i key=${gap.from} class="gap"
          style=${place({at: gap.from, to: gap.to})}>${gap.label}</i>`,
        )}
        ${things}
        ${lines.map((one) => html`<i key=${one.at} class="line" style=${place(one)}></i>`)}
        ${
          lit &&
          item &&
          html`<i class=${`lit ${item.to === undefined ? 'mark' : 'bar'}`}
          style=${{...place(item), top: `${lit.row * high}px`}}></i>`
        }
        ${
          stretch &&
          html`<i class="stretch" style=${{
            left: `${Math.min(...stretch)}px`,
            width: `${Math.abs(stretch[1] - stretch[0])}px`,
          }}></i>`
        }
      </div>
    </div>
    <figcaption class="picture-says">
      ${
        lit && item
          ? `${[lit.label, when(item)].filter(Boolean).join(', ')}: ${item.says}`
          : html`<span class="muted">${hint}</span>`
      }</figcaption>
    ${
      table &&
      html`<details class="picture-table" onToggle=${(event) => setOpen(event.currentTarget.open)}>
        <summary>As a table</summary>
        ${open && table()}
      </details>`
    }
  </figure>`;
}

/**
 * What is nearest to a time, the latest of those that are as near; a mark over a bar is the smaller aim, and meant.
 * @param {Item[]} items @param {number} at epoch ms @param {number} [half] of a mark's width, ms
 */
function nearest(items, at, half = 0) {
  let [index, away] = [-1, Infinity];
  for (const [position, one] of items.entries()) {
    const distance = Math.max(one.at - at - (one.to ? 0 : half), at - (one.to ?? one.at + half), 0);
    const isSmaller = distance === away && (one.to === undefined || items[index].to !== undefined);
    if (distance < away || isSmaller) [index, away] = [position, distance];
  }
  return {index, away};
}
