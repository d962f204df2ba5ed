import assert from 'node:assert/strict';
import {test} from 'node:test';
import {LIGHT, NO_FACTS, coloring} from 'page/pictures/topology/colors.js';
import {placed} from 'page/pictures/topology/draw.js';
import {rectAtPixel} from 'page/pictures/topology/hit.js';
import {modelOf} from 'page/pictures/topology/model.js';
import {NO_EXTRAS, marksOf} from 'page/pictures/topology/overlays.js';
import {stateText} from 'page/pictures/topology/words.js';
import {whole} from 'page/pictures/topology/view.js';
import {Grown, HOUR, NOW} from './grown.js';

const KIB = 1024;
const MINUTE = 60_000;

/** Two segments for two hours, of which the first was split an hour ago. */
function split() {
  const grown = new Grown(2, 2);
  grown.at = NOW - HOUR;
  grown.scale(
    [grown.byKey()[0]],
    [
      [0, 0.25],
      [0.25, 0.5],
    ],
    3600 * 8 * KIB,
  );
  return modelOf(grown.answer());
}

test('a rate of the past is what samples say, else the mean of the rest', () => {
  const model = split();
  const [first] = model.id;
  const of = (/** @type {Partial<typeof NO_FACTS>} */ facts) => {
    const found = coloring(model, 'flow', {...NO_FACTS, ...facts}, LIGHT);
    return {...found, labels: [...found.of].map((one) => found.classes[one].label)};
  };
  const unmeasured = of({});
  assert.equal(unmeasured.labels[0], '4 KiB/s and more', 'the mean of its life');
  assert.deepEqual(new Set(unmeasured.labels.slice(1)), new Set(['not recorded']), 'no length is known yet');
  const rates = new Map(model.id.slice(1).map((id) => [id, {bytesPerS: 0, eventsPerS: 0, length: 3600 * KIB}]));
  const measured = of({rates});
  assert.deepEqual(measured.labels.slice(1), ['512 B/s to 2 KiB/s', '512 B/s to 2 KiB/s', '512 B/s to 2 KiB/s']);
  assert.deepEqual([...(measured.edge ?? [])], [-1, 0, 0, 0], 'the rate of now is at the edge only');
  // All of it was written in the first minute: nothing is left for the others.
  const segments = new Map([[first, [480 * KIB]]]);
  const sampled = of({rates, history: {from: NOW - 2 * HOUR, bucketMs: MINUTE, segments}});
  assert.equal(sampled.labels[0], 'under 8 KiB/s');
  assert.equal(sampled.classes[sampled.classOfRate?.(480 * KIB) ?? -1].label, '256 KiB/s and more');
});

test('a scale says in a word why it was, as far as that is known', () => {
  const model = split();
  const view = whole(model, 'time', {left: 0, top: 40, width: 900, height: 300});
  const words = (/** @type {Partial<typeof NO_EXTRAS>} */ extras) =>
    marksOf(model, view, {...NO_EXTRAS, ...extras}, new Set(['scales'])).flags.map(({word}) => word);
  const decision = {at: NOW - HOUR - 1000, code: 'split', reason: 'split 0.#epoch.0 into 2: above the target'};
  assert.deepEqual(words({decisions: [decision]}), ['hot']);
  assert.deepEqual(words({decisions: [{...decision, code: 'merge'}]}), ['cold']);
  assert.deepEqual(words({decidedFrom: 0}), ['manual'], 'nothing was decided');
  assert.deepEqual(words({decidedFrom: NOW - HOUR}), [''], 'what was decided then is not read yet');
});

test('what a restore found behind its back-up is wide enough to be seen and pointed at', () => {
  const grown = new Grown(1, 2);
  grown.at = NOW - HOUR;
  grown.restore(2);
  const model = modelOf(grown.answer());
  assert.deepEqual([...model.found], [0, 2, 1, 0]);
  assert.deepEqual(model.epochs.cause, ['created', 'restored', 'restored', 'restored']);
  const view = whole(model, 'time', {left: 0, top: 0, width: 900, height: 300});
  const {box, rect} = placed(model, view, 1);
  assert.deepEqual([...rect], [0, 1, 2, 3]);
  const [, older, newer, next] = [0, 1, 2, 3].map((at) => ({left: box[at * 4], right: box[at * 4] + box[at * 4 + 2]}));
  assert.ok(older.right - older.left > 4 && older.right <= newer.left && newer.right <= next.left);
  for (const one of [1, 2]) assert.equal(rectAtPixel(model, view, box[one * 4] + 3, 150), one);
  assert.match(stateText(model, 1), /found by the restore/);
  assert.equal(coloring(model, 'flow', NO_FACTS, LIGHT).classes.at(-1)?.count, 3, 'how long it was there is not known');
});
