/**
 * What the picture shows of a stream: its segments and epochs as columns of numbers, ready to be drawn and searched.
 *
 * A rolling commit makes duplicates of segments: those of the transaction's epoch, which live for a millisecond, and
 * those of the active epoch, which go on in its place. Folded, a segment and its going on are one rectangle, and epochs
 * that only duplicate have no column. Every id of the answer is still known, as cuts may name any of them.
 * Pure functions, no state.
 */
/** @import {Cut, Known, Model} from '../types.d.ts' */
/** @import {TopologyModel} from 'api' */

export const TRUNCATED = 1;
export const CREATING = 2;
export const DUPLICATE = 4;
export const MERGED = 8;

/** @param {Record<string, number | bigint> | undefined} cut @returns {Cut} */
export const cutOf = (cut) => new Map(Object.entries(cut ?? {}));

/**
 * The model of an answer.
 * @param {TopologyModel} answer
 * @param {{fold?: boolean, at?: number, head?: Record<string, number | bigint>, subscribers?:
 *   TopologyModel['subscribers'], since?: number}} [how]
 *   `at` (epoch ms) shows what there was at that moment, with the `head` and `subscribers` of then; `since` is when the
 *   stream began, where the answer is only a part of it
 * @returns {Model}
 */
export function modelOf(answer, {fold = true, at, head, subscribers, since} = {}) {
  const source = answer.segments;
  const moment = at ?? Infinity;
  const rows = [];
  for (let row = 0; row < source.id.length; row++) if (source.born[row] <= moment) rows.push(row);
  const kinds = epochKinds(answer.epochs);
  const isThere = (/** @type {number} */ place) => answer.epochs.at[place] <= moment;
  const folds = fold && kinds.some((kind) => kind !== LASTING);

  const known = knownOf(source, rows, moment);
  const parts = folds ? chains(answer, rows, kinds) : rows.map((_, place) => [place]);
  const columns = answer.epochs.epoch
    .map((_, place) => place)
    .filter((p) => isThere(p) && !(folds && kinds[p] !== LASTING));
  const epochs = epochColumns(answer.epochs, columns);
  const model = rectangles(source, rows, parts, known, epochs, moment);
  return {
    ...model,
    found: foundLives(model, epochs),
    known,
    index: new Map(known.id.map((id, place) => [id, place])),
    epochs,
    head: cutOf(at === undefined ? answer.head : head),
    subscribers: ((at === undefined ? answer.subscribers : subscribers) ?? []).map((one) => ({
      ...one,
      cut: cutOf(one.cut),
    })),
    now: Math.min(answer.now, moment),
    since: since ?? answer.epochs.at[0] ?? answer.now,
    past: at !== undefined,
    creating: model.flags.some((flags) => flags & CREATING),
    sealed: answer.state === 'SEALED' && at === undefined,
    merged: answer.merged ?? false,
    folded: folds,
    duplicates: rows.filter((row) => source.flags[row] & DUPLICATE).length,
    target: answer.target && answer.target.rate > 0 ? answer.target : null,
  };
}

const LASTING = 0;
const PASSING = 1;
const GOING_ON = 2;

/**
 * Of each epoch whether it is one of its own, a passing duplicate (of a transaction's epoch) or goes on with the one
 * before. Both duplicates of a rolling commit stand side by side; at an edge of the answer one may be missing.
 * @param {TopologyModel['epochs']} epochs @returns {number[]}
 */
export function epochKinds({epoch, reference}) {
  let lasting = -1;
  return epoch.map((number, place) => {
    if (reference[place] === number) {
      lasting = number;
      return LASTING;
    }
    if (lasting < 0) return reference[place + 1] !== epoch[place + 1] && place === 0 ? PASSING : GOING_ON;
    return reference[place] === lasting ? GOING_ON : PASSING;
  });
}

/** @param {TopologyModel['segments']} source @param {number[]} rows @param {number} moment @returns {Known} */
function knownOf(source, rows, moment) {
  const ended = (/** @type {number} */ row) => source.end[row] > 0 && source.end[row] <= moment;
  return {
    id: rows.map((row) => String(source.id[row])),
    low: Float64Array.from(rows, (row) => source.low[row]),
    high: Float64Array.from(rows, (row) => source.high[row]),
    born: Float64Array.from(rows, (row) => source.born[row]),
    end: Float64Array.from(rows, (row) => (ended(row) ? source.end[row] : Infinity)),
    bytes: Float64Array.from(rows, (row) => (ended(row) || moment === Infinity ? source.bytes[row] : -1)),
    rect: new Int32Array(rows.length).fill(-1),
  };
}

