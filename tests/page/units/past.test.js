import assert from 'node:assert/strict';
import {test} from 'node:test';
import {joinHoldings, movesOf, withGaps} from 'page/pages/holdings.js';
import {ranges} from 'page/pages/partitions.js';
import {ticks} from 'page/pictures/axis.js';
import {timelineRows} from 'page/pictures/timeline.js';

test('holdings of several answers become bands without a seam, and with their gaps', () => {
  const first = [
    {container: 1, store: 'a:1', from: 0, to: 10},
    {container: 1, store: 'b:1', from: 14},
  ];
  const second = [
    {container: 1, store: 'b:1', from: 20, to: 30},
    {container: 1, store: 'a:1', from: 30},
  ];
  const bands = withGaps(joinHoldings(first, second), 0, 40).map(({store, from, to}) => [store, from, to]);
  const none = undefined;
  assert.deepEqual(
    bands.join(' '),
    [
      ['a:1', 0, 10],
      [none, 10, 14],
      ['b:1', 14, 30],
      ['a:1', 30, none],
    ].join(' '),
  );
});

test('partitions that follow one another are written as a range', () => {
  assert.equal(ranges([7, 0, 2, 1, 3, 9, 10]), '0–3, 7, 9, 10');
});

/** @param {number} at @param {string} what @param {string} topic @param {object} [more] */
function step(at, what, topic, more) {
  const where = {topic: `sluice.${topic}`, partition: 3, offset: at, by: 'a/1', sinceStart: at, took: 0};
  return {at, what, request: 'r', types: [what], says: what, ...where, ...more};
}

test('a timeline has bars between the records of a request, and folds what it sent', () => {
  const steps = [
    step(0, 'requested', 'requests.streams'),
    step(5, 'void: decided on an older state', 'journal', {entry: 0, outcome: 'stale'}),
    step(12, 'decided', 'journal', {entry: 0, outcome: 'counted'}),
    step(20, 'follow-up', 'requests.streams', {request: 'scale-stream-r-1-1'}),
    step(80, 'answered', 'journal', {entry: 0, outcome: 'counted'}),
  ];
  const answer = {status: 'SUCCESS', at: 80, after: 80};
  const trace = {request: 'r', steps, running: [], answer, searchedTo: 0, complete: true};
  const folded = timelineRows(trace, {now: 100, unfolded: false});
  const items = /** @type {any[]} */ (folded.rows.flatMap((row) => row.items));
  const bars = items.filter((one) => one.to).map(({look, at, to}) => `${look} ${at} ${to}`);
  assert.deepEqual(bars, ['waiting 0 12', 'step 12 80']);
  assert.deepEqual(
    items.filter((one) => one.look.includes('hollow')).map((one) => one.at),
    [5],
  );
  assert.equal(folded.rows.at(-1)?.label, '1 follow-up');
  const unfolded = timelineRows(trace, {now: 100, unfolded: true});
  assert.equal(unfolded.folded, 0);
  assert.ok(!unfolded.rows.some((row) => row.label.includes('follow-up')));
});

test('ticks stand at round times of the clock that is chosen', () => {
  const since = 1_763_899_083_250;
  const {step: apart, times} = ticks(since, since + 3_600_000, 8, 'utc');
  assert.equal(apart, 600_000);
  assert.ok(times.length >= 6 && times.every((at) => at % apart === 0 && at >= since && at <= since + 3_600_000));
  const begun = ticks(since, since + 320, 6, 'since', since);
  assert.deepEqual(
    begun.times,
    [0, 100, 200, 300].map((ms) => since + ms),
  );
});

test('ticks of days stand at midnight behind a change of the clock', (t) => {
  const zone = process.env.TZ;
  process.env.TZ = 'Europe/Berlin';
  t.after(() => Object.assign(process.env, {TZ: zone ?? 'UTC'}));
  const october24 = 1_792_792_800_000;
  const {times} = ticks(october24, october24 + 4 * 86_400_000, 5, 'local');
  assert.deepEqual(
    times.map((at) => new Date(at).getHours()),
    [0, 0, 0, 0],
  );
});

test('what went from one store to another together is one move, the latest first', () => {
  const held = [
    {container: 0, store: 'a', from: 0, to: 10},
    {container: 0, store: 'b', from: 15},
    {container: 1, store: 'a', from: 0, to: 12},
    {container: 1, store: 'b', from: 15, to: 30},
    {container: 1, store: 'b', from: 31, to: 40},
    {container: 1, store: 'a', from: 40},
    {container: 2, store: 'a', from: 0},
  ];
  assert.deepEqual(movesOf(held), [
    {at: 40, before: 'b', after: 'a', containers: [1], gapMs: 0},
    {at: 15, before: 'a', after: 'b', containers: [0, 1], gapMs: 5},
  ]);
});
