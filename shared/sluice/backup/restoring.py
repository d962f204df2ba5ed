"""The records that bring a back-up into an empty journal of any number of partitions.

They are records like any other: a follower folds them, and has the states. Each aggregate is one event, which carries
its state as the back-up encodes it; a state that is larger than a record comes in pieces, each in a record of its own.
Where it belongs follows from its key. Versions begin anew, as requests do.
The first record of each partition says how many there are (`whole_at`), and all of these come before any other: so a
service that is started meanwhile, or on a restore that was broken off, waits.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import msgspec

from sluice.backup.states import BackedUp, EncodedStates
from sluice.domain.encoding import encode_state
from sluice.domain.ids import StreamId
from sluice.domain.model import JournalEntry, JournalRecord
from sluice.domain.names import key_of
from sluice.domain.restoring.adapt import adapted
from sluice.domain.restoring.base import base_at, check_earlier
from sluice.domain.restoring.events import AggregateRestored, EpochsMoved, PieceRestored
from sluice.domain.restoring.repair import repair
from sluice.domain.stream.state import DeletedStream, Stream
from sluice.domain.transaction.index import NOTHING, StreamTransactions
from sluice.domain.transaction.state import EndedTransaction
from sluice.engine.partition import partition_keys, partition_of

RECORD_BYTES = 512 * 1024
"""A record is full with so many bytes of states; no piece of one is larger."""
_ENTRY_BYTES = 100
"""What the smallest one counts, for the names beside it."""

Brought = PieceRestored | AggregateRestored


class RestoredRecord(msgspec.Struct, frozen=True):
    """A record with a key of the partition that it belongs to."""

    partition: int
    key: str
    record: JournalRecord


class Restoration(msgspec.Struct, frozen=True):
    """The records in the order in which they must be appended, where numbers go on, and what was made to fit."""

    records: Iterator[RestoredRecord]
    base: int
    repairs: list[str]


def restoration(backed_up: BackedUp, partitions: int, now: int, by: str, earlier: Sequence[int] = ()) -> Restoration:
    """What to append to an empty journal at `now`, epoch ms. Raises BaseUnfitError.

    `earlier` are the bases of restores that were made behind the back-up. It takes the states over: they are changed.
    """
    base, states = base_at(now, max(backed_up.highest, backed_up.base)), backed_up.states
    check_earlier(earlier, backed_up.base, base)
    bases = (*sorted(earlier), base)
    for name in list(states):
        goes_on = adapted(states[name], bases, now, _prepared(backed_up, name))
        if goes_on is not None:
            states[name] = goes_on
        else:
            del states[name]
    repairs = repair(states, f"restored-{base:x}", now)
    return Restoration(records(backed_up, partitions, f"restored-{base:x}", base, now, by), base, repairs)


def _prepared(backed_up: BackedUp, aggregate: str) -> dict[str, None]:
    kind, _, name = aggregate.partition(":")
    if kind != "prepared":
        return {}
    return backed_up.transactions.get(name.rpartition("/")[0], NOTHING).prepared


def _by_partition(keys: Iterable[tuple[str, str]], partitions: int) -> list[list[str]]:
    """Names by the partition of the key that each comes with, in order."""
    found: list[list[str]] = [[] for _ in range(partitions)]
    for name, key in sorted(keys):
        found[partition_of(key, partitions)].append(name)
    return found


def records(
    backed_up: BackedUp, partitions: int, id: str, base: int, now: int, by: str, others: int = 0
) -> Iterator[RestoredRecord]:
    """The records that bring these states into a journal; their ids begin with `id`, epochs go on at `base`.

    Each partition is whole with so many `others` beside them.
    """
    aggregates = _by_partition(((name, key_of(name)) for name in backed_up.states), partitions)
    streams = _by_partition(((name, StreamId.of(name).key) for name in backed_up.transactions), partitions)
    keys = partition_keys(partitions)

    def batches(partition: int) -> Iterator[tuple[JournalEntry, ...]]:
        return _batches(_events(backed_up, aggregates[partition], streams[partition]))

    def record(partition: int, number: int, entries: tuple[JournalEntry, ...], whole_at: int = 0) -> RestoredRecord:
        made = JournalRecord(id=f"{id}-{partition}-{number:x}", at=now, by=by, entries=entries, whole_at=whole_at)
        return RestoredRecord(partition, keys[partition], made)

    for partition, key in enumerate(keys):
        moved = EpochsMoved(key, base)
        entry = JournalEntry(expect={moved.aggregate: 0}, events=(moved,))
        yield record(partition, 0, (entry,), others + 1 + sum(1 for _ in batches(partition)))
    for partition in range(partitions):
        yield from (record(partition, number, batch) for number, batch in enumerate(batches(partition), 1))


def _events(backed_up: BackedUp, aggregates: list[str], streams: list[str]) -> Iterator[Brought]:
    """The aggregates in an order from which the projections come out as they were."""
    states, listed = backed_up.states, set[str]()
    for stream in streams:
        for event in _with_transactions(states, StreamId.of(stream), backed_up.transactions[stream]):
            listed.add(event.aggregate)
            yield event
    for name in aggregates:
        if name not in listed:
            yield from _brought(name, states.encoded(name))


def _brought(name: str, state: bytes) -> Iterator[Brought]:
    last = max(len(state) - 1, 0) // RECORD_BYTES * RECORD_BYTES
    yield from (PieceRestored(name, state[at : at + RECORD_BYTES]) for at in range(0, last, RECORD_BYTES))
    yield AggregateRestored(name, state[last:])


def _with_transactions(states: EncodedStates, id: StreamId, index: StreamTransactions) -> Iterator[Brought]:
    """A stream with its transactions. What ended before the stream of the name was deleted comes before that again."""

    def of(ended: Iterable[EndedTransaction]) -> Iterator[Brought]:
        return (AggregateRestored(id.transaction(one.uuid).aggregate, encode_state(one)) for one in ended)

    def brought(names: Iterable[str]) -> Iterator[Brought]:
        return (event for name in names if name in states for event in _brought(name, states.encoded(name)))

    stream = states.get(id.aggregate)
    ended = chain(index.older, index.newest)
    yield from of(islice(ended, index.of_deleted))
    if isinstance(stream, Stream) and index.of_deleted:
        yield AggregateRestored(id.aggregate, encode_state(DeletedStream(stream.next_number)))
    yield from brought([id.aggregate])
    yield from of(ended)
    living = chain(index.committing, index.aborting, index.open)
    yield from brought(id.transaction(uuid).aggregate for uuid in living)


def _batches(events: Iterable[Brought]) -> Iterator[tuple[JournalEntry, ...]]:
    versions: dict[str, int] = {}
    batch: list[JournalEntry] = []
    size = 0
    for event in events:
        more = _ENTRY_BYTES + len(event.piece if isinstance(event, PieceRestored) else event.state)
        if batch and (size + more > RECORD_BYTES or event.aggregate in versions):
            yield tuple(batch)
            batch, size = [], 0
        version = versions.get(event.aggregate, 0)
        batch.append(JournalEntry(expect={event.aggregate: version}, events=(event,)))
        versions[event.aggregate] = version + 1
        size += more
    if batch:
        yield tuple(batch)
