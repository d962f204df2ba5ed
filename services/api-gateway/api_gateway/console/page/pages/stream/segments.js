/** The segments of a stream as a table: the same as the picture, and in the same colours' words. */
import {html, useMemo, useState} from '../../core/html.js';
import {bytes, bytesPerS, count, duration, number, perS} from '../../core/format.js';
import {href, place} from '../../core/router.js';
import {column, Table} from '../../parts/table.js';
import {Time} from '../../parts/link.js';
import {newestIds, sizeOf} from '../../pictures/topology/colors.js';
import {nameOf} from '../../pictures/topology/model.js';
import {keyText, stateText} from '../../pictures/topology/words.js';
/** @import {Model, Rate} from '../../pictures/types.d.ts' */
/** @import {OfStream} from '../types.d.ts' */

const SORTS = /** @type {Record<string, (row: any) => number>} */ ({
  low: (row) => row.low,
  born: (row) => row.born,
  end: (row) => row.end,
  bytes: (row) => row.size,
  rate: (row) => row.rate?.bytesPerS ?? -1,
  number: (row) => row.number,
});

/**
 * @param {OfStream & {model: Model, rates: Map<string, Rate>,
 * stores: {storeOf: (number: number) => string | undefined, containerOf: (number: number) => number | undefined},
 * activeOnly?: boolean, height?: number | string}} props
 */
export function Segments({scope, stream, model, rates, stores, activeOnly = false, height}) {
  const [sort, setSort] = useState(activeOnly ? 'low' : '-born');
  const rows = useMemo(() => {
    const ids = newestIds(model);
    const all = Array.from({length: model.count}, (_, rect) => rect).filter(
      (rect) => !activeOnly || model.end[rect] === Infinity,
    );
    return all.map((rect) => ({
      rect,
      id: ids[rect],
      name: nameOf(model, rect),
      number: model.number[rect],
      low: model.low[rect],
      high: model.high[rect],
      born: model.born[rect],
      end: model.end[rect],
      bornEpoch: model.bornEpoch[rect],
      endEpoch: model.endEpoch[rect],
      state: stateText(model, rect),
      size: sizeOf(model, rect, rates, ids),
      rate: model.end[rect] === Infinity ? rates.get(ids[rect]) : undefined,
    }));
  }, [model, rates, activeOnly]);
  const sorted = useMemo(() => {
    const of = SORTS[sort.replace('-', '')];
    const sign = sort.startsWith('-') ? -1 : 1;
    return [...rows].sort((a, b) => sign * (of(a) - of(b)) || a.low - b.low);
  }, [rows, sort]);
  const columns = [
    column('number', 'Segment', (row) => html`<span class="id">${row.name}</span>`, {width: '160px', sort: true}),
    column(
      'low',
      'Keys',
      (row) => html`<span class="num" title=${`${row.low} to ${row.high}`}>${shortKeys(row)}</span>`,
      {width: '170px', sort: true},
    ),
    column('state', 'State', (row) => html`<span title=${row.state}>${row.state}</span>`, {width: '110px'}),
    column('born', 'Since', (row) => html`<${Time} at=${row.born} /> <span class="muted">e${row.bornEpoch}</span>`, {
      width: '150px',
      sort: true,
    }),
    column('end', 'Until', (row) => html`<${Until} row=${row} />`, {width: '150px', sort: true}),
    column('bytes', 'Bytes', (row) => (row.size < 0 ? UNKNOWN : bytes(row.size)), {
      width: '100px',
      num: true,
      sort: true,
    }),
    column('rate', 'Rate', ({rate}) => (rate ? `${bytesPerS(rate.bytesPerS)}, ${perS(rate.eventsPerS)}` : UNKNOWN), {
      width: '150px',
      num: true,
      sort: true,
    }),
    column(
      'store',
      'Container, store',
      (row) => html`<span class="num">${number(stores.containerOf(row.number))}</span>
      <span class="id"> ${stores.storeOf(row.number) ?? ''}</span>`,
      {width: '190px'},
    ),
  ].filter((one) => !activeOnly || one.key !== 'end');
  return html`<${Table} label=${`Segments of ${scope}/${stream}: ${count(rows.length, 'segment')}`} rows=${sorted}
    columns=${columns} rowKey=${(row) => row.id} sort=${sort} onSort=${setSort} height=${height}
    open=${(row) => href(['streams', scope, stream], {...place.value.query, as: '', segment: row.id})} />`;
}

const UNKNOWN = html`<span class="muted" title="not recorded">–</span>`;

/** @param {{low: number, high: number}} row */
function shortKeys({low, high}) {
  return `${keyText(Number(low.toFixed(6)))} to ${keyText(Number(high.toFixed(6)))}`;
}

/** @param {{row: {born: number, end: number, endEpoch: number}}} props */
function Until({row: {born, end, endEpoch}}) {
  if (end === Infinity) return html`<span class="muted">now</span>`;
  return html`<${Time} at=${end} /> <span class="muted" title=${`after ${duration(end - born)}`}>e${endEpoch}</span>`;
}
