import assert from 'node:assert/strict';
import {test} from 'node:test';
import {inParts, uncovered} from 'page/pictures/topology/cover.js';
import {cutIn, stairs} from 'page/pictures/topology/cuts.js';
import {containerOf, keyPosition} from 'page/pictures/topology/key_position.js';
import {active, modelOf} from 'page/pictures/topology/model.js';
import {fromAddress, toAddress, toX, toY, whole, zoomed} from 'page/pictures/topology/view.js';
import {Grown, HOUR, NOW, rolled} from './grown.js';
/** @import {Model} from 'page/pictures/types.d.ts' */

// What the library's `key_position` and `container_of` give, which are tested against those of Java.
test('positions of keys and containers of segments are those of clients', () => {
  const known = {
    '': 0.24117842791623523,
    a: 0.9433912753816884,
    'sensor-17': 0.5469638060216659,
    'kü€y-🐦': 0.26650622969615667,
    '\ud800lone': 0.48269996059615794,
    ['x'.repeat(5000)]: 0.8781666450230792,
  };
  for (const [key, position] of Object.entries(known)) assert.equal(keyPosition(key), position, key.slice(0, 9));
  const numbers = [0, 1, 2, 3, 4, 5, 6, 7, 2147483647];
  const inSo = (/** @type {number} */ many) => numbers.map((number) => containerOf('demo', 'orders', number, many));
  assert.deepEqual(inSo(4), [0, 2, 0, 2, 0, 0, 3, 2, 2]);
  assert.deepEqual(inSo(64), [32, 27, 8, 45, 53, 46, 34, 49, 47]);
});

test('rolling commits are folded into the segments that go on', () => {
  const answer = rolled().answer();
  const folded = modelOf(answer, {fold: true});
  assert.deepEqual([...folded.epochs.epoch], [0, 1, 4]);
  const rects = Array.from({length: folded.count}, (_, n) => [
    folded.low[n],
    folded.high[n],
    folded.first[n],
    folded.last[n],
  ]);
  const upper = rects.findIndex(([low]) => low === 0.5);
  assert.deepEqual([folded.born[upper], folded.end[upper], folded.bytes[upper]], [NOW - 5 * HOUR, Infinity, -1]);
  assert.equal([...folded.known.rect].filter((rect) => rect === -1).length, 3, 'passing duplicates of what was sealed');
  rects.sort((one, other) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2]);
  const goesOn = ['0-0.25 1-2', '0-0.5 0-1', '0-0.5 2-3', '0.25-0.5 1-2', '0.5-1 0-3'];
  assert.deepEqual(
    rects.map(([low, high, first, last]) => `${low}-${high} ${first}-${last}`),
    goesOn,
  );
  checkCover(folded);
  const unfolded = modelOf(answer, {fold: false});
  assert.deepEqual([...unfolded.epochs.epoch], [0, 1, 2, 3, 4, 5, 6]);
  assert.equal(unfolded.count, answer.segments.id.length);
  checkCover(unfolded);
});

/** In each column the rectangles have each key once. @param {Model} model */
function checkCover(model) {
  for (let column = 0; column < model.epochs.count; column++) {
    const rects = Array.from({length: model.count}, (_, n) => n);
    const there = rects.filter((n) => model.first[n] <= column && column < model.last[n]);
    there.sort((one, other) => model.low[one] - model.low[other]);
    const bounds = [0, ...there.map((n) => model.high[n])];
    assert.deepEqual([...there.map((n) => model.low[n]), 1], bounds, `column ${column}`);
  }
}

test('rolls and scales by chance always cover all keys', () => {
  let seed = 23;
  const random = () => {
    seed = (seed * 48271) % 2147483647;
    return seed / 2147483647;
  };
  const chosen = (/** @type {any[]} */ of) => of[Math.floor(random() * of.length)];
  for (let turn = 0; turn < 8; turn++) {
    const grown = new Grown(1 + Math.floor(random() * 4), 10);
    for (let change = 0; change < 25; change++) {
      grown.at += 60_000;
      const own = grown.epochs.filter((one) => one.epoch === one.reference);
      const {epoch} = chosen(own);
      const one = chosen(grown.active);
      const middle = one.low + (one.high - one.low) * random();
      if (random() >= 0.3) {
        grown.scale(
          [one],
          [
            [one.low, middle],
            [middle, one.high],
          ],
        );
      } else if (epoch !== grown.epochs[grown.epochs.length - 1].reference) grown.roll(epoch);
    }
    checkCover(modelOf(grown.answer(), {fold: true}));
  }
});

test('a past moment shows what there was then', () => {
  const at = NOW - 2 * HOUR - 1;
  const model = modelOf(rolled().answer(), {at, head: {0: 5}});
  assert.deepEqual([model.now, model.epochs.count, model.head.get('0')], [at, 2, 5]);
  assert.deepEqual(
    active(model).map((rect) => model.high[rect]),
    [0.25, 0.5, 1],
  );
});

