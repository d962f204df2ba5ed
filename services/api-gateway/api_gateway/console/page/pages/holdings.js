/** Who held a container, or was a member, from when to when: what several answers say, put together. Pure. */

/**
 * What a further call found put to what is there: what was open there goes on here.
 * @param {(one: any) => string} same
 */
const joins = (same) => (/** @type {any[]} */ before, /** @type {any[]} */ more) => {
  const open = new Map(before.filter((one) => one.to === undefined).map((one) => [same(one), one]));
  const found = before.filter((one) => one.to !== undefined);
  for (const one of more) {
    const begun = open.get(same(one));
    open.delete(same(one));
    found.push(begun ? {...one, from: begun.from} : one);
  }
  return found;
};

export const joinHoldings = joins((one) => `${one.container} ${one.store}`);
export const joinMemberships = joins((one) => `${one.service} ${one.instance}`);

/**
 * Between two stores of one container, and before the first, none held it.
 * @param {any[]} items @param {number} from @param {number} to
 */
export function withGaps(items, from, to) {
  /** @type {Map<number, any[]>} */
  const byContainer = new Map();
  for (const one of items) byContainer.set(one.container, [...(byContainer.get(one.container) ?? []), one]);
  return [...byContainer].flatMap(([container, held]) => {
    const sorted = [...held].sort((one, other) => one.from - other.from);
    const found = [];
    let end = from;
    for (const one of sorted) {
      if (one.from > end) found.push({container, from: end, to: one.from});
      found.push(one);
      end = Math.max(end, one.to ?? to);
    }
    if (end < to) found.push({container, from: end, to});
    return found;
  });
}

/** @typedef {{at: number, before: string, after: string, containers: number[], gapMs: number}} Move */

/** @param {any} before @param {any} after @returns {Move} */
const begun = (before, after) => ({at: after.from, before: before.store, after: after.store, containers: [], gapMs: 0});

/**
 * What went from one store to another, the latest first; what moved together is one move.
 * @param {any[]} items
 * @returns {Move[]} `gapMs`: how long no store had it
 */
export function movesOf(items) {
  /** @type {Map<string, Move>} */
  const moves = new Map();
  /** @type {Map<number, any>} */
  const last = new Map();
  for (const one of [...items].sort((a, b) => a.from - b.from)) {
    const before = last.get(one.container);
    last.set(one.container, one);
    if (!before || before.store === one.store) continue;
    const key = `${one.from} ${before.store} ${one.store}`;
    const move = moves.get(key) ?? begun(before, one);
    move.containers.push(one.container);
    move.gapMs = Math.max(move.gapMs, one.from - (before.to ?? one.from));
    moves.set(key, move);
  }
  return [...moves.values()].sort((a, b) => b.at - a.at);
}
