"""A stream with transactions for tests of the domain: what its clients ask, and what becomes of it batch by batch."""

from collections.abc import Callable
from functools import partial
from typing import Any

from sluice.domain.decision import Context, Decision, Reply
from sluice.domain.ids import TransactionId
from sluice.domain.segment import number_of, segment_id
from sluice.domain.stream import decide as stream_decide
from sluice.domain.transaction import batch, decide, prepared
from sluice.domain.transaction import events as ev
from sluice.domain.transaction.batch import CommitBatch, Commits, Merged, Positions, Skipped, find_commits
from sluice.domain.transaction.commands import (
    AbortReason,
    AbortTransaction,
    CommitTransaction,
    OpenTransaction,
    PingTransaction,
)
from sluice.domain.transaction.decide import Limits
from sluice.domain.transaction.index import StreamTransactions, transactions_of
from sluice.domain.transaction.state import EndedTransaction, Transaction, TransactionState, find_transaction
from sluice.domain.transaction_ids import first_of_range, transaction_id
from sluice.domain.workflow import WorkflowKind
from support.histories import replaced
from support.stream_log import STREAM, StreamLog

LEASE_MS = 10_000
LIMITS = Limits(open=1000, waiting_commits=1000)


class TxnLog(StreamLog):
    """One stream, two segments by default. `now` is the time of the next decision."""

    def __init__(self, segments: int = 2, limits: Limits = LIMITS, most: int = 100) -> None:
        super().__init__(segments)
        self.now = 1000
        self.limits = limits
        self.most = most

    @property
    def index_of_all(self) -> StreamTransactions:
        return transactions_of(self, STREAM)

    @property
    def commits(self) -> Commits | None:
        return find_commits(self, STREAM)

    @property
    def batch(self) -> CommitBatch:
        """The batch that is running."""
        commits = self.commits
        assert commits is not None and commits.workflow is not None
        return commits.workflow

    def transaction(self, id: str) -> Transaction | EndedTransaction | None:
        return find_transaction(self, STREAM.transaction(id))

    def state(self, id: str) -> TransactionState:
        found = self.transaction(id)
        return found.state if found is not None else TransactionState.UNKNOWN

    # What clients ask.

    def context(self, request: str | None = None, appended_at: int | None = None) -> Context:
        return Context(self.now, request, self.now if appended_at is None else appended_at)

    def open(self, request: str, lease_ms: int = LEASE_MS, ready: bool = True) -> str:
        """Open one and return its id."""
        assert self.ask_open(request, lease_ms) is None
        id = transaction_id(self.stream.active_epoch.reference, request)
        if ready:
            reply = self.ready(id)
            assert reply is not None and reply.status == "OK"
        return id

    def ask_open(self, request: str, lease_ms: int = LEASE_MS) -> Reply | None:
        command = OpenTransaction(*STREAM, lease_ms=lease_ms)
        reply: Reply | None = self.apply(decide.decide_open(self, command, self.context(request), self.limits)).reply
        return reply

    def ready(self, id: str) -> Reply | None:
        reply: Reply | None = self.apply(decide.decide_ready(self, STREAM.transaction(id), self.now)).reply
        return reply

    def reserve(self, count: int, token: str = "token") -> TransactionId:
        """The first id of a range whose segments are being created."""
        self.apply(prepared.decide_reserve(self, STREAM, token, count, self.now))
        first = STREAM.transaction(first_of_range(self.stream.active_epoch.reference, token))
        assert prepared.find_range(self, first) is not None
        return first

    def prepare(self, count: int, token: str = "token") -> TransactionId:
        """The first id of a range that may be opened."""
        first = self.reserve(count, token)
        self.apply(prepared.decide_prepared(self, first, self.now))
        return first

    def discard(self, first: TransactionId) -> Decision:
        return self.apply(prepared.decide_discard(self, first, self.now))

    def ping(self, id: str, lease_ms: int = LEASE_MS, appended_at: int | None = None) -> Reply:
        command = PingTransaction(*STREAM, transaction=id, lease_ms=lease_ms)
        return answered(
            self.apply(decide.decide_ping(self, command, self.context(appended_at=appended_at), self.limits))
        )

    def commit(self, id: str, writer: str = "", timestamp: int = 0) -> Reply:
        command = CommitTransaction(*STREAM, transaction=id, writer=writer, timestamp=timestamp)
        return answered(self.apply(decide.decide_commit(self, command, self.context(), self.limits)))

    def abort(self, id: str, reason: AbortReason = AbortReason.USER, version: int | None = None) -> Decision:
        command = AbortTransaction(*STREAM, transaction=id, reason=reason, version=version)
        return self.apply(decide.decide_abort(self, command, self.context()))

    def queue(self, id: str, writer: str = "", timestamp: int = 0) -> None:
        """Have it wait for its commit, as if something kept a batch from beginning."""
        self.fold(ev.TransactionCommitting(*STREAM, id, at=self.now, writer=writer, timestamp=timestamp))

    def waiting(self, *requests: str) -> list[str]:
        """Transactions that wait for their commit, in this order, while no batch runs."""
        ids = [self.open(request) for request in requests]
        for id in ids:
            self.queue(id)
        return ids

    # What becomes of it.

    def begin(self) -> Decision:
        return self.apply(batch.begin_batch(self, STREAM, self.context(), self.most))

    def end(self, positions: Positions | None = None, skipped: Skipped | None = None, deleted: int = 0) -> Decision:
        """End the batch that merges."""
        merged = Merged(self._positions() if positions is None else positions, skipped or {}, deleted)
        return self.apply(batch.end_batch(self, STREAM, self.context(), merged, self.most))

    def _positions(self) -> Positions:
        running = self.commits.workflow if self.commits is not None else None
        return {id: {} for id in running.transactions} if running is not None else {}

    def record_rolled(
        self, sizes: dict[int, int] | None = None, positions: Positions | None = None, skipped: Skipped | None = None
    ) -> Decision:
        merged = Merged(self._positions() if positions is None else positions, skipped or {})
        return self.apply(batch.record_rolled(self, STREAM, self.context(), sizes or {}, merged))

    def end_roll(self, sizes: dict[int, int] | None = None) -> Decision:
        sizes = dict.fromkeys(self.stream.active_epoch.segments, 0) if sizes is None else sizes
        return self.apply(batch.end_roll(self, STREAM, self.context(), sizes))

    def finish_batch(self) -> None:
        """See the batch that is running through, whatever it takes."""
        if self.batch.kind is WorkflowKind.ROLL_TRANSACTIONS:
            self.record_rolled()
            self.end_roll()
        else:
            self.end()

    def finish_abort(self, id: str) -> Decision:
        return self.apply(decide.finish_abort(self, STREAM.transaction(id), self.now))

    def note_waiting(self, kind: str = "ScaleStream") -> Decision:
        return self.apply(stream_decide.record_queued_behind_batch(self, STREAM, kind, self.context()))

    def start_split(self) -> Reply:
        """Begin to split the segment 0."""
        return self.start_scale((0,), ((0.0, 0.25), (0.25, 0.5)))

    def split(self, number: int, at: int = 2000) -> None:
        """Split the active segment of this number into halves."""
        active = self.stream.active_segments()
        i = next(i for i, segment in enumerate(active) if number_of(segment.id) == number)
        self.scale(*replaced(active, i, is_merge=False), at)


