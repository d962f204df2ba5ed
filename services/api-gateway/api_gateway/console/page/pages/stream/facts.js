/**
 * What the picture of a stream rests on besides its topology and past rates: rates, stores, and what overlays show.
 *
 * Each comes by a call of its own, and the picture shows what it has: a store that does not answer leaves grey. What
 * takes the journal is asked for when its overlay is switched on, never before.
 */
import {useEffect, useMemo, useState} from '../../core/html.js';
import {api, Problem, under} from '../../core/api.js';
import {isStructural, onRates} from '../../core/live.js';
import {useResource} from '../../core/store.js';
import {containerOf} from '../../pictures/topology/key_position.js';
import {NO_EXTRAS} from '../../pictures/topology/overlays.js';
import {cutIn} from '../../pictures/topology/cuts.js';
import {cutOf} from '../../pictures/topology/model.js';
import {configChange} from './config-words.js';
/** @import {Extras, History, Lengths, Model, Rate} from '../../pictures/types.d.ts' */
/** @import {DecisionModel, EventModel, RateModel, StreamDescription, TransactionModel} from 'api' */

const JOURNAL_LIMIT = 500;
/** Rates are pushed each 2 s; after so long they are none of now. */
const SILENT_MS = 7000;
const JOURNAL_TYPES = 'StreamUpdateStarted,StreamUpdated,StreamTruncationStarted,DecisionRecorded';

/**
 * Rates of the segments that are written to, by id; kept up to date while this is shown.
 * @param {string} scope @param {string} stream @param {boolean} live @returns {Map<string, Rate>}
 */
export function useRates(scope, stream, live) {
  const path = under`scopes/${scope}/streams/${stream}`;
  const first = useResource(live ? `${path}/rates` : null, {of: [`stream:${scope}/${stream}`], when: isStructural});
  const [pushed, setPushed] = useState(/** @type {any[] | null} */ (null));
  useEffect(() => {
    if (!live) return undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let silence;
    const end = onRates(`${scope}/${stream}`, ({segments}) => {
      setPushed(segments);
      clearTimeout(silence);
      silence = setTimeout(() => setPushed([]), SILENT_MS);
    });
    return () => {
      clearTimeout(silence);
      end();
      setPushed(null);
    };
  }, [scope, stream, live]);
  return useMemo(() => {
    const found = new Map();
    for (const one of first.data?.segments ?? [])
      found.set(String(one.id), facts(pushed ? {store: one.store, length: one.length} : one));
    for (const one of pushed ?? []) found.set(String(one.id), {store: found.get(String(one.id))?.store, ...facts(one)});
    return found;
  }, [first.data, pushed]);
}

/** @param {Partial<RateModel>} one */
function facts({bytesPerS, eventsPerS, length, store}) {
  return {
    bytesPerS: bytesPerS ?? -1,
    eventsPerS: eventsPerS ?? -1,
    length: length === undefined ? -1 : Number(length),
    ...(store ? {store} : {}),
  };
}

/**
 * The store that has each segment's container now.
 * @param {string} scope @param {string} stream
 * @returns {{storeOf: (number: number) => string | undefined, containerOf: (number: number) => number | undefined,
 *   stores: string[]}}
 */
export function useStores(scope, stream) {
  const containers = useResource('containers', {of: ['cluster'], query: {limit: 1000}});
  const about = useResource('about');
  const count = about.data?.containers;
  return useMemo(() => {
    const stores = new Map((containers.data?.items ?? []).map((one) => [one.container, one.store ?? '']));
    /** @type {Map<number, number>} */
    const known = new Map();
    const container = (/** @type {number} */ number) => {
      if (!count) return undefined;
      const found = known.get(number) ?? containerOf(scope, stream, number, count);
      known.set(number, found);
      return found;
    };
    return {
      containerOf: container,
      storeOf: (number) => stores.get(container(number) ?? -1) || undefined,
      stores: [...new Set(stores.values())].filter(Boolean),
    };
  }, [containers.data, count, scope, stream]);
}

/**
 * Bytes of segments now and at times, for cuts: back from what a segment has, or had when it was sealed, through its
 * past rates, as far as these are recorded without a gap.
 * @param {Model | null} model @param {Map<string, Rate>} rates @param {History | null} history @returns {Lengths}
 */
export function lengthsOf(model, rates, history) {
  const length = new Map([...rates].filter(([, rate]) => rate.length >= 0).map(([id, rate]) => [id, rate.length]));
  const samples = new Map();
  if (model && history) {
    for (const [id, perS] of history.segments) {
      const place = model.index.get(id);
      if (place === undefined) continue;
      const total = model.known.end[place] < Infinity ? model.known.bytes[place] : (length.get(id) ?? -1);
      if (total >= 0) samples.set(id, sampled(perS, history, Math.min(model.known.end[place], model.now), total));
    }
  }
  return {length, samples};
}

/**
 * @param {number[]} perS @param {{from: number, bucketMs: number}} history @param {number} end @param {number} total
 */
