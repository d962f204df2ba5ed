import assert from 'node:assert/strict';
import {test} from 'node:test';
import {UNLIMITED} from 'page/core/format.js';
import {configOf, draftOf, problemsOf} from 'page/pages/stream/config-draft.js';

/** @type {any} */
const CONFIG = {
  scaling: {type: 'events', targetRate: 100, scaleFactor: 2, minSegments: 1},
  retention: {type: 'time', min: 9007199254740993n, max: UNLIMITED},
  tags: ['eu', 'orders'],
  rolloverSizeBytes: 0,
  timestampAggregationTimeout: 5000,
};

test('a configuration that is edited and not changed is the same to its last digit', () => {
  assert.deepEqual(configOf(draftOf(CONFIG)), CONFIG);
});

test('a fixed number of segments has neither a target nor a factor, and no retention is none', () => {
  const config = configOf({...draftOf(CONFIG), scaling: 'fixed', minSegments: '4', retention: 'none', tags: ' a \n\n'});
  assert.deepEqual(config.scaling, {type: 'fixed', targetRate: 0, scaleFactor: 0, minSegments: 4});
  assert.equal('retention' in config, false);
  assert.deepEqual(config.tags, ['a']);
});

test('each field that is wrong says what it has to be', () => {
  const draft = draftOf(CONFIG);
  assert.deepEqual(problemsOf(draft), {});
  const wrong = problemsOf({...draft, minSegments: '0', scaleFactor: '1', targetRate: 'ten', timeout: '-1'});
  assert.deepEqual(wrong, {
    minSegments: '1 to 2147483647',
    scaleFactor: '2 to 2147483647',
    targetRate: 'a whole number',
    timeout: 'a whole number',
  });
  const less = problemsOf({...draft, unlimited: false, min: '10', max: '9'});
  assert.deepEqual(less, {max: 'not less than what is kept in any case'});
});
