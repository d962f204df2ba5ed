import assert from 'node:assert/strict';
import {beforeEach, test} from 'node:test';
import {chosen, StreamList} from 'page/pages/stream-list.js';
import './feed.js';

/** @typedef {{url: URL, answer: (items: any[]) => Promise<void>}} Call */
/** @type {Call[]} */
const calls = [];
const settled = () => new Promise((done) => setImmediate(done));

beforeEach(() => {
  calls.length = 0;
  globalThis.fetch = (url) =>
    new Promise((done) => {
      const answer = (/** @type {any[]} */ items) => {
        done(new Response(JSON.stringify({items})));
        return settled();
      };
      calls.push({url: new URL(String(url)), answer: /** @type {Call['answer']} */ (answer)});
    });
});

const stream = (/** @type {object} */ more) => ({scope: 'a', name: 'b', state: 'ACTIVE', tags: [], ...more});
const change = (/** @type {string} */ aggregate, types = ['StreamUpdated']) => [{aggregate, types, version: 2, at: 1}];

/** A list that has loaded one stream. @param {object} [query] */
async function loaded(query = {}) {
  const list = new StreamList(/** @type {any} */ (query));
  const loading = list.load();
  await calls.shift()?.answer([stream({})]);
  await loading;
  return list;
}

test('what changes while a list is fetched anew is not undone', async () => {
  const list = await loaded();
  const again = list.load();
  const read = calls.shift();
  list.take(change('stream:a/b'));
  list.flush();
  await calls.shift()?.answer([stream({state: 'SEALED'})]);
  await read?.answer([stream({})]);
  await again;
  list.flush();
  await calls.shift()?.answer([stream({state: 'SEALED'})]);
  assert.equal(list.rows.get('a/b')?.state, 'SEALED');
});

test('a list behind which too much changed is fetched anew', async () => {
  const list = await loaded();
  list.take(Array.from({length: 5000}, (_, n) => change(`stream:a/${n}`)[0]));
  list.flush();
  clearTimeout(list.reloads);
  list.reload();
  assert.deepEqual(
    calls.map(({url}) => url.search),
    ['?limit=1000'],
  );
});

test('a commit that fails is found in a list that does not show its stream', async () => {
  const list = await loaded();
  const found = [];
  for (const type of ['CommitBatchStarted', 'WorkflowStepFailed', 'CommitBatchEnded', 'CommitBatchStarted']) {
    list.take(change('commits:a/b', [type]));
    list.flush();
    const call = calls.shift();
    await call?.answer([stream(type === 'WorkflowStepFailed' ? {workflow: 'commit', failing: true} : {})]);
    found.push(`${type} ${call !== undefined} ${list.rows.get('a/b')?.failing ?? false}`);
  }
  const began = 'CommitBatchStarted false false';
  assert.deepEqual(found, [began, 'WorkflowStepFailed true true', 'CommitBatchEnded true false', began]);
});

test('what transactions changed out of sight is fetched once it is seen', async () => {
  const list = await loaded();
  list.take(change('txn:a/b', ['TransactionOpened']));
  list.flush();
  assert.equal(calls.length, 0);
  list.visible = new Set(['a/b']);
  list.countsAt = 0;
  list.flush();
  assert.equal(calls.length, 1);
});

for (const [query, left] of /** @type {[object, string[]][]} */ ([
  [{scope: 'a'}, ['a/b gone']],
  [{tag: 't'}, []],
  [{q: 't'}, []],
])) {
  const shown = left.length ? 'gone' : 'not shown as gone';
  test(`a stream that is not found any more by ${Object.keys(query)} is ${shown}`, async () => {
    const list = await loaded(query);
    list.take(change('stream:a/b'));
    list.flush();
    await calls.shift()?.answer([]);
    assert.deepEqual(
      [...list.rows.values()].map((row) => `${row.key}${row.gone ? ' gone' : ''}`),
      left,
    );
  });
}

test('rows are chosen by words, state, scope and tag, and put in order', () => {
  const row = (/** @type {string} */ name, /** @type {object} */ more = {}) =>
    /** @type {any} */ ({key: `a/${name}`, scope: 'a', name, state: 'ACTIVE', tags: [], epoch: 0, ...more});
  const rows = [
    row('orders', {epoch: 3, tags: ['eu']}),
    row('bills', {failing: true, epoch: 3}),
    row('more-orders', {epoch: 9}),
  ];
  const names = (/** @type {object} */ wanted) => chosen(rows, wanted).map(({name}) => name);
  assert.deepEqual(names({}), ['bills', 'more-orders', 'orders']);
  assert.deepEqual(names({q: 'ORD a/'}), ['more-orders', 'orders']);
  assert.deepEqual(names({q: 'eu'}), ['orders']);
  assert.deepEqual(names({state: 'odd'}), ['bills']);
  assert.deepEqual(names({tag: 'eu'}), ['orders']);
  assert.deepEqual(names({sort: '-epoch'}), ['more-orders', 'bills', 'orders']);
  assert.deepEqual(names({scope: 'b'}), []);
  const byLength = chosen(rows, {sort: '-rate'}, ({name}) => name.length);
  assert.deepEqual(
    byLength.map(({name}) => name),
    ['more-orders', 'orders', 'bills'],
  );
});
