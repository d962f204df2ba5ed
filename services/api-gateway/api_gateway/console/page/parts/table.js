/**
 * A table of up to tens of thousands of rows, of which at most 60 are in the document.
 *
 * html`<${Table} label="Streams" rows=${rows} columns=${COLUMNS} rowKey=${(row) => row.name} open=${(row) => href(…)}
 *       sort=${sort} onSort=${(key) => …} marks=${marks} />`
 *
 * Columns: `column(key, title, (row) => …, {width?, num?, sort?, hint?})`. One without a
 * width has 200 px; all share what is left.
 * Keys: j k or arrows, Home, End, PageUp, PageDown, Enter opens. Rows have one height, so texts are cut off; tooltips
 * have them.
 */
import {html, useEffect, useLayoutEffect, useRef, useState} from '../core/html.js';
import {navigate} from '../core/router.js';
import {useKey} from '../core/keys.js';
/** @import {Column, TableProps} from './types.d.ts' */

export const ROW_PX = 30;
const MAX_ROWS = 60;
const MARK_MS = 2000;
/** Of a column whose width is not in px. */
const LEAST_PX = 200;

/** @param {TableProps} props */
export function Table({label, rows, columns, rowKey, open, sort, onSort, marks, height, rowClass, onVisible}) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [top, setTop] = useState(0);
  const [visible, setVisible] = useState(20);
  const [active, setActive] = useState(-1);
  const wantsFocus = useRef(false);

  useLayoutEffect(() => {
    const element = /** @type {HTMLDivElement} */ (box.current);
    const observer = new ResizeObserver(() => setVisible(Math.ceil(element.clientHeight / ROW_PX) + 1));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector('tr.active'))?.focus({
      preventScroll: true,
    });
  });

  const most = Math.min(visible, MAX_ROWS - 8);
  const first = Math.max(0, Math.min(Math.floor(top / ROW_PX) - 3, rows.length - most));
  const shown = rows.slice(first, first + most + 6);

  useEffect(() => onVisible?.(shown));

  /** @param {number} index */
  function go(index) {
    const next = Math.max(0, Math.min(rows.length - 1, index));
    if (rows.length === 0) return;
    const element = /** @type {HTMLDivElement} */ (box.current);
    const from = next * ROW_PX,
      body = element.clientHeight - ROW_PX;
    if (from < element.scrollTop) element.scrollTop = from;
    else if (from + ROW_PX > element.scrollTop + body) element.scrollTop = from + ROW_PX - body;
    setTop(element.scrollTop);
    setActive(next);
    wantsFocus.current = true;
  }

  /** @param {any} row */
  function follow(row) {
    const link = open?.(row);
    if (link) navigate(link);
  }

  /** @param {KeyboardEvent} event */
  function onKeyDown(event) {
    const steps = /** @type {Record<string, number>} */ ({
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: visible - 2,
      PageUp: 2 - visible,
    });
    if (/** @type {Element} */ (event.target).closest('input')) return;
    // Rows may have come or gone since this one got the focus.
    const row =
      event.target instanceof HTMLTableRowElement
        ? rows[Number(event.target.getAttribute('aria-rowindex')) - 2]
        : undefined;
    if (event.key in steps) go(active + steps[event.key]);
    else if (event.key === 'Home') go(0);
    else if (event.key === 'End') go(rows.length - 1);
    else if (event.key === 'Enter' && row) follow(row);
    else return;
    event.preventDefault();
  }

  /** @param {MouseEvent} event @param {any} row */
  function onClick(event, row) {
    if (/** @type {Element} */ (event.target).closest('a, button, input, label') || getSelection()?.toString()) return;
    follow(row);
  }

  useKey('j', 'next row', step);
  useKey('k', 'row before', step);

  const now = Date.now();
  const least = columns.reduce((sum, {width = ''}) => sum + (width.endsWith('px') ? parseInt(width, 10) : LEAST_PX), 0);
  const style = height === undefined ? undefined : `height:${typeof height === 'number' ? `${height}px` : height}`;
  return html`<div class="table" ref=${box} tabindex="0" role="region" aria-label=${label} style=${style}
    onScroll=${(event) => setTop(event.currentTarget.scrollTop)} onKeyDown=${onKeyDown}>
    <table style=${`min-width:${least}px`} aria-rowcount=${rows.length + 1}>
      <colgroup>
        ${columns.map(
          ({key, width = `${LEAST_PX}px`}) => html`<col key=${key} style=${`width:${width}`} />`,
        )}</colgroup>
      <thead><tr aria-rowindex="1">
        ${columns.map((one) => html`<${Head} key=${one.key} column=${one} sort=${sort} onSort=${onSort} />`)}
      </tr></thead>
      <tbody>
        ${first > 0 ? html`<tr aria-hidden="true" class="space" style=${`height:${first * ROW_PX}px`}></tr>` : null}
        ${shown.map((row, index) => {
          const key = rowKey(row),
            number = first + index,
            marked = now - (marks?.get(key) ?? 0) < MARK_MS;
          const state = `${number === active ? 'active' : ''} ${marked ? 'marked' : ''} ${open ? 'opens' : ''}`;
          const style = `${state} ${rowClass?.(row) ?? ''}`;
          return html`<tr key=${key} aria-rowindex=${number + 2} tabindex="-1"
            onClick=${(/** @type {MouseEvent} */ event) => onClick(event, row)} onFocus=${() => setActive(number)}
            class=${style}>
            ${columns.map((one) => html`<td key=${one.key} class=${one.num ? 'num' : ''}>${one.cell(row)}</td>`)}
          </tr>`;
        })}
        ${
          first + shown.length < rows.length &&
          html`<tr aria-hidden="true" class="space"
          style=${`height:${(rows.length - first - shown.length) * ROW_PX}px`}></tr>`
        }
      </tbody>
    </table>
  </div>`;
}

/**
 * j and k are arrows of the table that has the focus, or else of the first one of the page.
 * @param {KeyboardEvent} event
 */
function step({key}) {
  const table = document.activeElement?.closest('.table') ?? document.querySelector('.table');
  table?.dispatchEvent(new KeyboardEvent('keydown', {key: key === 'j' ? 'ArrowDown' : 'ArrowUp'}));
}

/** @param {{column: Column, sort?: string, onSort?: (sort: string) => void}} props */
function Head({column, sort, onSort}) {
  const is = sort === column.key ? 'ascending' : sort === `-${column.key}` ? 'descending' : undefined;
  // Of numbers the largest are looked for.
  const next = (column.num ? is !== 'descending' : is === 'ascending') ? `-${column.key}` : column.key;
  const mark = is === 'ascending' ? ' ↑' : is === 'descending' ? ' ↓' : '';
  return html`<th scope="col" class=${column.num ? 'num' : ''} aria-sort=${is} title=${column.hint}>
    ${
      column.sort && onSort
        ? html`<button type="button" class="sort" onClick=${() => onSort(next)}>${column.title}
      ${mark}</button>`
        : column.title
    }
  </th>`;
}

/**
 * @template R
 * @param {string} key @param {any} title @param {(row: R) => any} cell @param {Partial<Column<R>>} [more]
 * @returns {Column<R>}
 */
export function column(key, title, cell, more = {}) {
  return {key, title, cell, ...more};
}
