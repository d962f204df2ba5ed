// @ts-check
/** The segments of a stream as a table: the same as the picture, and in the same colours' words. */
import {html, useMemo, useState} from '../../core/html.js';
import {bytes, bytesPerS, count, duration, number, perS} from '../../core/format.js';
import {href, place} from '../../core/router.js';
import {Table} from '../../parts/table.js';
import {Time} from '../../parts/link.js';
import {newestIds, sizeOf} from '../../pictures/topology/colors.js';
import {nameOf} from '../../pictures/topology/model.js';
import {keyText, stateText} from '../../pictures/topology/words.js';

/** @typedef {import('../../pictures/topology/model.js').Model} Model */

const SORTS = /** @type {Record<string, (row: any) => number>} */ ({
  low: (row) => row.low, born: (row) => row.born, end: (row) => row.end, bytes: (row) => row.size, rate: (row) => row.rate?.bytesPerS ?? -1, number: (row) => row.number,
});

/**
 * @param {{scope: string, stream: string, model: Model, rates: Map<string, import('../../pictures/topology/colors.js').Rate>,
 *   stores: {storeOf: (number: number) => string | undefined, containerOf: (number: number) => number | undefined}, activeOnly?: boolean, height?: number | string}} props
 */
export function Segments({scope, stream, model, rates, stores, activeOnly = false, height}) {
  const [sort, setSort] = useState(activeOnly ? 'low' : '-born');
  const rows = useMemo(() => {
    const ids = newestIds(model);
    const all = Array.from({length: model.count}, (_, rect) => rect).filter((rect) => !activeOnly || model.end[rect] === Infinity);
    return all.map((rect) => ({
      rect, id: ids[rect], name: nameOf(model, rect), number: model.number[rect], low: model.low[rect], high: model.high[rect], born: model.born[rect], end: model.end[rect],
      bornEpoch: model.bornEpoch[rect], endEpoch: model.endEpoch[rect], state: stateText(model, rect), size: sizeOf(model, rect, rates, ids), rate: model.end[rect] === Infinity ? rates.get(ids[rect]) : undefined,
    }));
  }, [model, rates, activeOnly]);
  const sorted = useMemo(() => {
    const of = SORTS[sort.replace('-', '')];
    const sign = sort.startsWith('-') ? -1 : 1;
    return [...rows].sort((a, b) => sign * (of(a) - of(b)) || a.low - b.low);
  }, [rows, sort]);
  const columns = [
    {key: 'number', title: 'Segment', width: 'auto', sort: true, cell: (/** @type {any} */ row) => html`<span class="id">${row.name}</span>`},
    {key: 'low', title: 'Keys', width: '13em', sort: true, cell: (/** @type {any} */ row) => html`<span class="num" title=${`${row.low} to ${row.high}`}>${keyText(Number(row.low.toFixed(6)))} to ${keyText(Number(row.high.toFixed(6)))}</span>`},
    {key: 'state', title: 'State', width: '9em', cell: (/** @type {any} */ row) => html`<span title=${row.state}>${row.state}</span>`},
    {key: 'born', title: 'Since', width: '12em', sort: true, cell: (/** @type {any} */ row) => html`<${Time} at=${row.born} /> <span class="muted">e${row.bornEpoch}</span>`},
    ...(activeOnly ? [] : [{key: 'end', title: 'Until', width: '12em', sort: true, cell: (/** @type {any} */ row) => (row.end < Infinity ? html`<${Time} at=${row.end} /> <span class="muted" title=${`after ${duration(row.end - row.born)}`}>e${row.endEpoch}</span>` : html`<span class="muted">now</span>`)}]),
    {key: 'bytes', title: 'Bytes', width: '7em', num: true, sort: true, cell: (/** @type {any} */ row) => (row.size < 0 ? html`<span class="muted" title="not recorded">–</span>` : bytes(row.size))},
    {key: 'rate', title: 'Rate', width: '12em', num: true, sort: true, cell: (/** @type {any} */ row) => (row.rate ? `${bytesPerS(row.rate.bytesPerS)}, ${perS(row.rate.eventsPerS)}` : html`<span class="muted">–</span>`)},
    {key: 'store', title: 'Container, store', width: '12em', cell: (/** @type {any} */ row) => html`<span class="num">${number(stores.containerOf(row.number))}</span> <span class="id">${stores.storeOf(row.number) ?? ''}</span>`},
  ];
  return html`<${Table} label=${`Segments of ${scope}/${stream}: ${count(rows.length, 'segment')}`} rows=${sorted} columns=${columns} rowKey=${(/** @type {any} */ row) => row.id}
    sort=${sort} onSort=${setSort} height=${height} open=${(/** @type {any} */ row) => href(['streams', scope, stream], {...place.value.query, as: '', segment: row.id})} />`;
}
