// @ts-check
/** How workflows are put in groups. Pure. */

/** @typedef {{aggregate?: string, kind?: string, container?: number, store?: string, why: string, then?: Wait}} Wait */
/**
 * @typedef {object} Item as `GET workflows` gives it
 * @property {string} id
 * @property {string} aggregate
 * @property {string} kind
 * @property {string} step
 * @property {number} since
 * @property {number} attempts
 * @property {string} lastError
 * @property {boolean} cancelled
 * @property {string} state
 * @property {boolean} canCancel
 * @property {string} [cancelWhyNot]
 * @property {number} [nextAttemptAt]
 * @property {Wait} [waitsFor]
 * @property {{action: string, allowed: boolean, why?: string}[]} [allowed]
 */

/** What a chain of waiting ends with. @param {Wait | undefined} wait @returns {Wait | undefined} */
export function chainEnd(wait) {
  let end = wait;
  while (end?.then) end = end.then;
  return end;
}

/** What errors with the same cause have in common: the container that all wait for, else the text without its numbers. @param {Item} item */
export function errorKey(item) {
  const end = chainEnd(item.waitsFor);
  if (end?.container !== undefined) return end.why || `container ${end.container} does not answer`;
  const text = item.lastError || end?.why || '';
  if (!text) return 'no error';
  return text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '…').replaceAll(/\S+\/\S+\/\S+/g, '…').replaceAll(/\d+(\.\d+)?/g, '#').slice(0, 200);
}

/** @type {Record<string, (item: Item) => string>} */
const KEYS = {
  error: errorKey,
  kind: (item) => item.kind.replaceAll('-', ' '),
  scope: (item) => item.aggregate.split(':')[1]?.split('/')[0] ?? item.aggregate,
  store: (item) => {
    const end = chainEnd(item.waitsFor);
    return end?.store ?? (end?.container !== undefined ? `container ${end.container}, no store` : 'no store is waited for');
  },
};

/** Groups, the largest first; each keeps the order of its items. @param {Item[]} items @param {string} by one of error, kind, scope, store */
export function groupsOf(items, by) {
  const keyOf = KEYS[by] ?? KEYS.kind;
  /** @type {Map<string, Item[]>} */
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item), found = groups.get(key);
    if (found) found.push(item);
    else groups.set(key, [item]);
  }
  return [...groups].map(([key, group]) => ({key, items: group})).sort((one, other) => other.items.length - one.items.length);
}
