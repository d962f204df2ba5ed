/**
 * What the colour of a rectangle says: its rate, by itself or against the target, its size, its store or its age. One
 * at a time, in a few classes with a legend; what is not known is grey and says so.
 *
 * A rate of the past is what samples say; between them, and without any, it is the mean of the bytes that are left over
 * the time that is left of the segment's life. So it is known wherever a length is.
 *
 * Shades are told apart without seeing colours, too: classes that have an order go from light to dark (on dark paper
 * from dark to light), stores have numbers. Pure functions.
 */

import {bytes, bytesPerS, perS} from '../../core/format.js';
/** @import {Class, Coloring, Facts, History, Mode, Model, Palette, Rate} from '../types.d.ts' */

/** @type {{mode: Mode, label: string}[]} */
export const MODES = [
  {mode: 'flow', label: 'Bytes a second'},
  {mode: 'rate', label: 'Rate against target'},
  {mode: 'size', label: 'Size'},
  {mode: 'store', label: 'Segment store'},
  {mode: 'age', label: 'Age'},
];

/** @type {Facts} */
export const NO_FACTS = {rates: new Map(), history: null, storeOf: () => undefined, stores: []};

export const LIGHT = {
  dark: false,
  paper: '#ffffff',
  ink: '#1c2530',
  faint: '#5b6775',
  line: '#d9dfe6',
  grid: '#eef1f4',
  accent: '#0b63ce',
  hatch: 'rgba(20,30,45,.42)',
  unknown: '#dde2e9',
  unknownInk: '#4b5563',
  band: 'rgba(90,103,117,.10)',
  rates: ['#c5dcf3', '#5b9fdc', '#e2662c'],
  rateInks: ['#143a5c', '#04213b', '#2a0c00'],
  steps: ['#e2eef9', '#b3d3ee', '#75b1de', '#3484c2', '#10538f'],
  stepInks: ['#143a5c', '#143a5c', '#04213b', '#ffffff', '#ffffff'],
  ages: ['#fbe3c0', '#d9cfe9', '#b3a2d6', '#8570ba', '#553c94'],
  ageInks: ['#4a2c00', '#2c1a55', '#22104a', '#ffffff', '#ffffff'],
  stores: '#a6cee3 #fdbf6f #b2df8a #cab2d6 #fb9a99 #9fd8cb #e5d08a #c7c7c7 #f2b6de #9db7f0'.split(' '),
  storeInk: '#1c2530',
  head: '#1c2530',
  cuts: ['#7a3db8', '#0a7d4f', '#b3261e', '#00668a', '#8a5a00'],
  pasted: '#c2185b',
  held: '#8a5a00',
  config: '#6b4ea0',
  now: '#0b63ce',
};

/** @type {Palette} */
export const DARK = {
  dark: true,
  paper: '#171b21',
  ink: '#e6ebf1',
  faint: '#9aa7b6',
  line: '#2c3541',
  grid: '#1b222b',
  accent: '#6cb2ff',
  hatch: 'rgba(8,12,18,.55)',
  unknown: '#303945',
  unknownInk: '#b7c2ce',
  band: 'rgba(154,167,182,.13)',
  rates: ['#1f3a56', '#2f7fc4', '#f08a4b'],
  rateInks: ['#d4e6f8', '#ffffff', '#2a0c00'],
  steps: ['#1c2f43', '#1f4a73', '#2b70ab', '#5aa0dc', '#a9d3f7'],
  stepInks: ['#d4e6f8', '#e4f0fb', '#ffffff', '#04182b', '#04182b'],
  ages: ['#6b4a16', '#332a4d', '#4b3d76', '#7260ad', '#b3a2e6'],
  ageInks: ['#fdebd0', '#e2dbf5', '#efeaff', '#ffffff', '#170a38'],
  stores: '#3f6f8a #8f6420 #4c7a33 #6d5582 #8f4a49 #2f7468 #776522 #5f666e #88507a #465f9e'.split(' '),
  storeInk: '#ffffff',
  head: '#f4f7fa',
  cuts: ['#c79bf2', '#5fd39f', '#ff8d85', '#63c7ea', '#e5b567'],
  pasted: '#ff7eb0',
  held: '#e5b567',
  config: '#b9a1ea',
  now: '#6cb2ff',
};

const KIB = 1024;
const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const HOUR = 3_600_000;
const SIZES = [MIB, 64 * MIB, GIB, 16 * GIB];
/** Of the power of two at the highest rate or above it: so busy and idle segments differ in any stream. */
const SHARES = [1 / 64, 1 / 16, 1 / 4, 1 / 2];
/** Bytes a second: what is less than that has no share. */
const LEAST_FLOW = 64;
/** What lived shorter has its class, but not the others': a little in no time is any rate. */
const LASTING_MS = 10_000;
const AGES = [HOUR, 24 * HOUR, 7 * 24 * HOUR, 30 * 24 * HOUR];
const AGE_WORDS = ['under an hour', 'under a day', 'under a week', 'under 30 days', 'older'];

