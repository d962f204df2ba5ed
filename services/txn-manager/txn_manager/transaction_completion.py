"""Brings to an end what the journal says has been decided: commits, batch after batch, and aborts.

The owner of a partition of the topic of commits does this for its streams: it follows the journal, not the
requests, so that it does not matter which instance has decided. A partition that is taken over is looked through once.
"""

import asyncio
import logging
from functools import partial
from typing import Any

from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.ids import StreamId
from sluice.domain.model import JournalEntry
from sluice.domain.names import key_of
from sluice.domain.stream.state import find_stream
from sluice.domain.transaction import events as ev
from sluice.domain.transaction.batch import begin_batch, why_not_now
from sluice.domain.transaction.index import StreamTransactions, transactions_of
from sluice.domain.workflow import WorkflowKind
from sluice.engine.consumer import RequestConsumer
from sluice.engine.journal import Journal, JournalError
from sluice.engine.retry import delays
from sluice.engine.runner import Runner
from txn_manager import metrics
from txn_manager.step_context import TransactionStepContext
from txn_manager.stream_limits import StreamLimits

log = logging.getLogger(__name__)

ABORT_CONCURRENCY = 32
"""Of one stream, so that the many of a stream whose segment store is silent leave room for those of others."""

RECHECK_S = 1.0
"""How long a stream's commits wait at most before they look again whether they may go on."""


class TransactionCompletion:
    """Runs on the consumer of commits, in queues of its own.

    `most` transactions make a batch. `max_steps` bounds the steps of batches that are carried out at once, and likewise
    those of aborts. A stream whose commits never end queues for each step behind other streams.
    """

    def __init__(
        self,
        journal: Journal,
        consumer: RequestConsumer,
        runner: Runner[TransactionStepContext],
        most: int,
        max_steps: int = 256,
    ) -> None:
        self._journal = journal
        self._consumer = consumer
        self._runner = runner
        self._most = most
        self._committing: dict[int, set[str]] = {}
        self._batches = asyncio.Semaphore(max_steps)
        self._aborts = StreamLimits(ABORT_CONCURRENCY, max_steps)
        journal.on_entry.append(self._observe)

    def take_over(self, partition: int) -> None:
        """Go on with what others have left. The view must be at the end of the journal."""
        self._committing[partition] = set()
        view = self._journal.views()[partition]
        for aggregate in list(view.under_way()):
            state: Any = view.get(aggregate)
            workflow = self._runner.workflow_of(state)
            if workflow is None:
                continue
            log.info("workflow taken over", extra={"aggregate": aggregate})
            if workflow.kind is WorkflowKind.ABORT_TRANSACTION:
                self._run(partition, aggregate)
            else:
                self._commit(partition, state.stream)
        for name, index in list(view.projections()):
            if isinstance(index, StreamTransactions) and index.committing:
                self._commit(partition, StreamId.of(name))

    def drop(self, partition: int) -> None:
        """Leave the partition to its next owner."""
        self._committing.pop(partition, None)

    def _observe(self, partition: int, entry: JournalEntry) -> None:
        if partition not in self._committing:
            return
        for event in entry.events:
            if isinstance(event, ev.TransactionCommitting):
                metrics.ENDING.labels("commit").inc()
                self._commit(partition, event.stream_id)
            elif isinstance(event, ev.TransactionAborting):
                metrics.ENDING.labels(event.reason.value).inc()
                self._run(partition, event.aggregate)
            elif isinstance(event, ev.CommitBatchStarted):
                metrics.BATCH.observe(len(event.transactions))

    def _run(self, partition: int, aggregate: str) -> None:
        run = partial(self._runner.run_to_completion, aggregate, self._aborts.of(key_of(aggregate)))
        self._consumer.executor.run(partition, aggregate, run)

    def _commit(self, partition: int, id: StreamId) -> None:
        """Begin to commit what waits, unless that is going on: then it takes what has come since, too."""
        aggregate = id.commits
        committing = self._committing[partition]
        if aggregate in committing:
            return
        committing.add(aggregate)

        async def commit() -> None:
            try:
                await self._commit_all(id)
            finally:
                committing.discard(aggregate)

        self._consumer.executor.run(partition, aggregate, commit)

    async def _commit_all(self, id: StreamId) -> None:
        key, aggregate = id.key, id.commits
        assert key == key_of(aggregate)
        view = self._journal.reader(key)

        def begin(reader: Reader, context: Context) -> Decision:
            return begin_batch(reader, id, context, self._most)

        waits = delays(chance=self._journal.chance)
        while True:
            await self._runner.run_to_completion(aggregate, self._batches)
            if not transactions_of(view, id).committing or find_stream(view, id) is None:
                return
            try:
                decision = await self._journal.propose(key, begin)
            except JournalError as error:
                log.warning("commits wait", extra={"stream": key, "error": str(error)})
                await asyncio.sleep(next(waits))
                continue
            if decision is None or not decision.events:
                await self._may_go_on(key, id)

    async def _may_go_on(self, key: str, id: StreamId) -> None:
        """Return when nothing keeps the next batch any more, or after a while."""

        def holds(view: Reader) -> bool:
            return why_not_now(view, id, self._journal.clock.now_ms()) is None

        try:
            await self._journal.until(key, holds, RECHECK_S)
        except JournalError:
            await asyncio.sleep(RECHECK_S)