test('a cut is exact at ends and samples, and in proportion elsewhere', () => {
  const grown = new Grown(4, 2);
  const [low] = grown.byKey();
  grown.at = NOW - HOUR;
  grown.scale([low], [[0, 0.25]], 3600);
  const after = grown.active[grown.active.length - 1].id;
  const model = modelOf(grown.answer());
  const begun = NOW - 2 * HOUR;
  const cut = new Map([
    [String(low.id), 900],
    ['1', 0],
    ['2', 500],
    ['3', 80],
  ]);
  const samples = new Map([['2', {at: [begun, begun + HOUR, NOW], bytes: [0, 100, 900]}]]);
  const found = stairs(model, cut, {length: new Map([['3', 80]]), samples}).steps;
  assert.deepEqual(
    found.map(({id, at, exact}) => [id, at, exact]),
    [
      [String(low.id), begun + HOUR / 4, false],
      ['1', begun, true],
      ['2', begun + HOUR * 1.5, true],
      ['3', NOW, true],
    ],
  );
  const ends = new Map([
    [String(after), -1],
    [String(low.id), 3600],
  ]);
  const atEnds = stairs(model, ends, {length: new Map(), samples: new Map()}).steps;
  assert.deepEqual(
    new Set(atEnds.map(({id, at, exact}) => `${id} ${at} ${exact}`)),
    new Set([`${after} ${NOW - HOUR} true`, `${low.id} ${NOW - HOUR} true`]),
  );
});

test('cuts are read as interfaces and the command line write them', () => {
  for (const text of ['{"0": 1024, "4294967297": -1}', '0=1024,1.#epoch.1=-1', '0=1024 demo/orders/1.#epoch.1:-1']) {
    assert.deepEqual(
      [...cutIn(text)].map(([id, offset]) => `${id}=${offset}`),
      ['0=1024', '4294967297=-1'],
    );
  }
  assert.deepEqual([...cutIn('9007199254740993=9223372036854775807')], [['9007199254740993', 9223372036854775807n]]);
  assert.throws(() => cutIn('0=one'), /no segment with an offset/);
});

test('ranges cover what goes, or the reason is told', () => {
  /** @type {[number, number][]} */
  const gone = [
    [0, 0.25],
    [0.25, 0.5],
  ];
  const why = (/** @type {number[][]} */ come, /** @type {any} */ of = gone) =>
    uncovered(of, /** @type {any} */ (come));
  assert.equal(
    why([
      [0.3, 0.5],
      [0, 0.3],
    ]),
    null,
  );
  assert.equal(
    why(
      [
        [0.5, 0.6],
        [0, 0.05],
        [0.05, 0.1],
      ],
      [
        [0, 0.1],
        [0.5, 0.6],
      ],
    ),
    null,
  );
  assert.match(
    why([
      [0, 0.3],
      [0.31, 0.5],
    ]) ?? '',
    /no segment: 0.3 to 0.31/,
  );
  assert.match(why([[0, 0.6]]) ?? '', /segments that stay: 0.5 to 0.6/);
  assert.match(
    why([
      [0, 0.3],
      [0.2, 0.5],
    ]) ?? '',
    /overlap/,
  );
  assert.match(
    why([
      [0, 0],
      [0, 0.5],
    ]) ?? '',
    /begin before it ends/,
  );
  assert.equal(why(inParts([0, 1], 3), [[0, 1]]), null);
});

test('a view in the address comes back as it was', () => {
  const model = modelOf(rolled().answer());
  const box = {left: 40, top: 30, width: 800, height: 300};
  const again = (/** @type {any} */ address) => toAddress(fromAddress(address, model, box), model);
  const begin = NOW - 3 * HOUR;
  const plain = {x: null, view: null};
  const kept = [
    plain,
    {x: 'epoch', view: null},
    {x: null, view: `${begin}..`},
    {x: null, view: `${begin}..${NOW - HOUR},0.25..0.5`},
    {x: 'epoch', view: '1..2.5'},
  ];
  for (const address of kept) assert.deepEqual(again(address), address);
  assert.deepEqual(again({x: '', view: '9..1,nonsense'}), plain);
});

test('what is drawn from the address is what was drawn before it was written', () => {
  const model = modelOf(rolled().answer());
  const box = {left: 40, top: 30, width: 800, height: 300};
  for (const axis of /** @type {const} */ (['time', 'epoch'])) {
    const view = zoomed(whole(model, axis, box), model, {x: 1 / 7, y: 1 / 3, px: 333, py: 111});
    const again = fromAddress(toAddress(view, model), model, box);
    for (const at of [view.x0, view.x1]) assert.ok(Math.abs(toX(view, at) - toX(again, at)) < 1e-6);
    for (const key of [view.y0, view.y1]) assert.ok(Math.abs(toY(view, key) - toY(again, key)) < 1e-6);
  }
});
