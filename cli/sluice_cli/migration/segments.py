"""What the segment stores say of the segments of an original, held against its metadata.

One question for each segment; a Problem for each that is not as it should be. Concurrency: on one event loop, so many
questions at a time as the caller says. Numbers: controller-metadata-store 6.4.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import NamedTuple
from uuid import UUID

import msgspec

from sluice.domain.segment import kvt_segment_name, segment_name, transaction_segment_name
from sluice.domain.transaction_ids import epoch_of, halves
from sluice.pravega.errors import SegmentMissing, TryLater
from sluice.pravega.store import SegmentInfo, SegmentStore
from sluice_cli.migration.invariants import Problem, active_ids, future_epochs, is_created, name_of, segments_of
from sluice_cli.migration.model import KeyValueTable, Stream, Thing
from sluice_cli.migration.records import StreamState, TransactionStatus
from sluice_cli.migration.tables import StreamMetadata
from sluice_client import patiently

PATIENCE_S = 30.0


class Wanted(msgspec.Struct, frozen=True):
    """What is to be of a segment, by which invariant; None: either may be. `begins_at` is where it begins."""

    invariant: int
    id: int
    exists: bool = True
    sealed: bool | None = None
    length: int | None = None
    begins_at: int | None = None


def wanted(found: StreamMetadata) -> Iterator[Wanted]:
    """What is to be of each segment of a stream."""
    assert found.state is not None
    head = found.truncation
    gone = set(head.deleted) if head is not None else set()
    leaving = set(head.to_delete) if head is not None else set()
    cut = head.cut if head is not None and not head.updating else {}
    active, sizes, moving = active_ids(found), found.sealed_sizes, bool(future_epochs(found))
    may_be_sealed = moving or found.state.state in (StreamState.SEALING, StreamState.SEALED)
    is_sealed = found.state.state is StreamState.SEALED
    for id in segments_of(found):
        if id in gone:
            yield Wanted(8, id, exists=False)
        elif id in active:
            sealed = True if is_sealed else None if may_be_sealed else False
            yield Wanted(16 if is_sealed else 6, id, sealed=sealed, begins_at=_offset(cut, id))
        elif id not in leaving:
            yield Wanted(7, id, sealed=True, length=sizes.get(id), begins_at=_offset(cut, id))


def _offset(cut: dict[int, int], id: int) -> int | None:
    offset = cut.get(id)
    return offset if offset is None or offset >= 0 else None


def waiting(stream: Stream) -> list[UUID]:
    """The transactions that are to be committed, and of which nothing can have been merged."""
    found = stream.metadata
    begun = set(found.committing.transactions) if found is not None and found.committing is not None else set()
    of_all = (one for transactions in stream.transactions.values() for one in transactions.items())
    return sorted(id for id, one in of_all if one.status is TransactionStatus.COMMITTING and id not in begun)


def transaction_segments(stream: Stream, id: UUID) -> Iterator[str]:
    """The names of its segments: one for each of the epoch that its id says."""
    epoch = epoch_of(str(id))
    assert stream.metadata is not None
    for segment in stream.metadata.epochs[epoch].segments if epoch in stream.metadata.epochs else ():
        yield transaction_segment_name(stream.scope, stream.name, segment.id, *halves(str(id)))


class Answers(NamedTuple):
    """What is not as it should be of a thing, and what its segments hold."""

    problems: list[Problem]
    bytes: int


NONE = Answers([], 0)


class SegmentJudge:
    """Asks for the segments of things. Raises SegmentStoreError."""

    def __init__(self, store: SegmentStore, concurrency: int) -> None:
        self._store = store
        self._turns = asyncio.Semaphore(concurrency)

    async def of(self, thing: Thing) -> Answers:
        """What the stores say of a thing."""
        if isinstance(thing, KeyValueTable):
            return Answers(await self._of_table(thing), 0)
        if not isinstance(thing, Stream) or not is_created(thing):
            return NONE
        assert thing.metadata is not None
        found = await asyncio.gather(*(self._of_segment(thing, one) for one in wanted(thing.metadata)))
        problems = [problem for one in found for problem in one.problems]
        problems += [problem for id in waiting(thing) async for problem in self._of_transaction(thing, id)]
        return Answers(problems, sum(one.bytes for one in found))

    async def _of_transaction(self, stream: Stream, id: UUID) -> AsyncIterator[Problem]:
        """A merge takes a segment that is missing for one that is merged already."""
        for name in transaction_segments(stream, id):
            if await self._info(name) is None:
                yield Problem(10, name_of(stream), f"transaction {id} is to be committed, and lacks {name}", True)

    async def _of_segment(self, stream: Stream, one: Wanted) -> Answers:
        info = await self._info(segment_name(stream.scope, stream.name, one.id))
        problems = [Problem(number, name_of(stream), what, stops) for number, what, stops in _judged(one, info)]
        return Answers(problems, info.length - info.start_offset if info is not None else 0)

    async def _info(self, name: str) -> SegmentInfo | None:
        async with self._turns:
            try:
                return await patiently(lambda: self._store.segment_info(name), PATIENCE_S, (TryLater,))
            except SegmentMissing:
                return None

    async def _of_table(self, table: KeyValueTable) -> list[Problem]:
        found = table.metadata
        if found is None or found.configuration is None or found.current_epoch is None:
            return []
        length = found.configuration.primary_key_length + found.configuration.secondary_key_length
        problems = []
        for one in found.epochs[found.current_epoch].segments if found.current_epoch in found.epochs else ():
            name = kvt_segment_name(table.scope, table.name, one.id)
            async with self._turns:
                try:
                    info = await patiently(partial(self._store.table_info, name), PATIENCE_S, (TryLater,))
                except SegmentMissing:
                    problems.append(f"segment {one.id} is missing")
                    continue
            if info.key_length != length:
                problems.append(f"segment {one.id} has keys of {info.key_length} bytes instead of {length}")
        return [Problem(14, name_of(table), what, True) for what in problems]


def _judged(one: Wanted, info: SegmentInfo | None) -> Iterator[tuple[int, str, bool]]:
    """Number, what is wrong, and whether that stops."""
    if info is None:
        if one.exists:
            yield one.invariant, f"segment {one.id} is missing", True
    elif not one.exists:
        yield 8, f"segment {one.id} is said to be deleted, and is there", False
    else:
        if one.sealed is not None and info.sealed is not one.sealed:
            yield one.invariant, f"segment {one.id} is {'sealed' if info.sealed else 'not sealed'}", True
        if one.length is not None and info.length != one.length:
            yield 7, f"segment {one.id} has {info.length} bytes, and {one.length} are recorded", False
        if one.begins_at is not None and info.start_offset != one.begins_at:
            yield 8, f"segment {one.id} begins at {info.start_offset}, and the stream at {one.begins_at}", False