function sampled(perS, {from, bucketMs}, end, total) {
  const at = [end];
  const bytes = [total];
  for (
    let bucket = Math.min(perS.length - 1, Math.floor((end - from) / bucketMs));
    bucket >= 0 && perS[bucket] >= 0;
    bucket--
  ) {
    const begins = from + bucket * bucketMs;
    const left = bytes[0] - (perS[bucket] * (at[0] - begins)) / 1000;
    if (left < 0) break;
    at.unshift(begins);
    bytes.unshift(left);
  }
  return {at, bytes};
}

/**
 * The latest watermark, null without one. Writers give its times, and a client that has none to give commits with the
 * least number there is: that is no time. @param {StreamDescription} description
 */
export function watermarkOf(description) {
  const found = description?.watermark;
  return found && Number.isSafeInteger(found.lower) && Number.isSafeInteger(found.upper) ? found : null;
}

/**
 * What the overlays show. `description` is the stream's; `journal` what the journal has, if it was asked for.
 * @param {object} of
 * @param {StreamDescription} of.description @param {TransactionModel[]} of.open transactions that are open
 * @param {EventModel[] | null} of.journal newest first @param {boolean} of.isWhole whether it is read to its beginning
 * @param {string} of.cut as it was pasted @param {Lengths} of.lengths
 * @param {History | null} of.history @returns {Extras}
 */
export function extrasOf({description, open, journal, isWhole, cut, lengths, history}) {
  const recorded = journal?.filter((one) => one.type === 'DecisionRecorded').map((one) => one.value);
  const decisions = /** @type {DecisionModel[]} */ (recorded ?? description?.decisions ?? []);
  return {
    ...NO_EXTRAS,
    history,
    lengths,
    pasted: pastedCut(cut),
    held: heldEpochs(open),
    watermark: watermarkOf(description),
    decisions: decisions.filter((one) => one.kind === 'scale' && /split|merge/.test(one.code)),
    decidedFrom: journal ? (isWhole ? 0 : (journal.at(-1)?.at ?? Infinity)) : Infinity,
    config: (journal ?? []).flatMap((one) => (one.value.config ? [{at: one.at, text: configChange(one)}] : [])),
    truncations: (journal ?? [])
      .filter((one) => one.type === 'StreamTruncationStarted')
      .map((one) => ({
        at: one.at,
        cut: cutOf(one.value.cut),
        text: `Truncated${one.principal ? ` by ${one.principal}` : ''}`,
      })),
  };
}

/** @param {string} text */
function pastedCut(text) {
  try {
    return text ? cutIn(text) : null;
  } catch {
    // What is wrong with it is said where it is pasted.
    return null;
  }
}

/** The epochs that open transactions were begun in: the high 32 bits of their ids. @param {TransactionModel[]} open */
function heldEpochs(open) {
  /** @type {Map<number, {epoch: number, count: number, since: number}>} */
  const held = new Map();
  for (const {id, openedAt = 0} of open) {
    const epoch = parseInt(id.slice(0, 8), 16);
    const one = held.get(epoch) ?? {epoch, count: 0, since: openedAt};
    held.set(epoch, {epoch, count: one.count + 1, since: Math.min(one.since, openedAt)});
  }
  return [...held.values()];
}

/**
 * What the journal has of a stream, once `wanted`: the newest first. `more` reads on where a call's bound was reached.
 * @param {string} scope @param {string} stream @param {boolean} wanted
 * @returns {{items: any[] | null, state: string, more: (() => void) | null}}
 */
export function useJournal(scope, stream, wanted) {
  const [found, setFound] = useState(
    /** @type {{items: any[], after?: string, keptFrom?: number, complete: boolean, problem?: string} | null} */ (null),
  );
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (!wanted) return undefined;
    const call = new AbortController();
    const query = {types: JOURNAL_TYPES, limit: JOURNAL_LIMIT, after: turn > 0 ? found?.after : undefined};
    api.get(`${under`scopes/${scope}/streams/${stream}`}/history`, {query, signal: call.signal}).then(
      ({items, next, keptFrom, complete}) =>
        setFound((before) => ({
          items: [
            ...(turn > 0 ? (before?.items ?? []) : []),
            ...items.filter((/** @type {EventModel} */ one) => !one.void),
          ],
          after: next,
          keptFrom: before?.keptFrom ?? keptFrom,
          complete,
        })),
      (error) => {
        if (call.signal.aborted) return;
        if (!(error instanceof Problem)) throw error;
        setFound((before) => ({items: before?.items ?? [], complete: true, problem: error.detail}));
      },
    );
    return () => call.abort();
  }, [scope, stream, wanted, turn]);
  if (!wanted) return {items: null, state: '', more: null};
  if (!found) return {items: null, state: 'reads the journal…', more: null};
  if (found.problem) return {items: found.items, state: `the journal cannot be read: ${found.problem}`, more: null};
  return {
    items: found.items,
    state: found.after || found.keptFrom ? 'the journal is not read to its beginning' : '',
    more: found.after ? () => setTurn(turn + 1) : null,
  };
}
