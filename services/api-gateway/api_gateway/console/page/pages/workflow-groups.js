/** How workflows are put in groups. Pure. */
import {chainEnd} from '../core/format.js';
/** @import {WorkflowItem} from 'api' */

/**
 * What errors with the same cause have in common: the container that all wait for, else the text without its numbers.
 * @param {WorkflowItem} item
 */
export function errorKey(item) {
  const end = chainEnd(item.waitsFor);
  if (end?.container !== undefined) return end.why || `container ${end.container} does not answer`;
  const text = item.lastError || end?.why || '';
  if (!text) return 'no error';
  return text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '…')
    .replaceAll(/\S+\/\S+\/\S+/g, '…')
    .replaceAll(/\d+(\.\d+)?/g, '#')
    .slice(0, 200);
}

/** @type {Record<string, (item: WorkflowItem) => string>} */
const KEYS = {
  error: errorKey,
  kind: (item) => item.kind.replaceAll('-', ' '),
  scope: (item) => item.aggregate.split(':')[1]?.split('/')[0] ?? item.aggregate,
  store: (item) => {
    const end = chainEnd(item.waitsFor);
    return (
      end?.store ?? (end?.container !== undefined ? `container ${end.container}, no store` : 'no store is waited for')
    );
  },
};

/**
 * Groups, the largest first; each keeps the order of its items.
 * @param {WorkflowItem[]} items @param {string} by one of error, kind, scope, store
 */
export function groupsOf(items, by) {
  const keyOf = KEYS[by] ?? KEYS.kind;
  /** @type {Map<string, WorkflowItem[]>} */
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item),
      found = groups.get(key);
    if (found) found.push(item);
    else groups.set(key, [item]);
  }
  return [...groups]
    .map(([key, group]) => ({key, items: group}))
    .sort((one, other) => other.items.length - one.items.length);
}
