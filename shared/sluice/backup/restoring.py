"""The records that bring a back-up into an empty journal of any number of partitions.

They are records like any other: a follower folds them, and has the states. Each aggregate is one event, which carries
its state as the back-up encodes it; where it belongs follows from its key. Versions begin anew, as requests do.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from sluice.backup.states import BackedUp
from sluice.domain.encoding import encode_state
from sluice.domain.events import Event
from sluice.domain.ids import StreamId
from sluice.domain.model import JournalEntry, JournalRecord
from sluice.domain.names import key_of
from sluice.domain.restoring.adapt import adapted
from sluice.domain.restoring.base import base_at
from sluice.domain.restoring.events import AggregateRestored, NumbersMoved
from sluice.domain.restoring.repair import States, repair
from sluice.domain.stream.state import DeletedStream, Stream
from sluice.domain.transaction.index import NOTHING, StreamTransactions
from sluice.engine.partition import partition_keys, partition_of

RECORD_BYTES = 512 * 1024
"""A record is full with so many bytes of states."""


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


def restoration(backed_up: BackedUp, partitions: int, now: int, by: str) -> Restoration:
    """What to append to an empty journal at `now`, epoch ms. Raises BaseUnfitError.

    It takes the states over: they are changed in place.
    """
    base = base_at(now, max(backed_up.highest, backed_up.base))
    states: States = {}
    for name, state in backed_up.states.items():
        goes_on = adapted(state, base, now, _prepared(backed_up, name))
        if goes_on is not None:
            states[name] = goes_on
    repairs = repair(states, f"restored-{base:x}", now)
    return Restoration(_records(_by_partition(states, partitions), backed_up, base, now, by), base, repairs)


def _prepared(backed_up: BackedUp, aggregate: str) -> dict[str, None]:
    kind, _, name = aggregate.partition(":")
    if kind != "prepared":
        return {}
    return backed_up.transactions.get(name.rpartition("/")[0], NOTHING).prepared


def _by_partition(states: States, partitions: int) -> list[States]:
    found: list[States] = [{} for _ in range(partitions)]
    for name in sorted(states):
        found[partition_of(key_of(name), partitions)][name] = states[name]
    return found


def _records(
    by_partition: Sequence[States], backed_up: BackedUp, base: int, now: int, by: str
) -> Iterator[RestoredRecord]:
    keys = partition_keys(len(by_partition))
    for partition, states in enumerate(by_partition):
        moved = NumbersMoved(keys[partition], base)
        entries = chain([moved], _events(states, backed_up.transactions))
        for number, batch in enumerate(_batches(entries)):
            record = JournalRecord(id=f"restored-{base:x}-{partition}-{number:x}", at=now, by=by, entries=batch)
            yield RestoredRecord(partition, keys[partition], record)


def _events(states: States, transactions: dict[str, StreamTransactions]) -> Iterator[Event]:
    """The aggregates in an order from which the projections come out as they were."""
    listed: set[str] = set()
    for stream in sorted(transactions):
        for event in _with_transactions(states, StreamId.of(stream), transactions[stream]):
            listed.add(event.aggregate)
            yield event
    yield from (_restored(name, state) for name, state in states.items() if name not in listed)


def _with_transactions(states: States, id: StreamId, index: StreamTransactions) -> Iterator[AggregateRestored]:
    """A stream with its transactions. What ended before the stream of the name was deleted comes before that again."""

    def of(uuids: Iterable[str]) -> Iterator[AggregateRestored]:
        names = (id.transaction(uuid).aggregate for uuid in uuids)
        return (_restored(name, states[name]) for name in names if name in states)

    stream = states.get(id.aggregate)
    ended = [*index.older, *index.newest]
    yield from of(ended[: index.of_deleted])
    if isinstance(stream, Stream) and index.of_deleted:
        yield _restored(id.aggregate, DeletedStream(stream.next_number))
    if stream is not None:
        yield _restored(id.aggregate, stream)
    yield from of(ended[index.of_deleted :])
    yield from of([*index.committing, *index.aborting, *index.open])


def _restored(name: str, state: object) -> AggregateRestored:
    return AggregateRestored(name, encode_state(state))


def _batches(events: Iterable[Event]) -> Iterator[tuple[JournalEntry, ...]]:
    versions: dict[str, int] = {}
    batch: list[JournalEntry] = []
    size = 0
    for event in events:
        more = len(event.state) if isinstance(event, AggregateRestored) else 0
        if batch and (size + more > RECORD_BYTES or event.aggregate in versions):
            yield tuple(batch)
            batch, size = [], 0
        version = versions.get(event.aggregate, 0)
        batch.append(JournalEntry(expect={event.aggregate: version}, events=(event,)))
        versions[event.aggregate] = version + 1
        size += more
    if batch:
        yield tuple(batch)
