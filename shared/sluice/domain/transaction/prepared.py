"""Prepared transactions: ids whose segments are created before a client wants them.

The owner of the partition *reserves* a range of ids by a record, creates their segments, and records that they are
*prepared*. From then on each id is an aggregate of its own, as a transaction is, and an open takes any of them: it
expects that id as it was prepared, and the stream. So opens do not compete, no id is opened twice, and what a scale, a
seal or a deletion leaves behind is void by the stream's version. The ids of a range begin at random, so no later stream
of the name has them.

Only the process that reserved a range records that it is prepared, behind its last creation. Another one that finds a
range reserved discards it. So nothing is created late for a range that was ever prepared, and everything of one that
never was may be deleted at any time. What is not opened is *discarded* by an entry that touches each of these ids, so a
late open is void; its segments are deleted behind that, by the workflow `discard-transactions`.
"""

from collections.abc import Container, Iterable
from itertools import chain

import msgspec

from sluice.domain.decision import Decision, Reader
from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.stream.state import Stream, StreamState, find_stream
from sluice.domain.transaction import events as ev
from sluice.domain.transaction.index import transactions_of
from sluice.domain.transaction.state import segment_names
from sluice.domain.transaction_ids import epoch_of, first_of_range, ids_of_range
from sluice.domain.workflow import Workflow, WorkflowKind, running_as


class PreparedRange(msgspec.Struct, array_like=True):
    """`id` is the first of `count` transactions. `discarded` are those that the workflow deletes the segments of."""

    id: TransactionId
    count: int
    ready: bool = False
    discarded: tuple[str, ...] = ()
    workflow: Workflow | None = None

    @property
    def is_reserved(self) -> bool:
        """Whether its segments are being created still, as far as is decided."""
        return not self.ready and self.workflow is None

    @property
    def transactions(self) -> list[str]:
        """All ids, opened or not."""
        return ids_of_range(self.id.transaction, self.count)


def find_range(reader: Reader, first: TransactionId) -> PreparedRange | None:
    state = reader.get(first.range)
    return state if isinstance(state, PreparedRange) else None


def next_prepared(reader: Reader, stream: Stream, in_hand: Container[str]) -> str | None:
    """An id that may be opened now and is not in hand."""
    epoch = f"{stream.active_epoch.reference:08x}-"
    prepared = transactions_of(reader, stream.id).prepared
    return next((id for id in prepared if id not in in_hand and id.startswith(epoch)), None)


def is_usable(stream: Stream | None, first: TransactionId) -> bool:
    """Whether transactions of the range can be opened. A roll keeps the reference epoch, a scale does not."""
    if stream is None or stream.state in (StreamState.SEALING, StreamState.SEALED):
        return False
    return stream.active_epoch.reference == epoch_of(first.transaction)


def segments_of(stream: Stream, transactions: Iterable[str]) -> list[str]:
    """The names of their segments on the data plane."""
    return list(chain.from_iterable(segment_names(stream, id).values() for id in transactions))


def decide_reserve(reader: Reader, id: StreamId, token: str, count: int, now: int) -> Decision:
    """Reserve `count` ids that follow from the token; nothing while the stream is not there or about to change."""
    stream = find_stream(reader, id)
    if stream is None or stream.state is not StreamState.ACTIVE:
        return Decision()
    first = first_of_range(stream.active_epoch.reference, token)
    return Decision((ev.TransactionRangeReserved(*id, first, count=count, at=now),))


def decide_prepared(reader: Reader, first: TransactionId, now: int) -> Decision:
    """All segments of a range exist. It is discarded if it is of no use any more; nothing if it was discarded."""
    found = find_range(reader, first)
    if found is None or not found.is_reserved:
        return Decision()
    if not is_usable(find_stream(reader, first.stream_id), first):
        return decide_discard(reader, first, now)
    ready = (ev.TransactionPrepared(*first.stream_id, id) for id in found.transactions)
    return Decision((ev.TransactionRangePrepared(*first), *ready))


def decide_discard(reader: Reader, first: TransactionId, now: int) -> Decision:
    """Nothing of the range may be opened any more."""
    found = find_range(reader, first)
    if found is None or found.workflow is not None:
        return Decision()
    prepared = transactions_of(reader, first.stream_id).prepared
    unused = [id for id in found.transactions if not found.ready or id in prepared]
    discarded = ev.TransactionRangeDiscarded(*first, transactions=tuple(unused), at=now)
    each: list[ev.Event] = [ev.TransactionDiscarded(*first.stream_id, id) for id in unused] if found.ready else []
    return Decision((discarded, *each))


def finish_discard(reader: Reader, first: TransactionId) -> Decision:
    """The segments are deleted."""
    if running_as(WorkflowKind.DISCARD_TRANSACTIONS, find_range(reader, first)) is None:
        return Decision()
    return Decision((ev.TransactionRangeDeleted(*first),))