/**
 * The class of each rectangle, with the legend.
 * @param {Model} model @param {Mode} mode @param {Facts} facts @param {Palette} theme @returns {Coloring}
 */
export function coloring(model, mode, facts, theme) {
  if (mode === 'flow' || (mode === 'rate' && !model.target)) return byFlow(model, facts, theme);
  if (mode === 'rate') return byTarget(model, facts, theme);
  if (mode === 'size') return bySize(model, facts, theme);
  if (mode === 'store') return byStore(model, facts, theme);
  return byAge(model, theme);
}

/** @param {number[]} bounds @param {number} value */
function stepOf(bounds, value) {
  let step = 0;
  while (step < bounds.length && value >= bounds[step]) step++;
  return step;
}

/** @param {number[]} bounds @param {(value: number) => string} shown */
function labels(bounds, shown) {
  return [
    `under ${shown(bounds[0])}`,
    ...bounds.slice(1).map((high, i) => `${shown(bounds[i])} to ${shown(high)}`),
    `${shown(bounds[bounds.length - 1])} and more`,
  ];
}

/**
 * @param {Model} model @param {string} title @param {string[]} names @param {string[]} fills @param {string[]} inks
 * @param {string} unknown what is said of those without a class @param {Palette} theme
 * @param {(rect: number) => number} classOf -1 if it has none @param {string[]} [marks] @returns {Coloring}
 */
function classed(model, title, names, fills, inks, unknown, theme, classOf, marks) {
  const classes = names.map((label, i) => ({
    label,
    fill: fills[i % fills.length],
    ink: inks[i % inks.length],
    count: 0,
    mark: marks?.[i],
  }));
  /** @type {Class[]} */
  const all = [...classes, {label: unknown, fill: theme.unknown, ink: theme.unknownInk, count: 0, mark: marks && '?'}];
  const of = Uint8Array.from({length: model.count}, (_, rect) => {
    const found = classOf(rect);
    const at = found < 0 ? names.length : found;
    all[at].count++;
    return at;
  });
  return {title, of, classes: all, edge: null, isOrdered: !marks, classOfRate: null};
}

/**
 * The newest known id of each rectangle, by rectangle: the one that rates are of.
 * @param {Model} model @returns {string[]}
 */
export function newestIds({known, count}) {
  const place = new Int32Array(count).fill(-1);
  known.rect.forEach((rect, at) => {
    if (rect >= 0 && (place[rect] < 0 || known.born[at] >= known.born[place[rect]])) place[rect] = at;
  });
  return Array.from(place, (at) => known.id[at]);
}

/** Where samples do not say more, and at the edge of now. @param {Model} model @param {Facts} facts */
function flowsOf(model, {rates, history}) {
  const ids = newestIds(model);
  const mean = meansOf(model, rates, history, ids);
  const now = Float64Array.from(ids, (id, rect) =>
    model.end[rect] === Infinity ? (rates.get(id)?.bytesPerS ?? -1) : -1,
  );
  return {mean, now};
}

/** @param {Model} model @param {Facts} facts @param {Palette} theme */
function byFlow(model, facts, theme) {
  const {mean, now} = flowsOf(model, facts);
  const lasting = mean.filter((_, rect) => Math.min(model.end[rect], model.now) - model.born[rect] >= LASTING_MS);
  let highest = LEAST_FLOW;
  for (const known of [lasting, now, ...(facts.history?.segments.values() ?? [])])
    for (const value of known) if (value > highest) highest = value;
  const top = 2 ** Math.ceil(Math.log2(highest));
  const bounds = SHARES.map((share) => share * top);
  return rated(
    model,
    'Bytes a second',
    labels(bounds, bytesPerS),
    bounds,
    theme.steps,
    theme.stepInks,
    mean,
    now,
    theme,
  );
}

/**
 * Samples are of bytes: of a target in events only the rate of now is known.
 * @param {Model} model @param {Facts} facts @param {Palette} theme
 */
function byTarget(model, facts, theme) {
  const target = /** @type {NonNullable<Model['target']>} */ (model.target);
  const inEvents = target.type === 'events';
  const unit = inEvents ? perS : bytesPerS;
  const rate = inEvents ? target.rate : target.rate * KIB;
  const names = [
    `below half of ${unit(rate)}`,
    `${unit(rate / 2)} to ${unit(rate)}`,
    `above ${unit(rate)}, the target`,
  ];
  const bounds = [rate / 2, rate];
  const title = 'Rate against the target';
  if (!inEvents) {
    const {mean, now} = flowsOf(model, facts);
    return rated(model, title, names, bounds, theme.rates, theme.rateInks, mean, now, theme);
  }
  const now = Float64Array.from(newestIds(model), (id, rect) =>
    model.end[rect] === Infinity ? (facts.rates.get(id)?.eventsPerS ?? -1) : -1,
  );
  const found = rated(
    model,
    title,
    names,
    bounds,
    theme.rates,
    theme.rateInks,
    now.map(() => -1),
    now,
    theme,
  );
  return {...found, classOfRate: null};
}

