import assert from 'node:assert/strict';
import {beforeEach, test} from 'node:test';
import {href, navigate, pageKey, parse, place, routes, setQuery} from 'page/core/router.js';
import {routes as all} from 'page/core/routes.js';

beforeEach(() => {
  routes.value = all;
  navigate('#/');
});

test('an address names its page, the names in it, its filters and its moment', () => {
  const {route, params, query, at} = parse('#/streams/demo/a%2Fb%3F?tab=why&at=-10m&q=50%25');
  assert.equal(route?.path, '/streams/:scope/:stream');
  assert.deepEqual(params, {scope: 'demo', stream: 'a/b?'});
  assert.deepEqual(query, {tab: 'why', q: '50%'});
  assert.equal(at, '-10m');
});

test('an address that names no page has no route', () => {
  assert.equal(parse('#/streams/demo/orders/more').route, null);
  assert.equal(parse('#/nowhere').route, null);
});

test('a name that is no right escape stands for itself', () => {
  assert.deepEqual(parse('#/scopes/%zz').params, {scope: '%zz'});
});

test('each page is found by the address that its names give', () => {
  for (const {path} of all) {
    const parts = path.split('/').filter(Boolean);
    const link = href(parts.map((part) => (part.startsWith(':') ? 'a b/%' : part)));
    const {route, params} = parse(link);
    assert.equal(route?.path, path);
    assert.deepEqual(
      Object.values(params),
      parts.filter((part) => part.startsWith(':')).map(() => 'a b/%'),
    );
  }
});

test('a link keeps the moment that is shown, unless it says another', () => {
  navigate('#/streams?at=2026-01-31T12%3A00%3A00Z');
  assert.equal(href('/cluster'), '#/cluster?at=2026-01-31T12%3A00%3A00Z');
  assert.equal(href('/cluster', {at: ''}), '#/cluster');
  assert.equal(href(['streams', 'a b', 'c'], {at: null, tab: '', n: 3n}), '#/streams/a%20b/c?n=3');
});

test('a filter that changes leaves the page and its other filters', () => {
  navigate('#/streams?q=a&state=odd');
  setQuery({state: '', sort: '-epoch'});
  assert.deepEqual(place.value.query, {q: 'a', sort: '-epoch'});
  assert.equal(pageKey.value, '/streams');
});