/**
 * The parts of each rectangle, as places in `rows`: a segment and the duplicates that went on in its place, in order.
 * @param {TopologyModel} answer @param {number[]} rows @param {number[]} kinds
 */
function chains({segments, epochs}, rows, kinds) {
  const placeOf = new Map(epochs.epoch.map((number, place) => [number, place]));
  /** @type {Map<number, number[]>} the newest chain of a segment's number, which its duplicates keep */
  const open = new Map();
  /** @type {number[][]} */
  const all = [];
  const inOrder = rows
    .map((_, place) => place)
    .sort((a, b) => segments.bornEpoch[rows[a]] - segments.bornEpoch[rows[b]]);
  for (const place of inOrder) {
    const row = rows[place];
    const number = segments.number[row];
    const epoch = placeOf.get(segments.bornEpoch[row]);
    const kind = epoch === undefined ? LASTING : kinds[epoch];
    if (epoch !== undefined && kind !== LASTING) {
      const chain = open.get(number);
      const end = chain && placeOf.get(segments.endEpoch[rows[chain[chain.length - 1]]]);
      const follows = end === epoch || (kind === GOING_ON && end === epoch - 1 && kinds[end] === PASSING);
      if (follows && chain) chain.push(place);
      if (follows || kind === PASSING) continue;
    }
    const begun = [place];
    open.set(number, begun);
    all.push(begun);
  }
  return all;
}

/** @param {TopologyModel['epochs']} source @param {number[]} columns */
function epochColumns(source, columns) {
  const at = Float64Array.from(columns, (place) => source.at[place]);
  const cause = columns.map((place) => source.cause[place] ?? '');
  // What a restore found behind its back-up came of it, too.
  for (let column = cause.length - 1; column > 1; column--)
    if (cause[column] === 'restored' && at[column - 1] === at[column] - 1) cause[column - 1] = 'restored';
  return {count: columns.length, epoch: Float64Array.from(columns, (place) => source.epoch[place]), at, cause};
}

/**
 * @param {TopologyModel['segments']} source @param {number[]} rows @param {number[][]} parts @param {Known} known
 * @param {Model['epochs']} epochs @param {number} moment
 */
function rectangles(source, rows, parts, known, epochs, moment) {
  const row = (/** @type {number} */ place) => rows[place];
  const firstOf = (/** @type {number[]} */ chain) => row(chain[0]);
  const lastOf = (/** @type {number[]} */ chain) => row(chain[chain.length - 1]);
  const ended = (/** @type {number[]} */ chain) => source.end[lastOf(chain)] > 0 && source.end[lastOf(chain)] <= moment;
  parts.forEach((chain, rect) => chain.forEach((place) => (known.rect[place] = rect)));
  const lasted = Float64Array.from(parts, (chain) =>
    source.end[lastOf(chain)] > 0 ? Math.max(source.end[lastOf(chain)] - source.born[firstOf(chain)], 1) : -1,
  );
  return {
    lasted,
    total: Float64Array.from(parts, (chain, rect) =>
      lasted[rect] > 0 ? sum(chain.map((place) => source.bytes[row(place)])) : -1,
    ),
    count: parts.length,
    id: parts.map((chain) => known.id[chain[0]]),
    number: Float64Array.from(parts, (chain) => source.number[firstOf(chain)]),
    low: Float64Array.from(parts, (chain) => source.low[firstOf(chain)]),
    high: Float64Array.from(parts, (chain) => source.high[firstOf(chain)]),
    born: Float64Array.from(parts, (chain) => source.born[firstOf(chain)]),
    end: Float64Array.from(parts, (chain) => (ended(chain) ? source.end[lastOf(chain)] : Infinity)),
    bornEpoch: Float64Array.from(parts, (chain) => source.bornEpoch[firstOf(chain)]),
    endEpoch: Float64Array.from(parts, (chain) => (ended(chain) ? source.endEpoch[lastOf(chain)] : -1)),
    first: Int32Array.from(parts, (chain) => columnOf(epochs, source.bornEpoch[firstOf(chain)])),
    last: Int32Array.from(parts, (chain) =>
      ended(chain)
        ? Math.max(
            columnBehind(epochs, source.endEpoch[lastOf(chain)]),
            columnOf(epochs, source.bornEpoch[firstOf(chain)]) + 1,
          )
        : epochs.count,
    ),
    bytes: Float64Array.from(parts, (chain) => sum(chain.map((place) => known.bytes[place]))),
    flags: Uint8Array.from(parts, (chain) => {
      const flags = chain.reduce(
        (all, place) => all | (source.flags[row(place)] & ~DUPLICATE),
        source.flags[firstOf(chain)],
      );
      return moment === Infinity ? flags : flags & ~TRUNCATED;
    }),
  };
}