def ids_of_ended(index: StreamTransactions) -> list[str]:
    """The last one first."""
    return [ended.uuid for ended in index.ended()]


def answered(decision: Decision) -> Reply:
    assert isinstance(decision.reply, Reply)
    return decision.reply


def worked_example() -> tuple[TxnLog, str]:
    """The stream of the reference's section 4.4 with a transaction of epoch 0: segment 1 is split at time 2000."""
    log = TxnLog()
    id = log.open("early")
    log.split(1, at=2000)
    assert log.stream.active_epoch.segments == (0, segment_id(1, 2), segment_id(1, 3))
    return log, id


Act = Callable[[TxnLog, str], Any]

REACHED: dict[str, Act] = {
    "opened": lambda log, request: log.open(request, ready=False),
    "ready": lambda log, request: log.open(request),
    "committing": lambda log, request: _then(log, request, log.commit),
    "committed": lambda log, request: _then(log, request, log.commit, partial(_batch, log)),
    "aborting": lambda log, request: _then(log, request, log.abort),
    "aborted": lambda log, request: _then(log, request, log.abort, log.finish_abort),
    "unknown": lambda _log, request: transaction_id(0, request),
}
"""How a transaction comes into each of its states; each gives the id."""


def _then(log: TxnLog, request: str, *acts: Callable[[str], Any]) -> str:
    id = log.open(request)
    for act in acts:
        act(id)
    return id


def _batch(log: TxnLog, _id: str) -> None:
    log.finish_batch()