/**
 * @param {Model} model @param {string} title @param {string[]} names @param {number[]} bounds @param {string[]} fills
 * @param {string[]} inks @param {Float64Array} mean @param {Float64Array} now the rates of now @param {Palette} theme
 * @returns {Coloring}
 */
function rated(model, title, names, bounds, fills, inks, mean, now, theme) {
  const step = (/** @type {number} */ value) => (value < 0 ? -1 : stepOf(bounds, value));
  const found = classed(model, title, names, fills, inks, 'not recorded', theme, (rect) => step(mean[rect]));
  const classOfRate = (/** @type {number} */ value) => (value < 0 ? names.length : stepOf(bounds, value));
  return {...found, edge: Int8Array.from(now, step), classOfRate};
}

/**
 * Of each rectangle the mean rate over the part of its life that has no samples, in bytes a second; -1 if its length is
 * not known, or how long it lived.
 * @param {Model} model @param {Map<string, Rate>} rates @param {History | null} history @param {string[]} ids
 */
function meansOf(model, rates, history, ids) {
  const bytes = new Float64Array(model.count);
  const time = new Float64Array(model.count);
  for (let rect = 0; rect < model.count; rect++) {
    const {length, from, to} = lengthAndLife(model, rect, rates, ids);
    bytes[rect] = model.found[rect] ? -1 : length;
    time[rect] = to - from;
  }
  const mean = bytes.map((length, rect) => (length < 0 ? -1 : (length * 1000) / Math.max(time[rect], 1)));
  for (const [id, perS] of history?.segments ?? []) {
    const place = model.index.get(id) ?? -1;
    const rect = model.known.rect[place] ?? -1;
    if (rect < 0) continue;
    const {from, bucketMs} = /** @type {History} */ (history);
    const [born, end] = [model.known.born[place], Math.min(model.known.end[place], model.now)];
    perS.forEach((rate, bucket) => {
      const begin = from + bucket * bucketMs;
      const shared = Math.min(begin + bucketMs, end) - Math.max(begin, born);
      if (rate < 0 || shared <= 0) return;
      bytes[rect] -= (rate * shared) / 1000;
      time[rect] -= shared;
    });
  }
  // A rest that is shorter is what clocks and rounding leave.
  return mean.map((rate, rect) =>
    rate < 0 || time[rect] < LEAST_REST_MS ? rate : Math.max(0, (bytes[rect] * 1000) / time[rect]),
  );
}

const LEAST_REST_MS = 2000;

/**
 * The bytes of a rectangle, -1 if they are not known, and in which time they were written. Of one that rolling commits
 * have cut into parts and that is written to, only the last part is known.
 * @param {Model} model @param {number} rect @param {Map<string, Rate>} rates @param {string[]} ids
 */
function lengthAndLife(model, rect, rates, ids) {
  if (model.lasted[rect] > 0)
    return {length: model.total[rect], from: model.born[rect], to: model.born[rect] + model.lasted[rect]};
  const place = model.index.get(ids[rect]) ?? -1;
  return {length: rates.get(ids[rect])?.length ?? -1, from: model.known.born[place] ?? 0, to: model.now};
}

/** @param {Model} model @param {Facts} facts @param {Palette} theme */
function bySize(model, {rates}, theme) {
  const ids = newestIds(model);
  return classed(
    model,
    'Bytes written',
    labels(SIZES, bytes),
    theme.steps,
    theme.stepInks,
    'not known',
    theme,
    (rect) => {
      const size = sizeOf(model, rect, rates, ids);
      return size < 0 ? -1 : stepOf(SIZES, size);
    },
  );
}

/**
 * Bytes of a rectangle, with those of now where it is written to; -1 if they are not known.
 * @param {Model} model @param {number} rect @param {Map<string, Rate>} rates @param {string[]} ids
 */
export function sizeOf(model, rect, rates, ids) {
  if (model.bytes[rect] >= 0 && model.end[rect] < Infinity) return model.bytes[rect];
  return rates.get(ids[rect])?.length ?? model.bytes[rect];
}

/** @param {Model} model @param {Facts} facts @param {Palette} theme */
function byStore(model, {storeOf, stores: all}, theme) {
  /** @type {Map<number, string | undefined>} */
  const found = new Map();
  for (const number of model.number) if (!found.has(number)) found.set(number, storeOf(number));
  const stores = [...new Set([...all, ...found.values()].filter((store) => store !== undefined))].sort();
  const place = new Map(stores.map((store, i) => [store, i]));
  return classed(
    model,
    'Store that has the segment now',
    stores,
    theme.stores,
    [theme.storeInk],
    'store not known',
    theme,
    (rect) => {
      const store = found.get(model.number[rect]);
      return store === undefined ? -1 : (place.get(store) ?? -1);
    },
    stores.map((_, i) => String(i + 1)),
  );
}

/** @param {Model} model @param {Palette} theme */
function byAge(model, theme) {
  return classed(model, 'Age', AGE_WORDS, theme.ages, theme.ageInks, 'not known', theme, (rect) =>
    stepOf(AGES, model.now - model.born[rect]),
  );
}
