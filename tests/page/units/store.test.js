import assert from 'node:assert/strict';
import {afterEach, beforeEach, mock, test} from 'node:test';
import {paused} from 'page/core/live.js';
import {resourceOf} from 'page/core/store.js';
import {feeds} from './feed.js';

/** What the gateway was asked for. @type {string[]} */
let asked = [];
/** What it answers. @type {() => Response} */
let answer = () => new Response('{"n": 1}', {headers: {ETag: '"1"'}});

/** Until what was answered has been taken in. */
const settled = () => new Promise((done) => setImmediate(done));

beforeEach(() => {
  asked = [];
  answer = () => new Response('{"n": 1}', {headers: {ETag: '"1"'}});
  mock.timers.enable({apis: ['setTimeout', 'setInterval', 'Date'], now: 1_780_000_000_000});
  mock.method(AbortSignal, 'timeout', () => new AbortController().signal);
  globalThis.fetch = async (url) => {
    asked.push(new URL(String(url)).pathname);
    return answer();
  };
});
afterEach(() => {
  mock.timers.reset();
  mock.restoreAll();
  paused.value = false;
});

test('what several show is fetched once, and kept for who comes back', async () => {
  const shown = resourceOf('members');
  assert.equal(resourceOf('members'), shown);
  assert.notEqual(resourceOf('members', {query: {limit: 1}}), shown);
  shown.begin();
  shown.begin();
  await settled();
  assert.deepEqual(asked, ['/sluice/v1/members']);
  assert.deepEqual(shown.state.value.data, {n: 1});
  assert.equal(shown.state.value.etag, '"1"');
  shown.end();
  shown.end();
  assert.deepEqual(shown.state.value.data, {n: 1});
});

test('what changes is fetched anew at once, and then at most each half a second', async () => {
  const shown = resourceOf('overview', {of: ['cluster'], when: ({types}) => types.includes('WorkflowStarted')});
  shown.begin();
  await settled();
  mock.timers.tick(1000);
  const change = (/** @type {string} */ type) => {
    const items = [{aggregate: 'cluster', version: 1, types: [type], at: 1}];
    feeds.at(-1)?.push('changed', {items, now: Date.now(), position: '1'});
  };
  change('ContainersAssigned');
  await settled();
  assert.equal(asked.length, 1, 'a change that does not count');
  for (let turn = 0; turn < 3; turn++) {
    change('WorkflowStarted');
    await settled();
  }
  assert.equal(asked.length, 2);
  mock.timers.tick(499);
  await settled();
  assert.equal(asked.length, 2);
  mock.timers.tick(1);
  await settled();
  assert.equal(asked.length, 3);
  shown.end();
});

test('a page that is paused fetches what it has not, and nothing anew until it goes on', async () => {
  paused.value = true;
  const shown = resourceOf('partitions', {every: 5000});
  shown.begin();
  await settled();
  assert.equal(asked.length, 1);
  mock.timers.tick(20_000);
  await settled();
  assert.equal(asked.length, 1);
  paused.value = false;
  await settled();
  assert.equal(asked.length, 2);
  shown.end();
});

test('a gateway that is busy is asked again after the time it names, and what it said before stays', async () => {
  const shown = resourceOf('containers', {every: 60_000});
  shown.begin();
  await settled();
  answer = () => new Response('{"detail": "too much to do"}', {status: 503, headers: {'Retry-After': '3'}});
  mock.timers.tick(60_000);
  await settled();
  const {data, problem} = shown.state.value;
  assert.deepEqual([data, problem?.kind, problem?.detail], [{n: 1}, 'busy', 'too much to do']);
  answer = () => new Response('{"n": 2}');
  mock.timers.tick(2999);
  await settled();
  assert.equal(asked.length, 2);
  mock.timers.tick(1);
  await settled();
  assert.deepEqual([shown.state.value.data, shown.state.value.problem], [{n: 2}, null]);
  shown.end();
});

test('numbers that a double does not hold come and go with all their digits', async () => {
  answer = () => new Response('{"max": 9223372036854775807, "half": 0.1234567890123456}');
  const shown = resourceOf('scopes/a/streams/b');
  shown.begin();
  await settled();
  assert.deepEqual(shown.state.value.data, {max: 9223372036854775807n, half: 0.1234567890123456});
  shown.end();
});
