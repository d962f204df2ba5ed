import assert from 'node:assert/strict';
import {test} from 'node:test';
import {
  bytes,
  cliDuration,
  count,
  duration,
  number,
  perS,
  segment,
  segmentId,
  time,
  UNLIMITED,
} from 'page/core/format.js';
import {setUtc} from 'page/core/time.js';

test('numbers beyond 2^53 keep every digit, and what is not known is a dash', () => {
  assert.equal(number(9007199254740993n), '9,007,199,254,740,993');
  assert.equal(number(1234567), '1,234,567');
  assert.equal(number(0.123456), '0.123');
  assert.equal(number(undefined), '–');
});

test('one of a thing has no plural', () => {
  assert.deepEqual(
    [count(1, 'segment'), count(2, 'segment'), count(0, 'entry', 'entries')],
    ['1 segment', '2 segments', '0 entries'],
  );
});

test('bytes have three digits at most, and the limit of all is called unlimited', () => {
  const said = [0, 1023, 1024, 1536, 10.26 * 1024, 5 * 2 ** 40].map(bytes);
  assert.deepEqual(said, ['0 B', '1023 B', '1 KiB', '1.5 KiB', '10.3 KiB', '5 TiB']);
  assert.equal(bytes(UNLIMITED), 'unlimited');
  assert.equal(bytes(UNLIMITED - 1n), '8 EiB');
});

test('rates below zero are not known', () => {
  assert.deepEqual([perS(-1), perS(999), perS(1200), perS(2_500_000)], ['–', '999/s', '1.2 k/s', '2.5 M/s']);
});

test('spans of time have two units at most', () => {
  const said = [350, 1200, 59_600, 240_000, 11_400_000, 187_200_000, 10 * 86_400_000, -1500].map(duration);
  assert.deepEqual(said, ['350 ms', '1.2 s', '60 s', '4 min', '3 h 10 min', '2 d 4 h', '10 d', '−1.5 s']);
});

test('spans for the command line are exact', () => {
  assert.deepEqual([90_000, 7_200_000, 86_400_000, 1500].map(cliDuration), ['90s', '2h', '1d', '1500ms']);
});

test('a moment of another day names it, of another year that, too', (t) => {
  t.mock.timers.enable({apis: ['Date'], now: Date.UTC(2026, 10, 28, 12)});
  setUtc(true);
  assert.equal(time(Date.UTC(2026, 10, 28, 9, 5, 7)), '09:05:07');
  assert.equal(time(Date.UTC(2026, 10, 3, 9, 5, 7)), '3 Nov, 09:05:07');
  assert.equal(time(Date.UTC(2025, 10, 3, 9, 5, 7)), '3 Nov 2025, 09:05:07');
  assert.equal(time(null), '–');
});

test('the name of a segment and its id lead to each other', () => {
  const id = 4n + (3n << 32n);
  assert.equal(segment(id), '4.#epoch.3');
  assert.equal(segmentId('4.#epoch.3'), Number(id));
  assert.equal(segmentId('4.#epoch.2147483647'), 4n + (2147483647n << 32n));
  assert.equal(segmentId('four'), null);
});
