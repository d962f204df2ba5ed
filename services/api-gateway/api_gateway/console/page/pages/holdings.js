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
