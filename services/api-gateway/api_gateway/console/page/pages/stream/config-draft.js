/**
 * A configuration while it is edited: numbers as the texts that are typed, and back without the loss of a digit. Pure.
 */
import {UNLIMITED} from '../../core/format.js';
/** @import {Draft, Exact} from '../types.d.ts' */
/** @import {StreamConfiguration, StreamSettings} from 'api' */

const INT64_MAX = UNLIMITED;
const INT32_MAX = 2147483647n;

/** @param {StreamConfiguration} config as the interface has it @returns {Draft} */
export function draftOf({scaling, retention, tags, rolloverSizeBytes, timestampAggregationTimeout}) {
  const unlimited = !retention || BigInt(retention.max) === UNLIMITED;
  return {
    scaling: scaling.type,
    targetRate: String(scaling.targetRate || 1000),
    scaleFactor: String(scaling.scaleFactor || 2),
    minSegments: String(scaling.minSegments),
    retention: retention?.type ?? 'none',
    min: String(retention?.min ?? 0),
    max: unlimited ? '' : String(retention.max),
    unlimited,
    tags: tags.join('\n'),
    rollover: String(rolloverSizeBytes),
    timeout: String(timestampAggregationTimeout),
  };
}

/** @param {string} text @returns {number | bigint} */
function integer(text) {
  const whole = BigInt(text);
  return whole <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(whole) : whole;
}

/** The configuration that a draft without problems means. @param {Draft} draft @returns {Exact<StreamSettings>} */
export function configOf(draft) {
  const fixed = draft.scaling === 'fixed';
  return {
    scaling: {
      type: draft.scaling,
      targetRate: fixed ? 0 : integer(draft.targetRate),
      scaleFactor: fixed ? 0 : integer(draft.scaleFactor),
      minSegments: integer(draft.minSegments),
    },
    ...(draft.retention === 'none'
      ? {}
      : {
          retention: {
            type: draft.retention,
            min: integer(draft.min),
            max: draft.unlimited ? UNLIMITED : integer(draft.max),
          },
        }),
    tags: draft.tags
      .split('\n')
      .map((tag) => tag.trim())
      .filter(Boolean),
    rolloverSizeBytes: integer(draft.rollover),
    timestampAggregationTimeout: integer(draft.timeout),
  };
}

/**
 * What is wrong with a draft, by field, in words.
 * @param {Draft} draft @returns {Partial<Record<keyof Draft, string>>}
 */
export function problemsOf(draft) {
  /** @type {Partial<Record<keyof Draft, string>>} */
  const found = {};
  const whole = (/** @type {keyof Draft} */ field, /** @type {bigint} */ most, /** @type {bigint} */ least = 0n) => {
    const text = String(draft[field]);
    if (!/^\d+$/.test(text)) found[field] = 'a whole number';
    else if (BigInt(text) > most || BigInt(text) < least) found[field] = `${least} to ${most}`;
  };
  whole('minSegments', INT32_MAX, 1n);
  if (draft.scaling !== 'fixed') {
    whole('targetRate', INT32_MAX, 1n);
    whole('scaleFactor', INT32_MAX, 2n);
  }
  if (draft.retention !== 'none') {
    whole('min', INT64_MAX);
    if (!draft.unlimited) {
      whole('max', INT64_MAX);
      if (!found.min && !found.max && BigInt(draft.max) < BigInt(draft.min))
        found.max = 'not less than what is kept in any case';
    }
  }
  whole('rollover', INT64_MAX);
  whole('timeout', INT64_MAX);
  return found;
}
