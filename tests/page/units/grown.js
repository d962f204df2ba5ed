/** Streams for the picture, made up: what `…/topology` answers after splits, merges and rolling commits. */
/** @import {TopologyModel} from 'api' */

export const NOW = 1_780_000_000_000;
export const HOUR = 3_600_000;
const DUPLICATE = 4;
const COLUMNS = ['id', 'number', 'low', 'high', 'bornEpoch', 'born', 'endEpoch', 'end', 'bytes', 'flags'];
const EPOCH_COLUMNS = ['epoch', 'at', 'reference', 'cause'];

/** A stream that began so many hours before `NOW` with so many equal segments; `at` is the time of what comes. */
export class Grown {
  /** @param {number} segments @param {number} hours */
  constructor(segments, hours) {
    this.at = NOW - hours * HOUR;
    /** @type {Record<string, number>[]} */
    this.rows = [];
    /** @type {Record<string, any>[]} */
    this.epochs = [{epoch: 0, at: this.at, reference: 0, cause: 'created'}];
    this.numbers = 0;
    this.active = Array.from({length: segments}, (_, n) => this.born(0, [n / segments, (n + 1) / segments]));
  }

  /** @param {number} epoch @param {[number, number]} range @param {number} [number] of what it duplicates */
  born(epoch, [low, high], number) {
    const own = number ?? this.numbers++;
    const flags = number === undefined ? 0 : DUPLICATE;
    const row = {id: epoch * 2 ** 32 + own, number: own, low, high, bornEpoch: epoch, born: this.at};
    this.rows.push({...row, endEpoch: -1, end: 0, bytes: -1, flags});
    return this.rows[this.rows.length - 1];
  }

  /** @param {number | null} reference @param {string} cause */
  epoch(reference, cause) {
    const epoch = this.epochs[this.epochs.length - 1].epoch + 1;
    this.epochs.push({epoch, at: this.at, reference: reference ?? epoch, cause});
    return epoch;
  }

  /** Replace segments, each of which has so many bytes. @param {any[]} gone @param {[number, number][]} ranges */
  scale(gone, ranges, bytes = 1000) {
    const epoch = this.epoch(null, 'scale');
    for (const row of gone) Object.assign(row, {endEpoch: epoch, end: this.at, bytes});
    this.active = [...this.active.filter((row) => !gone.includes(row)), ...ranges.map((one) => this.born(epoch, one))];
  }

  /** Restore: so many epochs are found behind the back-up, each a millisecond long, and one follows. @param {number} found */
  restore(found) {
    for (let number = 0; number <= found; number++) {
      const epoch = this.epoch(null, number < found ? 'scale' : 'restored');
      for (const row of this.active) Object.assign(row, {endEpoch: epoch, end: this.at, bytes: 1000});
      this.active = this.active.map(({low, high}) => this.born(epoch, [low, high]));
      this.at += 1;
    }
  }

  /** Commit a transaction of an older epoch: copies of its segments, then of the active ones. @param {number} epoch */
  roll(epoch) {
    const present = this.epochs[this.epochs.length - 1].reference;
    const old = this.rows.filter((row) => row.bornEpoch <= epoch && !(row.endEpoch >= 0 && row.endEpoch <= epoch));
    const passing = this.epoch(epoch, 'rolling');
    for (const row of this.active) Object.assign(row, {endEpoch: passing, end: this.at, bytes: 1000});
    const copies = old.map((row) => this.born(passing, [row.low, row.high], row.number));
    this.at += 1;
    const lasting = this.epoch(present, 'rolling');
    for (const row of copies) Object.assign(row, {endEpoch: lasting, end: this.at, bytes: 10});
    this.active = this.active.map((row) => this.born(lasting, [row.low, row.high], row.number));
  }

  byKey() {
    return [...this.active].sort((one, other) => one.low - other.low);
  }

  /** As the gateway has it. @returns {TopologyModel} */
  answer() {
    const rows = [...this.rows].sort((one, other) => one.id - other.id);
    const columns = (/** @type {string[]} */ names, /** @type {any[]} */ of) =>
      Object.fromEntries(names.map((name) => [name, of.map((row) => row[name])]));
    const head = Object.fromEntries(rows.filter((row) => row.bornEpoch === 0).map((row) => [row.id, 0]));
    const segments = /** @type {any} */ (columns(COLUMNS, rows));
    const epochs = /** @type {any} */ (columns(EPOCH_COLUMNS, this.epochs));
    return {state: 'ACTIVE', segments, epochs, head, subscribers: [], now: NOW, merged: false};
  }
}

/** Two segments; a split, then a commit of epoch 0 that rolls, a merge, and another one of epoch 1. */
export function rolled() {
  const grown = new Grown(2, 5);
  const [first] = grown.byKey();
  grown.at = NOW - 4 * HOUR;
  grown.scale(
    [first],
    [
      [0, 0.25],
      [0.25, 0.5],
    ],
  );
  grown.at = NOW - 3 * HOUR;
  grown.roll(0);
  grown.at = NOW - 2 * HOUR;
  const [low, middle] = grown.byKey();
  grown.scale([low, middle], [[0, 0.5]]);
  grown.at = NOW - HOUR;
  grown.roll(1);
  return grown;
}
