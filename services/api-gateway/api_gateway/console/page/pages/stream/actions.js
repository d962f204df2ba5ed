/** What can be done to a stream: each opens the dialog, after what can be checked here was checked. */
import {html} from '../../core/html.js';
import {under} from '../../core/api.js';
import {count, segment, segmentId} from '../../core/format.js';
import {act} from '../../parts/dialog.js';
import {cli} from '../../parts/cli.js';
import {uncovered} from '../../pictures/topology/cover.js';
import {keyText} from '../../pictures/topology/words.js';
/** @import {Range} from '../../pictures/types.d.ts' */
/** @import {Exact} from '../types.d.ts' */
/** @import {StreamSettings} from 'api' */

/** @param {string} scope @param {string} stream */
const path = (scope, stream) => under`scopes/${scope}/streams/${stream}`;

/** @param {Range[]} ranges */
const rangesText = (ranges) => ranges.map(([low, high]) => `${low}..${high}`).join(',');

/**
 * Scale by hand. Says why not, in words, where the ranges do not cover; then nothing is asked.
 * @param {string} scope @param {string} stream
 * @param {{ids: string[], gone: Range[], come: Range[]}} scale segments that go, with their keys, and the ranges that
 *   come
 * @returns {string | null}
 */
export function scaleStream(scope, stream, {ids, gone, come}) {
  const why = uncovered(gone, come);
  if (why) return why;
  const name = `${scope}/${stream}`;
  const names = ids.map((id) => segment(BigInt(id)));
  const keys = come.map(([low, high]) => `${keyText(low)} to ${keyText(high)}`).join(', ');
  void act({
    title: `Scale ${name}`,
    what: html`${count(ids.length, 'segment')} (${names.join(', ')}) ${ids.length === 1 ? 'goes' : 'go'};
      ${' '}${count(come.length, 'segment')} ${come.length === 1 ? 'comes' : 'come'} in place of
      ${ids.length === 1 ? ' it' : ' them'}, for the keys ${keys}. Writers go over to the new ones;
      what was written stays.`,
    verb: 'Scale',
    method: 'POST',
    path: `${path(scope, stream)}/scale`,
    dryRun: true,
    body: {sealed: ids.map((id) => segmentId(id)), ranges: come},
    cli: cli`stream scale ${name} --seal ${names.join(',')} --into ${rangesText(come)}`,
    done: (reply) => html`<b>It has begun</b> on epoch ${reply.data.epoch}; the picture shows when it has ended.`,
  });
  return null;
}

/** Truncate at a cut. @param {string} scope @param {string} stream @param {Map<string, number | bigint>} cut */
export function truncateStream(scope, stream, cut) {
  const name = `${scope}/${stream}`;
  void act({
    title: `Truncate ${name}`,
    what: 'The stream begins at this cut from then on. Everything before it is dropped.',
    verb: 'Truncate',
    danger: true,
    confirm: name,
    method: 'POST',
    path: `${path(scope, stream)}/truncate`,
    dryRun: true,
    body: {cut: Object.fromEntries(cut)},
    cli: cli`stream truncate ${name} --cut ${[...cut].map(([id, offset]) => `${id}=${offset}`).join(',')}`,
  });
}

/**
 * Give the stream a configuration, if it still has the one that was edited.
 * @param {string} scope @param {string} stream @param {Exact<StreamSettings>} config the whole of it
 * @param {string} etag of the one that was edited @param {{compare: () => any, done: () => void, cli: string}} how
 */
export function updateStream(scope, stream, config, etag, {compare, done, cli: line}) {
  const name = `${scope}/${stream}`;
  void act({
    title: `Configure ${name}`,
    what: 'The stream has this configuration from then on. Another number of segments replaces all that it has.',
    verb: 'Apply',
    method: 'PUT',
    path: path(scope, stream),
    body: config,
    ifMatch: etag,
    dryRun: true,
    compare,
    cli: line,
    done: () => {
      done();
      return html`<b>Done.</b> The configuration is as you set it.`;
    },
  });
}
