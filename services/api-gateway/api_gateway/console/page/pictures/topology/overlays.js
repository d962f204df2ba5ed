/**
 * What can be laid over the rectangles, and where: flags above the plot, stairs through it, spans of epochs, bands.
 *
 * Pure: from the model, the view and what else is known come marks with places in pixels and words; `marks.js` draws
 * them, and the pointer finds them.
 */

import {age, clock, words} from './words.js';
import {UNKNOWN, stairs, stepX} from './cuts.js';
import {columnAt, columnOf} from './model.js';
import {toX, toY} from './view.js';
/** @import {Cut, CutStep, Extras, Flag, Marks, Model, Overlay, Span, Stair, View} from '../types.d.ts' */

/** All overlays: their names, what their key looks like, and which are on from the start. */
export const OVERLAYS = /** @type {{name: Overlay, label: string, hint: string, on: boolean}[]} */ ([
  {name: 'scales', label: 'Scales', hint: 'where an epoch begins, and why', on: true},
  {name: 'decisions', label: 'Hot ▲ and cold ▼', hint: 'decisions to split and to merge', on: true},
  {name: 'head', label: 'Head', hint: 'where reading begins; before it is dropped', on: true},
  {name: 'truncations', label: 'Past truncations', hint: 'where the head was before', on: false},
  {name: 'subscribers', label: 'Reader groups', hint: 'how far each one has read, as it last reported', on: true},
  {name: 'pasted', label: 'Pasted cut', hint: 'a cut that you paste', on: true},
  {name: 'held', label: 'Open transactions', hint: 'epochs that open transactions hold', on: true},
  {name: 'config', label: 'Configuration', hint: 'when it was changed', on: true},
  {
    name: 'watermark',
    label: 'Watermark',
    hint: "the latest one, in the writers' time, and how far it is behind",
    on: false,
  },
  {name: 'gaps', label: 'Nothing written', hint: 'times when no segment grew, where samples are', on: false},
]);

/** @type {Extras} */
export const NO_EXTRAS = {
  pasted: null,
  held: [],
  config: [],
  truncations: [],
  decisions: [],
  decidedFrom: Infinity,
  watermark: null,
  history: null,
  lengths: UNKNOWN,
};

/**
 * All marks of the overlays that are on.
 * @param {Model} model @param {View} view @param {Extras} extras @param {Set<Overlay>} on @returns {Marks}
 */
export function marksOf(model, view, extras, on) {
  return {
    flags: clustered([
      ...(on.has('scales') ? scaleFlags(model, view, extras) : []),
      ...(on.has('decisions') ? decisionFlags(model, view, extras) : []),
      ...(on.has('config') ? configFlags(model, view, extras) : []),
    ]),
    stairs: allStairs(model, view, extras, on),
    held: on.has('held') ? heldSpans(model, view, extras) : [],
    bands: on.has('gaps') ? gapBands(model, view, extras) : [],
    watermark: on.has('watermark') ? watermarkSpan(model, view, extras) : null,
  };
}

/** The pixel of a time. @param {Model} model @param {View} view @param {number} at */
const xOf = (model, view, at) => toX(view, view.axis === 'time' ? at : columnAt(model, at));

const isVisible = (/** @type {View} */ view, /** @type {number} */ x) =>
  x >= view.left - 1 && x <= view.left + view.width + 1;

/** A decision is what an epoch came of if it was taken within this time before, and after the epoch before. */
const DECIDED_MS = 5 * 60_000;

const CAUSES = /** @type {Record<string, string>} */ ({
  created: 'created',
  scale: 'scale',
  rolling: 'rolling commit',
  restored: 'restored from a back-up',
});

/** One word for who wanted a scale. */
const WHY = /** @type {Record<string, string>} */ ({split: 'hot', merge: 'cold', 'split-and-merge': 'hot, cold'});
const WORDS = /** @type {Record<string, string>} */ ({rolling: 'commit', restored: 'restored'});

/**
 * Why an epoch began, in a word: what the decision behind it says, without one that a person or a program asked for it.
 * @param {string} cause @param {{code: string} | undefined} decision @param {boolean} isKnown whether every decision of
 *   that time is
 */
function wordOf(cause, decision, isKnown) {
  if (cause !== 'scale') return WORDS[cause] ?? '';
  return decision ? (WHY[decision.code] ?? '') : isKnown ? 'manual' : '';
}

