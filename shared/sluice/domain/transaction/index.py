"""The index of a stream's transactions: which are open, which wait for their commit, in what order, which have ended.

An index is folded from the events like the aggregates are, but has no version: who decides something from it must be
guarded by what it reads of the aggregates themselves. That suffices here. A transaction that is listed as waiting for
its commit stays so until a batch takes it, and batches guard each other; one that opens while its stream is being
sealed is void by the version of the stream.

Ended transactions are rows of the index in place of aggregates. They read as the aggregates they were, with their
versions: so no id is opened twice, and what was decided on one before it ended is void. They are remembered for at
least KEPT_MS, or until MAX_KEPT newer ones have ended, and for at most twice as long (stream-and-transaction-semantics
6.9). Of a stream in which nothing ends any more they are forgotten as the journal's time goes by: so a partition that
is written to forgets, whatever stream the writing is about. Those of a deleted stream are remembered as long, for
clients that look for the end of one; a stream made anew does not list them.

Prepared transactions are listed apart, until they are opened or discarded. An open takes any of them and is guarded by
that transaction's own version. A range whose last one was opened is forgotten.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from sluice.domain.decision import Reader
from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.names import TRANSACTIONS
from sluice.domain.transaction.ended import EndedTransactions
from sluice.domain.transaction.events import (
    TransactionAborted,
    TransactionAborting,
    TransactionCommitted,
    TransactionCommitting,
    TransactionDiscarded,
    TransactionOpened,
    TransactionPrepared,
    TransactionRangeDeleted,
    TransactionRangeDiscarded,
    TransactionRangeReserved,
)
from sluice.domain.transaction.state import EndedTransaction, Transaction, TransactionState
from sluice.domain.transaction_ids import range_of

KEPT_MS = 48 * 3600 * 1000
MAX_KEPT = 50_000
"""Of one stream; no settings, for all followers must forget alike."""


class StreamTransactions(msgspec.Struct, array_like=True):
    """Transactions in the order of the events, by their ids while they live. `newest` and `older` have ended.

    The first `of_deleted` of the ended ones are of deleted streams of the name. `prepared` may be opened; `ranges` says
    by its first id how many of each range may be opened now or later: 0 of one that is being discarded.
    """

    open: dict[str, None] = {}
    committing: dict[str, None] = {}
    aborting: dict[str, None] = {}
    newest: EndedTransactions = msgspec.field(default_factory=EndedTransactions)
    newest_since: int = 0
    older: EndedTransactions = msgspec.field(default_factory=EndedTransactions)
    of_deleted: int = 0
    prepared: dict[str, None] = {}
    ranges: dict[str, int] = {}

    @property
    def live(self) -> int:
        """How many have not ended."""
        return len(self.open) + len(self.committing) + len(self.aborting)

    @property
    def is_empty(self) -> bool:
        return not (self.live or self.newest or self.older or self.prepared or self.ranges)

    def ended(self, before: str = "") -> Iterator[EndedTransaction]:
        """Those of the present stream that have ended, the last one first; with `before` those that did before it.

        It may go on while others end, or are forgotten.
        """
        older, newest, first = self.older, self.newest, len(self.older)
        if before:
            number = newest.number_of(before)
            end = first + number if number is not None else older.number_of(before) or 0
        else:
            end = first + len(newest)
        return (newest[n - first] if n >= first else older[n] for n in reversed(range(self.of_deleted, end)))

    def ended_since(self, ms: int) -> int:
        """How many of the present stream have ended at that time, epoch ms, or later."""
        count = self.older.count_since(ms) + self.newest.count_since(ms)
        return min(count, len(self.older) + len(self.newest) - self.of_deleted)

    def find_ended(self, uuid: str) -> tuple[int, EndedTransaction] | None:
        """The version and the state of one that has ended, of the present stream or of a deleted one."""
        for ended in (self.newest, self.older):
            if (number := ended.number_of(uuid)) is not None:
                return ended.version(number), ended[number]
        return None


NOTHING = StreamTransactions()
"""What a stream without transactions has; never changed."""

_NOT_RETIRED = (0, None)


def transactions_of(reader: Reader, id: StreamId) -> StreamTransactions:
    found = reader.projection(id.transactions)
    return found if isinstance(found, StreamTransactions) else NOTHING


def _opened(index: StreamTransactions, event: TransactionOpened) -> Iterable[str]:
    index.open[event.transaction] = None
    if not event.prepared:
        return ()
    del index.prepared[event.transaction]
    first = range_of(event.transaction)
    index.ranges[first] -= 1
    if index.ranges[first]:
        return ()
    del index.ranges[first]
    return (event.stream_id.transaction(first).range,)


def _committing(index: StreamTransactions, event: TransactionCommitting) -> Iterable[str]:
    index.open.pop(event.transaction, None)
    index.committing[event.transaction] = None
    return ()


def _aborting(index: StreamTransactions, event: TransactionAborting) -> Iterable[str]:
    index.open.pop(event.transaction, None)
    index.aborting[event.transaction] = None
    return ()


def _ended(index: StreamTransactions, event: TransactionCommitted | TransactionAborted) -> Iterable[str]:
    index.committing.pop(event.transaction, None)
    index.aborting.pop(event.transaction, None)
    if len(index.newest) >= MAX_KEPT or event.at - index.newest_since >= KEPT_MS:
        _forget(index, event.at)
    return ()


def _prepared(index: StreamTransactions, event: TransactionPrepared) -> Iterable[str]:
    index.prepared[event.transaction] = None
    return ()


def _discarded(index: StreamTransactions, event: TransactionDiscarded) -> Iterable[str]:
    del index.prepared[event.transaction]
    return (event.aggregate,)


def _range_reserved(index: StreamTransactions, event: TransactionRangeReserved) -> Iterable[str]:
    index.ranges[event.first] = event.count
    return ()


def _range_discarded(index: StreamTransactions, event: TransactionRangeDiscarded) -> Iterable[str]:
    index.ranges[event.first] = 0
    return ()


def _range_deleted(index: StreamTransactions, event: TransactionRangeDeleted) -> Iterable[str]:
    del index.ranges[event.first]
    return (event.aggregate,)


def _forget(index: StreamTransactions, now: int) -> None:
    index.of_deleted = max(0, index.of_deleted - len(index.older))
    index.older = index.newest
    index.newest, index.newest_since = EndedTransactions(), now


def retire(projections: dict[str, Any], aggregate: str, version: int, state: Any) -> bool:
    """See Model: a transaction that has ended becomes a row of its stream's index."""
    if not isinstance(state, EndedTransaction):
        return False
    stream = StreamId.of(_stream_and_id(aggregate)[0])
    _index_of(projections, stream).newest.append(version, state)
    return True


