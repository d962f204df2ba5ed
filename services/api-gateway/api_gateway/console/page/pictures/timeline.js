/**
 * The history of one request: a lane for each topic and key, its records as marks, what lies between them as bars.
 *
 * Bars are what a request spent waiting to be decided, and the steps of the workflow that it began. Records that were
 * void are hollow. What belongs to requests that the workflow sent, follow-ups, lies folded in one lane until it is
 * unfolded.
 */

import {spanText} from './axis.js';
/** @import {RowsModel} from '../parts/types.d.ts' */
/** @import {RequestHistory, StepModel} from 'api' */

const PREFIX = 'sluice.';

/** @param {StepModel} step */
export function isVoid(step) {
  return step.what.startsWith('void');
}

/** @param {StepModel} step */
function laneOf(step) {
  return `${step.topic.replace(PREFIX, '')} · partition ${step.partition}`;
}

/** @param {StepModel} step */
const decides = (step) => step.entry !== undefined && step.entry >= 0 && !isVoid(step);

/**
 * The bars of one request: waiting until it is decided, then each step until the next record of its workflow.
 * @param {StepModel[]} steps of that request, by time
 * @param {number} now epoch ms: where a bar ends that has not ended
 * @param {boolean} running whether its workflow is under way
 * @param {boolean} anyRuns whether any of the history's is: else what has no decision here never had one
 */
function barsOf(steps, now, running, anyRuns) {
  const bars = [];
  const sent = steps.find((step) => step.what === 'requested' || step.what === 'follow-up');
  const entries = steps.filter(decides);
  const decided = entries[0];
  if (sent !== undefined && (decided !== undefined || anyRuns)) {
    const ends = decided?.at ?? now;
    bars.push({
      lane: laneOf(sent),
      at: sent.at,
      to: ends,
      look: decided === undefined ? 'waiting open' : 'waiting',
      says: `${decided === undefined ? 'not decided yet' : 'waiting to be decided'}: ${spanText(ends - sent.at)}`,
    });
  }
  entries.forEach((step, index) => {
    const next = entries[index + 1];
    if (next === undefined && !running) return;
    const ends = next?.at ?? now;
    const does = next === undefined ? 'under way' : `until ${next.types.join(', ')}`;
    const says = `${step.types.join(', ')}, ${does}: ${spanText(ends - step.at)}`;
    const look = next === undefined ? 'step open' : 'step';
    bars.push({lane: laneOf(step), at: step.at, to: ends, look, text: says, says});
  });
  return bars;
}

/**
 * The rows of the picture. Pure.
 * @param {RequestHistory} trace
 * @param {{now: number, unfolded: boolean}} how `now` in epoch ms, for what is still under way
 * @returns {RowsModel & {folded: number}} `folded`: how many follow-up requests lie in one lane
 */
export function timelineRows(trace, {now, unfolded}) {
  const {steps, running} = trace;
  /** @type {Map<string, StepModel[]>} */
  const byRequest = new Map();
  for (const step of steps) byRequest.set(step.request, [...(byRequest.get(step.request) ?? []), step]);
  const last = steps.at(-1)?.at ?? now;
  const end = running.length > 0 ? Math.max(now, last) : last;
  /** @type {Map<string, any[]>} */
  const lanes = new Map();
  const put = (/** @type {string} */ lane, /** @type {any} */ item) => {
    const items = lanes.get(lane) ?? [];
    items.push(item);
    lanes.set(lane, items);
  };
  const followUps = [...byRequest.keys()].filter((id) => id !== trace.request).length;
  const foldedLane = `${followUps} follow-up${followUps === 1 ? '' : 's'}`;
  for (const [id, own] of byRequest) {
    const fold = id !== trace.request && !unfolded;
    for (const bar of barsOf(own, end, running.length > 0 && id === trace.request, running.length > 0)) {
      if (!fold) put(bar.lane, bar);
      else if (bar.look.startsWith('waiting')) put(foldedLane, bar);
    }
    for (const step of own) {
      put(fold ? foldedLane : laneOf(step), {
        at: step.at,
        says: `${step.what}: ${step.says}`,
        look: lookOf(step),
        step,
      });
    }
  }
  const rows = [...lanes].map(([label, items]) => ({label, items: items.sort((one, other) => one.at - other.at)}));
  const from = steps[0]?.at ?? now;
  const answer = trace.answer ?? null;
  const lines = answer === null ? [] : [{at: answer.at, label: `answered after ${spanText(answer.after)}`}];
  return {rows, from, to: Math.max(end, from + 1), lines, folded: unfolded ? 0 : followUps};
}

/** The classes of a record's mark. @param {StepModel} step */
function lookOf(step) {
  const form = step.topic.endsWith('journal') ? 'entry' : 'record';
  if (isVoid(step)) return `${form} hollow`;
  if (step.what === 'dead letter' || step.what === 'not decoded') return `${form} bad`;
  return step.what === 'answered' ? `${form} ok` : form;
}