/** @param {Model} model @param {View} view @param {Extras} extras @returns {Flag[]} */
function scaleFlags(model, view, {decisions, decidedFrom}) {
  const {epoch, at, cause, count} = model.epochs;
  const flags = [];
  for (let column = 1; column < count; column++) {
    const x = toX(view, view.axis === 'time' ? at[column] : column);
    if (!isVisible(view, x)) continue;
    const name = CAUSES[cause[column]] ?? words(cause[column] || 'scale');
    const decision =
      cause[column] === 'scale'
        ? decisions.find((one) => at[column] >= one.at && at[column] - one.at < DECIDED_MS && at[column - 1] <= one.at)
        : undefined;
    const reason = decision?.reason;
    flags.push({
      overlay: /** @type {Overlay} */ ('scales'),
      kind: /** @type {'scale'} */ ('scale'),
      x,
      at: at[column],
      count: 1,
      word: wordOf(cause[column], decision, at[column] - DECIDED_MS > decidedFrom),
      lines: [`Epoch ${epoch[column]}: ${name}`, ...(reason ? [reason] : []), clock(at[column])],
    });
  }
  return flags;
}

/** @param {Model} model @param {View} view @param {Extras} extras @returns {Flag[]} */
function decisionFlags(model, view, {decisions}) {
  return decisions.flatMap(({at, code, reason}) => {
    const x = xOf(model, view, at);
    if (at > model.now || at < model.since || !isVisible(view, x)) return [];
    const kinds = /** @type {('hot' | 'cold')[]} */ (
      code === 'split-and-merge' ? ['hot', 'cold'] : code === 'merge' ? ['cold'] : ['hot']
    );
    return kinds.map((kind) => ({
      overlay: /** @type {Overlay} */ ('decisions'),
      kind,
      x,
      at,
      count: 1,
      lines: [`${words(code)}: ${reason}`, clock(at)],
    }));
  });
}

/** @param {Model} model @param {View} view @param {Extras} extras @returns {Flag[]} */
function configFlags(model, view, {config}) {
  return config
    .filter(({at}) => at >= model.since && at <= model.now)
    .map(({at, text}) => ({
      overlay: /** @type {Overlay} */ ('config'),
      kind: /** @type {'config'} */ ('config'),
      x: xOf(model, view, at),
      at,
      count: 1,
      lines: [text, clock(at)],
    }))
    .filter(({x}) => isVisible(view, x));
}

const NEAR = 9;

/** Flags of a kind that would cover each other are one, with how many they are. @param {Flag[]} flags */
function clustered(flags) {
  /** @type {Map<string, Flag>} */
  const last = new Map();
  const kept = [];
  for (const flag of flags.sort((a, b) => a.x - b.x)) {
    const before = last.get(flag.kind);
    if (before && flag.x - before.x < NEAR) {
      before.count += 1;
      if (before.word !== flag.word) before.word = '';
      if (before.lines.length < 9) before.lines.push(...flag.lines);
      continue;
    }
    const own = {...flag, lines: [...flag.lines]};
    last.set(flag.kind, own);
    kept.push(own);
  }
  return kept;
}

/** @param {Model} model @param {View} view @param {Extras} extras @param {Set<Overlay>} on @returns {Stair[]} */
function allStairs(model, view, {pasted, truncations, lengths}, on) {
  /** @type {Stair[]} */
  const all = [];
  const add = (
    /** @type {Overlay} */ overlay,
    /** @type {string} */ name,
    /** @type {number} */ tone,
    /** @type {string[]} */ lines,
    /** @type {Cut} */ cut,
  ) => {
    const {steps} = stairs(model, cut, lengths);
    if (steps.length)
      all.push({
        overlay,
        name,
        tone,
        lines: withDoubt(lines, steps),
        steps: steps.map((step) => pixels(model, view, step)),
      });
  };
  if (on.has('truncations'))
    truncations.forEach(({at, cut, text}) => add('truncations', '', 0, [text, clock(at)], cut));
  if (on.has('head') && hasHead(model)) add('head', 'head', 0, ['Head: reading begins here'], model.head);
  if (on.has('subscribers')) {
    model.subscribers.forEach(({name, updatedAt, cut}, i) =>
      add('subscribers', name, i, [`Reader group ${name}`, `as reported ${age(model.now - updatedAt)} ago`], cut),
    );
  }
  if (on.has('pasted') && pasted) add('pasted', 'pasted cut', 0, ['The cut that you pasted'], pasted);
  return all;
}

