import assert from 'node:assert/strict';
import {test} from 'node:test';
import {liveSource, named} from 'page/core/live-source.js';
import {feeds} from './feed.js';
/** @import {Feed} from './feed.js' */

test('the gateway is asked for what it takes', () => {
  const many = Array.from({length: 50}, (_, n) => `group:a/${n}`);
  const rates = Array.from({length: 7}, (_, n) => `rates:a/${n}`);
  const long = Array.from({length: 20}, (_, n) => `stream:a/${n}${'x'.repeat(200)}`);
  const requested = (/** @type {string[]} */ watched) => [...named(new Set(watched))];
  assert.deepEqual(requested(['cluster', 'stream:a/b', 'stream:a/b c']), ['cluster', 'stream:a/b']);
  assert.deepEqual(requested(rates), rates.slice(2));
  assert.deepEqual(requested([...many, 'rates:a/b']), ['*', 'rates:a/b']);
  assert.deepEqual(requested(long), ['*']);
  assert.deepEqual(requested(['*', 'stream:a/b', 'rates:a/b']), ['*', 'rates:a/b']);
});

test('what joins a feed misses nothing until it is opened anew', (t) => {
  t.mock.timers.enable({apis: ['setTimeout']});
  const source = liveSource('http://127.0.0.1/', () => {});
  source.watch(new Set(['stream:a/b']));
  t.mock.timers.tick(100);
  const [first] = feeds;
  first.push('changed', {items: [], position: '1.1'});
  source.watch(new Set(['stream:a/b', 'stream:a/joins']));
  first.push('changed', {items: [], position: '2.2'});
  t.mock.timers.tick(100);
  assert.equal(feeds.at(-1)?.url.searchParams.get('since'), '1.1', 'no feed had what joined, behind this position');
  assert.ok(first.isClosed);
  source.close();
});

test('a feed that is lost is opened again from its position, later each time', (t) => {
  t.mock.timers.enable({apis: ['setTimeout']});
  t.mock.method(Math, 'random', () => 1);
  /** @type {string[]} */
  const emitted = [];
  const source = liveSource('http://127.0.0.1/', ({type}) => emitted.push(type));
  source.watch(new Set(['cluster']));
  t.mock.timers.tick(100);
  feeds.at(-1)?.push('hello', {position: '3.3'});
  const opened = feeds.length;
  const lose = () => /** @type {Feed} */ (feeds.at(-1)).onerror?.();
  lose();
  t.mock.timers.tick(500);
  assert.equal(feeds.length, opened + 1);
  assert.equal(feeds.at(-1)?.url.searchParams.get('since'), '3.3');
  lose();
  t.mock.timers.tick(999);
  assert.equal(feeds.length, opened + 1);
  t.mock.timers.tick(1);
  assert.equal(feeds.length, opened + 2);
  assert.deepEqual(emitted, ['hello', 'lost', 'lost']);
  source.close();
});
