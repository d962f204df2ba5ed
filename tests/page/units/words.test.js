import assert from 'node:assert/strict';
import {test} from 'node:test';
import {UNLIMITED} from 'page/core/format.js';
import {bytesOf, hexLines} from 'page/core/values.js';
import {letterGroups} from 'page/pages/letter-values.js';
import {retentionText, scalingText} from 'page/pages/stream/config-words.js';
import {groupsOf} from 'page/pages/workflow-groups.js';
import {WRITTEN} from 'page/parts/actions.js';
import {cli, quoted} from 'page/parts/cli.js';
import {tally} from 'page/parts/decision-words.js';
import {steps} from 'page/parts/sliders.js';

test('a command is one that a shell takes as it was meant', () => {
  assert.equal(cli`stream show ${'demo/orders'} --at ${'-10m'}`, 'sluice stream show demo/orders --at -10m');
  assert.equal(cli`scope create ${"it's; rm"}`, `sluice scope create 'it'\\''s; rm'`);
  assert.deepEqual(['', '#a', 'a b', 'a=1..2'].map(quoted), ["''", "'#a'", "'a b'", 'a=1..2']);
});

test('an action that is written names what it is for', () => {
  const meant = (/** @type {string} */ text) =>
    WRITTEN.flatMap(({verb, form}) => {
      const names = form.exec(text)?.slice(1);
      return names ? [`${verb} ${names.join(' and ')}`] : [];
    });
  assert.deepEqual(meant('seal demo/orders'), ['seal demo and orders']);
  assert.deepEqual(meant('replay 3/118'), ['replay 3 and 118']);
  assert.deepEqual(meant('create demo'), ['create demo']);
  for (const none of ['seal demo', 'seal a/b/c', 'replay a/1', 'create a b']) assert.deepEqual(meant(none), []);
});

test('decisions are counted by what they changed', () => {
  const decided = ['split', 'steady', 'split', 'split-and-merge'].map((code) => ({code}));
  assert.equal(tally(decided), '2 × split, 1 × split and merge');
  assert.equal(tally([{code: 'at-minimum'}, {code: 'unknown-here'}]), 'nothing');
});

test('policies are said in words', () => {
  const scaling = {targetRate: 100, scaleFactor: 2, minSegments: 1};
  assert.equal(scalingText({...scaling, type: 'fixed'}), 'fixed, 1 segment');
  const byRate = 'by kilobytes: 100 a second and segment, into 2 at most, 1 segment at least';
  assert.equal(scalingText({...scaling, type: 'kbytes'}), byRate);
  assert.equal(retentionText(undefined), 'everything is kept');
  const time = retentionText({type: 'time', min: 3_600_000, max: UNLIMITED});
  assert.equal(time, 'by age: at least 1 h, and more, without limit');
  assert.equal(retentionText({type: 'size', min: 1024, max: 2048}), 'by size: at least 1 KiB, at most 2 KiB');
});

test('a value that is none of the round ones has its place among them', () => {
  assert.deepEqual(steps([1, 10, 100], 7, 10, UNLIMITED), [1, 7, 10, 100, UNLIMITED]);
});

/** @param {number} offset @param {object} more @returns {any} */
const letter = (offset, more) => ({
  partition: 1,
  offset,
  topic: 'sluice.commit',
  at: offset,
  encoding: 'text',
  ...more,
});

test('letters of one cause are a group, the latest group first', () => {
  const value = '{"type": "CommitTransaction"}';
  const letters = [
    letter(3, {reason: 'segment 12 is sealed', value}),
    letter(2, {reason: 'no such type', value: 'x'}),
    letter(1, {reason: 'segment 7 is sealed', value}),
  ];
  const groups = letterGroups(letters).map(({type, letters: own}) => `${type}: ${own.map(({offset}) => offset)}`);
  assert.deepEqual(groups, ['CommitTransaction: 3,1', ': 2']);
});

test('bytes of a value are shown as hex beside what can be read of them', () => {
  const bytes = bytesOf(letter(1, {encoding: 'base64', value: btoa('orders\x00\xff of today')}));
  assert.equal(bytes.length, 17);
  const [first, second] = hexLines(bytes, 5);
  assert.equal(first, '000000  6f 72 64 65 72 73 00 ff  20 6f 66 20 74 6f 64 61  orders·· of toda');
  assert.equal(second.trim(), '000010  79                                                y');
  assert.equal(hexLines(bytes, 1).length, 1);
});

test('workflows with the same cause are a group, whatever their errors number', () => {
  /** @type {any[]} */
  const items = [
    {aggregate: 'stream:a/b', kind: 'scale-stream', lastError: 'segment 4 of a/b/4 is away'},
    {aggregate: 'stream:a/c', kind: 'seal-stream', lastError: 'segment 9 of a/c/9 is away'},
    {
      aggregate: 'stream:d/e',
      kind: 'seal-stream',
      waitsFor: {why: 'waits', then: {container: 2, store: 's:1', why: ''}},
    },
  ];
  const groups = (/** @type {string} */ by) => groupsOf(items, by).map(({key, items: own}) => `${key}: ${own.length}`);
  assert.deepEqual(groups('error'), ['segment # of … is away: 2', 'container 2 does not answer: 1']);
  assert.deepEqual(groups('kind'), ['seal stream: 2', 'scale stream: 1']);
  assert.deepEqual(groups('scope'), ['a: 2', 'd: 1']);
  assert.deepEqual(groups('store'), ['no store is waited for: 2', 's:1: 1']);
});