/** Whether anything is dropped: else the head is the left edge and no line. @param {Model} model */
const hasHead = ({head, index, known, since}) =>
  [...head].some(([id, offset]) => Number(offset) > 0 || (known.born[index.get(id) ?? -1] ?? since) > since);

/** @param {string[]} lines @param {CutStep[]} steps */
function withDoubt(lines, steps) {
  const unsure = steps.filter((step) => !step.exact).length;
  return unsure ? [...lines, `${unsure} of ${steps.length} places in proportion to bytes (dashed)`] : lines;
}

/** @param {Model} model @param {View} view @param {CutStep} step */
function pixels(model, view, step) {
  const x = toX(view, stepX(model, view.axis, step));
  return {x, y0: toY(view, step.high), y1: toY(view, step.low), exact: step.exact};
}

/** @param {Model} model @param {View} view @param {Extras} extras @returns {Span[]} */
function heldSpans(model, view, {held}) {
  const {epochs} = model;
  return held
    .map(({epoch, count, since}) => {
      const column = columnOf(epochs, epoch);
      const x0 = toX(view, view.axis === 'time' ? epochs.at[column] : column);
      const end = column + 1 < epochs.count ? epochs.at[column + 1] : model.now;
      const x1 = toX(view, view.axis === 'time' ? end : column + 1);
      return {
        overlay: /** @type {Overlay} */ ('held'),
        x0,
        x1,
        lines: [
          `Epoch ${epoch} is held by ${count} open ${count === 1 ? 'transaction' : 'transactions'}`,
          `the oldest for ${age(model.now - since)}`,
        ],
      };
    })
    .filter(({x0, x1}) => x1 >= view.left && x0 <= view.left + view.width);
}

/**
 * Times in which samples say that no segment grew.
 * @param {Model} model @param {View} view @param {Extras} extras @returns {Span[]}
 */
function gapBands(model, view, {history}) {
  if (!history?.segments.size) return [];
  const rows = [...history.segments.values()];
  const buckets = Math.max(...rows.map((row) => row.length));
  const isSilent = (/** @type {number} */ bucket) =>
    rows.some((row) => row[bucket] >= 0) && rows.every((row) => !(row[bucket] > 0));
  const bands = [];
  for (let first = 0; first < buckets; first++) {
    if (!isSilent(first)) continue;
    let last = first;
    while (last + 1 < buckets && isSilent(last + 1)) last++;
    const from = Math.max(history.from + first * history.bucketMs, model.since);
    const to = Math.min(history.from + (last + 1) * history.bucketMs, model.now);
    first = last;
    if (to > from)
      bands.push({
        overlay: /** @type {Overlay} */ ('gaps'),
        x0: xOf(model, view, from),
        x1: xOf(model, view, to),
        lines: ['Nothing was written', `${clock(from)} to ${clock(to)}`],
      });
  }
  return bands.filter(({x0, x1}) => x1 >= view.left && x0 <= view.left + view.width);
}

/** @param {Model} model @param {View} view @param {Extras} extras @returns {Span | null} */
function watermarkSpan(model, view, {watermark}) {
  if (!watermark) return null;
  return {
    overlay: 'watermark',
    x0: xOf(model, view, watermark.upper),
    x1: xOf(model, view, model.now),
    lines: [
      `Watermark: ${clock(watermark.lower)} to ${clock(watermark.upper)} in the writers' time`,
      `${age(model.now - watermark.upper)} behind now; written ${age(model.now - watermark.at)} ago`,
    ],
  };
}

/**
 * The words of the mark at a pixel; null if there is none.
 * @param {Marks} marks @param {View} view @param {number} px @param {number} py @returns {string[] | null}
 */
export function markAt({flags, stairs: all, held, watermark}, view, px, py) {
  if (py < view.top) {
    const found = flags.filter((flag) => Math.abs(flag.x - px) <= NEAR - 2);
    if (found.length)
      return found
        .flatMap((flag) => (flag.count > 1 ? [`${flag.count} at this place`, ...flag.lines] : flag.lines))
        .slice(0, 12);
    return held.find(({x0, x1}) => px >= x0 && px <= x1)?.lines ?? null;
  }
  if (py > view.top + view.height)
    return watermark && px >= watermark.x0 - 4 && px <= watermark.x1 + 4 ? watermark.lines : null;
  const stair = all.findLast(({steps}) =>
    steps.some(({x, y0, y1}) => Math.abs(x - px) <= 4 && py >= y0 - 2 && py <= y1 + 2),
  );
  return stair ? stair.lines : null;
}
