/**
 * The steps, in order, of the kinds of workflows that have several. A test compares them with what services carry out.
 */

/** @type {Record<string, string[]>} */
export const STEPS = {
  'update-stream': ['update-policies', 'create-replacement', 'seal-replaced'],
  'scale-stream': ['create-replacement', 'seal-replaced'],
  'truncate-stream': ['truncate-segments', 'delete-passed-segments'],
  'seal-stream': ['end-transactions', 'seal-segments'],
  'restore-stream': ['end-truncation', 'find-out'],
  'create-reader-group': ['create-state-stream', 'subscribe'],
  'update-reader-group': ['unsubscribe', 'subscribe'],
  'delete-reader-group': ['unsubscribe', 'delete-state-stream'],
  'delete-scope-recursive': ['fence', 'empty'],
  'roll-transactions': ['merge-into-duplicates', 'seal-active'],
};
