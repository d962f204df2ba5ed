/** The configuration of a stream in words, as the interfaces and the journal have it. Pure functions. */
import {bytes, duration, number, UNLIMITED} from '../../core/format.js';
/** @import {Exact} from '../types.d.ts' */
/** @import {EventModel, Retention, Scaling} from 'api' */

/** @param {Exact<Scaling>} scaling */
export function scalingText({type, targetRate, scaleFactor, minSegments}) {
  const least = `${number(minSegments)} ${minSegments === 1 ? 'segment' : 'segments'}`;
  if (type === 'fixed') return `fixed, ${least}`;
  const rate = `${number(targetRate)} a second and segment`;
  const unit = type === 'events' ? 'events' : 'kilobytes';
  return `by ${unit}: ${rate}, into ${number(scaleFactor)} at most, ${least} at least`;
}

/** @param {Exact<Retention> | undefined} retention */
export function retentionText(retention) {
  if (!retention) return 'everything is kept';
  const shown = (/** @type {number | bigint} */ limit) =>
    BigInt(limit) === UNLIMITED ? 'without limit' : retention.type === 'size' ? bytes(limit) : duration(Number(limit));
  const most = BigInt(retention.max) === UNLIMITED ? 'and more, without limit' : `at most ${shown(retention.max)}`;
  return `by ${retention.type === 'size' ? 'size' : 'age'}: at least ${shown(retention.min)}, ${most}`;
}

/** A change of the configuration as the journal has it. @param {EventModel} record */
export function configChange(record) {
  const by = record.principal ? ` by ${record.principal}` : '';
  return `Configuration changed${by}`;
}
