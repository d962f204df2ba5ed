"""Opens transactions: the decision, the segments, then the reply.

Where transactions of the stream are prepared (`preparer.py`), an open takes one of those, and the decision has the
reply. Where none is, the decision begins a workflow, `open-transaction`, which creates the segments and ends with the
reply; the partition's next owner finds it in the journal. So no segment is created before a record names it, and a
limit bounds how many are at once. The lease begins with the reply: however long the segments take, the client loses
nothing of it.
"""

import asyncio
import logging

from sluice.domain.config import ScalingPolicy
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.ids import TransactionId
from sluice.domain.model import JournalEntry
from sluice.domain.stream.state import find_stream
from sluice.domain.transaction.commands import OpenTransaction
from sluice.domain.transaction.decide import Limits, decide_open, decide_ready
from sluice.domain.transaction.events import TransactionOpened
from sluice.domain.transaction.state import (
    Transaction,
    TransactionState,
    find_transaction,
    segment_names,
)
from sluice.domain.workflow import WorkflowKind
from sluice.engine.consumer import Continuation, Delivery, RequestConsumer
from sluice.engine.crash_points import CrashPoints
from sluice.engine.journal import Journal, JournalError
from sluice.engine.offsets import RequestFacts
from sluice.engine.retry import delays
from sluice.engine.runner import Runner
from sluice.engine.step import Step, Workflows, all_done
from sluice.engine.workflow import WorkflowRules
from sluice.kafka.requests import Request
from sluice.pravega.errors import SegmentStoreError
from sluice.pravega.store import SegmentStore
from sluice.workflows.segments import create_named
from txn_manager.stream_limits import StreamLimits

log = logging.getLogger(__name__)

OPEN_CONCURRENCY = 64
"""Of one stream, so that the many of a stream whose segment store is silent leave room for those of others."""


class _StepContext:
    """`made_ready` are the transactions whose TransactionReady is of this process: only behind that may they be ended,
    so nothing that this process created came after the deletion.
    """

    def __init__(self, store: SegmentStore, journal: Journal) -> None:
        self.made_ready: set[str] = set()
        self._store = store
        self._journal = journal

    def segment_names(self, id: TransactionId) -> tuple[str, ...]:
        """Empty if there is no such stream. A later stream of the name has others, so they are read in time."""
        found = find_stream(self._journal.reader(id.key), id.stream_id)
        return tuple(segment_names(found, id.transaction).values()) if found is not None else ()

    async def create_segments(self, id: TransactionId) -> None:
        found = find_stream(self._journal.reader(id.key), id.stream_id)
        if found is not None:
            await create_named(self._store, found, segment_names(found, id.transaction).values(), ScalingPolicy())

    async def record_ready(self, id: TransactionId, request: str | None) -> None:
        """Record that the segments are there, unless that is known or the transaction has ended."""

        def decide(reader: Reader, context: Context) -> Decision:
            return decide_ready(reader, id, context.now)

        decision = await self._journal.propose(id.key, decide, RequestFacts(request))
        if decision is not None and decision.events:
            self.made_ready.add(id.aggregate)


async def _create_segments(context: _StepContext, transaction: Transaction) -> None:
    await context.create_segments(transaction.id)


async def _record_ready(context: _StepContext, transaction: Transaction) -> None:
    """It records the end itself, to learn whether its own entry counts or that of another process."""
    request = transaction.workflow.request if transaction.workflow is not None else None
    await context.record_ready(transaction.id, request)


_WORKFLOWS: Workflows[_StepContext] = {
    WorkflowKind.OPEN_TRANSACTION: (
        Step("create-segments", _create_segments),
        Step("record-ready", _record_ready, is_limited=False),
    )
}