/**
 * Of each rectangle which one of those it is that a restore found behind its back-up, counted back from the restore; 0
 * if it is none. When these were there nobody knows: each of their epochs got the millisecond before the next one.
 * @param {{count: number, born: Float64Array, end: Float64Array}} model @param {Model['epochs']} epochs
 */
function foundLives({count, born, end}, {at, cause}) {
  const found = new Uint8Array(count);
  let restored = -1;
  for (let column = cause.length - 1; column > 0; column--) {
    if (cause[column] !== 'restored') continue;
    if (at[column + 1] !== at[column] + 1) restored = at[column];
    for (let rect = 0; rect < count; rect++)
      if (born[rect] === at[column] && end[rect] <= restored) found[rect] = restored - at[column];
  }
  return found;
}

/** The sum, or -1 if one of them is unknown. */
const sum = (/** @type {number[]} */ bytes) => (bytes.some((b) => b < 0) ? -1 : bytes.reduce((a, b) => a + b, 0));

/**
 * The column that has an epoch, counted from 0; of an epoch that is folded away the one it goes on with.
 * @param {Model['epochs']} epochs @param {number} number
 */
export function columnOf({epoch, count}, number) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (epoch[middle] <= number) low = middle + 1;
    else high = middle;
  }
  return Math.max(low - 1, 0);
}

/** The first column that begins with an epoch or behind it. @param {Model['epochs']} epochs @param {number} number */
function columnBehind(epochs, number) {
  const column = columnOf(epochs, number);
  return epochs.epoch[column] >= number ? column : column + 1;
}

/**
 * Where a time (epoch ms) is on the axis of epochs: the column and how much of it has passed.
 * @param {Model} model @param {number} at
 */
export function columnAt({epochs, now}, at) {
  const {at: begins, count} = epochs;
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (begins[middle] <= at) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return 0;
  const column = low - 1;
  const end = column + 1 < count ? begins[column + 1] : Math.max(now, begins[column] + 1);
  return column + Math.min((at - begins[column]) / (end - begins[column]), 1);
}

/**
 * The rectangles that came directly before or after one, in the order of keys.
 * @param {Model} model @param {number} rect @returns {{before: number[], after: number[]}}
 */
export function kin(model, rect) {
  const {first, last, low, high, count, epochs} = model;
  const before = [];
  const after = [];
  const begins = first[rect];
  const ends = last[rect] < epochs.count ? last[rect] : -1;
  for (let other = 0; other < count; other++) {
    if (low[other] >= high[rect] || high[other] <= low[rect] || other === rect) continue;
    if (last[other] === begins && begins > 0) before.push(other);
    else if (first[other] === ends) after.push(other);
  }
  const byKey = (/** @type {number} */ a, /** @type {number} */ b) => low[a] - low[b];
  return {before: before.sort(byKey), after: after.sort(byKey)};
}

/** The rectangles that are written to, in the order of keys. @param {Model} model */
export function active(model) {
  const found = [];
  for (let rect = 0; rect < model.count; rect++)
    if (model.end[rect] === Infinity && !(model.flags[rect] & CREATING)) found.push(rect);
  return found.sort((a, b) => model.low[a] - model.low[b]);
}

/** How Sluice's users write a segment: `4.#epoch.1`. @param {Model} model @param {number} rect */
export const nameOf = (model, rect) => `${model.number[rect]}.#epoch.${model.bornEpoch[rect]}`;

/**
 * The id of the segment that is written to in a rectangle, that is of the newest of its duplicates.
 * @param {Model} model @param {number} rect
 */
export function newestId(model, rect) {
  const {rect: of, id, born} = model.known;
  let found = -1;
  for (let place = 0; place < of.length; place++)
    if (of[place] === rect && (found < 0 || born[place] > born[found])) found = place;
  return id[found];
}