def retired(projections: dict[str, Any], aggregate: str) -> tuple[int, EndedTransaction | None]:
    """See Model."""
    if aggregate.startswith(TRANSACTIONS):
        stream, uuid = _stream_and_id(aggregate)
        index = projections.get(stream)
        if isinstance(index, StreamTransactions):
            return index.find_ended(uuid) or _NOT_RETIRED
    return _NOT_RETIRED


def _stream_and_id(aggregate: str) -> tuple[str, str]:
    stream, _, uuid = aggregate.removeprefix(TRANSACTIONS).rpartition("/")
    return stream, uuid


def record_stream_deleted(projections: dict[str, Any], name: str) -> None:
    """A stream is deleted when all its transactions have ended."""
    index = projections.get(name)
    if index is not None:
        index.of_deleted = len(index.older) + len(index.newest)


def forget_old(index: Any, now: int) -> None:
    """Have an index forget what ended long before `now`."""
    if not isinstance(index, StreamTransactions):
        return
    if (index.newest or index.older) and now - index.newest_since >= KEPT_MS:
        _forget(index, now)


_FOLD: dict[type, Callable[[StreamTransactions, Any], Iterable[str]]] = {
    TransactionOpened: _opened,
    TransactionCommitting: _committing,
    TransactionAborting: _aborting,
    TransactionCommitted: _ended,
    TransactionAborted: _ended,
    TransactionPrepared: _prepared,
    TransactionDiscarded: _discarded,
    TransactionRangeReserved: _range_reserved,
    TransactionRangeDiscarded: _range_discarded,
    TransactionRangeDeleted: _range_deleted,
}


Project = Callable[[dict[str, Any], Any, int], Iterable[str]]


def _project_with(fold: Callable[[StreamTransactions, Any], Iterable[str]]) -> Project:
    return lambda projections, event, _offset: fold(_index_of(projections, event.stream_id), event)


PROJECT: dict[type, Project] = {kind: _project_with(fold) for kind, fold in _FOLD.items()}
"""Brings the index that an event concerns up to date; the aggregates of what it makes forgotten."""


def _index_of(projections: dict[str, Any], stream: StreamId) -> StreamTransactions:
    found = projections.get(stream.transactions)
    if found is None:
        found = projections[stream.transactions] = StreamTransactions()
    assert isinstance(found, StreamTransactions)
    return found


def restore_live(projections: dict[str, Any], stream: StreamId, transaction: Transaction) -> None:
    """List a transaction of a back-up; they come in the order in which their commits were requested."""
    index = _index_of(projections, stream)
    listed = {
        TransactionState.OPEN: index.open,
        TransactionState.COMMITTING: index.committing,
        TransactionState.ABORTING: index.aborting,
    }
    listed[transaction.state][transaction.uuid] = None


def restore_range(projections: dict[str, Any], first: TransactionId) -> None:
    """List a range of a back-up: it is being discarded."""
    _index_of(projections, first.stream_id).ranges[first.transaction] = 0
