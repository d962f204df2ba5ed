import assert from 'node:assert/strict';
import {test} from 'node:test';
import {moment, now, setServerTime} from 'page/core/time.js';

test('moments are read as the command line reads them', () => {
  assert.equal(moment('2026-01-31T12:00:00Z'), Date.UTC(2026, 0, 31, 12));
  assert.equal(moment('2026-01-31T12:00:00'), Date.UTC(2026, 0, 31, 12));
  assert.equal(moment('2026-01-31T12:00:00+01:00'), Date.UTC(2026, 0, 31, 11));
  assert.equal(moment('2026-01-31'), Date.UTC(2026, 0, 31));
  assert.equal(moment('1769860800000'), 1769860800000);
  for (const none of ['yesterday', '10m', '-10x', '2026']) assert.ok(Number.isNaN(moment(none)), none);
});

test('spans are counted back from the time of the gateway', (t) => {
  t.mock.timers.enable({apis: ['Date'], now: 1_000_000_000_000});
  setServerTime(1_000_000_005_000);
  assert.equal(now(), 1_000_000_005_000);
  assert.deepEqual(
    [moment('-1.5s'), moment('-2h'), moment('now'), moment('')],
    [-1500, -7_200_000, 0, 0].map((ms) => now() + ms),
  );
});
