"""The segments that can be looked for: every name that the journal is known to have given out.

The wire protocol lists nothing, so a segment is found only by its name. Names are those of the streams and tables that
are there, of all their epochs, of their transactions, and of what the follower of the journal saw being deleted. Pure.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from sluice.domain.ids import StreamId, TableId
from sluice.domain.segment import kvt_segment_name, number_of, segment_name, transaction_segment_name
from sluice.domain.stream import cuts
from sluice.domain.stream.events import StreamDeleted
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.table.events import TableDeleted
from sluice.domain.table.state import Table, find_table
from sluice.domain.transaction.events import TransactionRangeDeleted
from sluice.domain.transaction.index import transactions_of
from sluice.domain.transaction.prepared import PreparedRange
from sluice.domain.transaction_ids import epoch_of, halves
from sluice.engine.fold import PartitionView

MAX_FORMER = 10_000
"""Deleted streams, tables and ranges of one partition that are remembered: the last ones."""


class StreamSegment(msgspec.Struct, frozen=True):
    of: StreamId
    id: int

    @property
    def name(self) -> str:
        return segment_name(*self.of, self.id)


class TransactionSegment(msgspec.Struct, frozen=True):
    """What a transaction wrote for the segments of this number."""

    of: StreamId
    transaction: str
    number: int

    @property
    def name(self) -> str:
        return transaction_segment_name(*self.of, self.number, *halves(self.transaction))


class TableSegment(msgspec.Struct, frozen=True):
    of: TableId
    id: int

    @property
    def name(self) -> str:
        return kvt_segment_name(*self.of, self.id)


Subject = StreamSegment | TransactionSegment | TableSegment


class Former:
    """What was deleted in the part of the journal that was folded. `forgotten` counts what is not remembered."""

    def __init__(self) -> None:
        self._former: deque[tuple[Subject, ...]] = deque(maxlen=MAX_FORMER)
        self.forgotten = 0

    def find(self, view: PartitionView, events: Iterable[object]) -> list[tuple[Subject, ...]]:
        """The segments of what these events would delete; to be given to `add` if they counted."""
        deletions = (StreamDeleted, TableDeleted, TransactionRangeDeleted)
        return [tuple(_segments_of(view, view.get(e.aggregate))) for e in events if isinstance(e, deletions)]

    def add(self, deleted: Iterable[tuple[Subject, ...]]) -> None:
        for segments in deleted:
            self.forgotten += len(self._former) == MAX_FORMER
            self._former.append(segments)

    def segments(self) -> Iterator[Subject]:
        """Nothing may be folded meanwhile."""
        return chain.from_iterable(self._former)


def _segments_of(view: PartitionView, state: object) -> Iterator[Subject]:
    if isinstance(state, Stream):
        yield from (StreamSegment(state.id, s) for s in _ever(state))
    elif isinstance(state, Table):
        yield from (TableSegment(state.id, s.id) for s in state.segments)
    elif isinstance(state, PreparedRange):
        stream = find_stream(view, state.id.stream_id)
        if stream is not None:
            yield from _of_transactions(stream, state.discarded)


def of_stream(view: PartitionView, id: StreamId, *, leftovers: bool) -> Iterator[Subject]:
    """The segments of a stream and its transactions; with `leftovers` also those that should be gone.

    More may be folded while this goes on: what begins later is left out.
    """
    stream = find_stream(view, id)
    if stream is None:
        return
    transactions = transactions_of(view, id)
    present = [*transactions.open, *transactions.committing, *transactions.aborting, *transactions.prepared]
    gone = [ended.uuid for ended in transactions.ended()] if leftovers else []
    segments = _ever(stream) if leftovers else _present(stream)
    yield from (StreamSegment(id, s) for s in segments)
    yield from _of_transactions(stream, present)
    yield from _of_transactions(stream, gone)


def of_table(view: PartitionView, id: TableId) -> Iterator[Subject]:
    table = find_table(view, id)
    if table is not None:
        yield from (TableSegment(id, s.id) for s in table.segments)


def _of_transactions(stream: Stream, transactions: Iterable[str]) -> Iterator[Subject]:
    for transaction in transactions:
        epoch = epoch_of(transaction)
        numbers = [number_of(s) for s in stream.history.epoch(epoch).segments] if stream.history.has(epoch) else []
        yield from (TransactionSegment(stream.id, transaction, number) for number in numbers)


def _present(stream: Stream) -> list[int]:
    newest = stream.history.epoch(stream.history.count - 1).segments
    return sorted({*cuts.segments_between(stream, stream.cut, {}), *newest})


def _ever(stream: Stream) -> list[int]:
    """All that the stream ever had; what a scale has begun to create is not known to be there before its epoch is."""
    return [s.id for s in stream.history.within(stream.history.first, stream.history.count - 1)]