class TransactionOpener:
    """Runs the workflows of the partitions that `consumer` owns, at most `max_steps` of their steps at once."""

    def __init__(
        self,
        journal: Journal,
        rules: WorkflowRules,
        consumer: RequestConsumer,
        store: SegmentStore,
        limits: Limits,
        crash_points: CrashPoints,
        max_steps: int = 256,
    ) -> None:
        self._journal = journal
        self._consumer = consumer
        self._store = store
        self._limits = limits
        self._crash_points = crash_points
        self._context = _StepContext(store, journal)
        self._step_limits = StreamLimits(OPEN_CONCURRENCY, max_steps)
        self._in_hand: set[str] = set()
        self._clearing: set[asyncio.Future[None]] = set()
        self._runner = Runner(journal, rules, _WORKFLOWS, self._context, crash_points, foreseen=SegmentStoreError)
        journal.on_entry.append(self._observe)

    def open(self, request: Request, command: OpenTransaction, delivery: Delivery) -> Continuation:
        """Propose the decision in order; it takes a prepared transaction that no other open of this moment takes."""
        taken = list[str]()

        def decide(reader: Reader, context: Context) -> Decision:
            self._in_hand.difference_update(taken)
            decision = decide_open(reader, command, context, self._limits, self._in_hand)
            taken[:] = [event.transaction for event in decision.events if isinstance(event, TransactionOpened)]
            self._in_hand.update(taken)
            return decision

        decided = self._journal.propose(request.command.key, decide, delivery.facts(request.id, request.principal))

        async def finish() -> None:
            try:
                await decided
                self._crash_points.passed("open-transaction/decided")
            finally:
                self._in_hand.difference_update(taken)

        return finish

    def take_over(self, partition: int) -> None:
        """Go on with what others have left. The view must be at the end of the journal."""
        view = self._journal.views()[partition]
        for aggregate in list(view.under_way()):
            if self._runner.workflow_of(view.get(aggregate)) is not None:
                log.info("workflow taken over", extra={"aggregate": aggregate})
                self._run(partition, aggregate)

    def _observe(self, partition: int, entry: JournalEntry) -> None:
        if partition in self._consumer.partitions:
            for event in entry.events:
                if isinstance(event, TransactionOpened):
                    self._run(partition, event.aggregate)

    def _run(self, partition: int, aggregate: str) -> None:
        transaction = self._journal.views()[partition].get(aggregate)
        if self._runner.workflow_of(transaction) is None or self._consumer.executor.has_work(aggregate):
            return
        assert isinstance(transaction, Transaction)
        names = self._context.segment_names(transaction.id)

        async def job() -> None:
            try:
                await self._runner.run_to_completion(aggregate, self._step_limits.of(transaction.id.key))
                self._crash_points.passed("open-transaction/after-segments")
            finally:
                self._leave(transaction.id, names)

        self._consumer.executor.run(partition, aggregate, job)

    def _leave(self, transaction: TransactionId, names: tuple[str, ...]) -> None:
        """Nothing more is done here for the transaction, but that what was created late is cleared up."""
        if transaction.aggregate in self._context.made_ready:
            self._context.made_ready.discard(transaction.aggregate)
            return
        clearing = asyncio.ensure_future(self._clear_up(transaction, names))
        self._clearing.add(clearing)
        clearing.add_done_callback(self._clearing.discard)

    async def _clear_up(self, id: TransactionId, names: tuple[str, ...]) -> None:
        """Delete what was created late, for a transaction that had ended.

        Behind the barrier: one that is open or committing then is cleared by its own end. Never that of a committed
        one: a segment store that has to delete a segment soon after it has merged it loses the container (the merge in
        its long-term storage finds nothing). What is left of those stays.
        """
        key = id.stream_id.key
        for wait in delays(chance=self._journal.chance):
            try:
                await self._journal.barrier((self._journal.partition_of(key),))
                found = find_transaction(self._journal.reader(key), id)
                is_gone = found is None or found.state in (TransactionState.ABORTING, TransactionState.ABORTED)
                if is_gone or self._context.segment_names(id) != names:
                    await all_done(self._store.delete_segment(name) for name in names)
                return
            except (SegmentStoreError, JournalError) as error:
                log.warning("segments not deleted yet", extra={"transaction": id.transaction, "error": str(error)})
                await asyncio.sleep(wait)
