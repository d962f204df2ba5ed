"""Brings to an end what the journal says has been decided: commits, batch after batch, and aborts.

Whoever owns a partition of the topic of commits does this for its streams: he is told by the journal, not by the
requests, so that it does not matter which instance has decided. A partition that is taken over is looked through once.
"""

import asyncio
import logging
from contextlib import suppress
from weakref import WeakValueDictionary

from sluice.domain import events as ev
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.names import commits_aggregate, key_of, stream_key
from sluice.domain.stream.state import find_stream
from sluice.domain.transaction.batch import begin_batch, why_not_now
from sluice.domain.transaction.index import StreamTransactions, transactions_of
from sluice.domain.workflow import WorkflowKind
from sluice.journal.journal import Journal, JournalError, now_ms
from sluice.journal.record import Record
from sluice.messaging.keyed_consumer import Delivery, KeyedConsumer
from sluice.workflows.backoff import delays
from sluice.workflows.runner import Runner
from txn_manager import metrics
from txn_manager.tools import TransactionTools

log = logging.getLogger(__name__)

ABORTS_AT_ONCE = 32
"""Of one stream, so that the many of a stream whose segment store is silent leave room for those of others."""

LOOK_AGAIN_S = 1.0
"""How long a stream's commits wait at most before they look again whether they may go on."""


class _Both:
    """A slot of a stream together with one of all."""

    def __init__(self, own: asyncio.Semaphore, shared: asyncio.Semaphore) -> None:
        self._own = own
        self._shared = shared

    async def acquire(self) -> None:
        await self._own.acquire()
        try:
            await self._shared.acquire()
        except BaseException:
            self._own.release()
            raise

    def release(self) -> None:
        self._shared.release()
        self._own.release()


class Endings:
    """Runs on the consumer of commits, in lanes and slots of its own: a segment store that is silent keeps no request
    waiting. `most` transactions make a batch, `max_running` bounds the batches and aborts that run at once.
    """

    def __init__(
        self,
        journal: Journal,
        consumer: KeyedConsumer,
        runner: Runner[TransactionTools],
        most: int,
        max_running: int = 256,
    ) -> None:
        self._journal = journal
        self._consumer = consumer
        self._runner = runner
        self._most = most
        self._committing: dict[int, set[str]] = {}
        self._slots = asyncio.Semaphore(max_running)
        self._aborting: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        journal.on_record.append(self._heard)

    def take_over(self, partition: int) -> None:
        """Go on with what others have left. The view must be at the end of the journal."""
        self._committing[partition] = set()
        view = self._journal.views()[partition]
        for aggregate, state in list(view.aggregates()):
            workflow = self._runner.workflow_of(state)
            if workflow is None:
                continue
            log.info("workflow taken over", extra={"aggregate": aggregate})
            if workflow.kind is WorkflowKind.ABORT_TRANSACTION:
                self._see_through(partition, aggregate)
            else:
                self._commit(partition, state.scope, state.name)
        for name, index in list(view.indexes()):
            if isinstance(index, StreamTransactions) and index.committing:
                scope, _, stream = name.partition("/")
                self._commit(partition, scope, stream)

    def drop(self, partition: int) -> None:
        """Leave the partition to its next owner."""
        self._committing.pop(partition, None)

    def _heard(self, partition: int, record: Record) -> None:
        if partition not in self._committing:
            return
        for event in record.events:
            if isinstance(event, ev.TransactionCommitting):
                metrics.ENDING.labels("commit").inc()
                self._commit(partition, event.scope, event.stream)
            elif isinstance(event, ev.TransactionAborting):
                metrics.ENDING.labels(event.reason.value).inc()
                self._see_through(partition, event.aggregate)
            elif isinstance(event, ev.CommitBatchStarted):
                metrics.BATCH.observe(len(event.transactions))

    def _see_through(self, partition: int, aggregate: str) -> None:
        async def run(delivery: Delivery) -> None:
            await self._runner.run(aggregate, delivery)

        stream = key_of(aggregate)
        own = self._aborting.get(stream)
        if own is None:
            own = self._aborting[stream] = asyncio.Semaphore(ABORTS_AT_ONCE)
        self._consumer.run(partition, aggregate, run, _Both(own, self._slots))

    def _commit(self, partition: int, scope: str, stream: str) -> None:
        """Begin to commit what waits, unless that is going on: then it takes what has come since, too."""
        aggregate = commits_aggregate(scope, stream)
        committing = self._committing[partition]
        if aggregate in committing:
            return
        committing.add(aggregate)

        async def commit(delivery: Delivery) -> None:
            try:
                await self._commit_all(scope, stream, delivery)
            finally:
                committing.discard(aggregate)

        self._consumer.run(partition, aggregate, commit, self._slots)

    async def _commit_all(self, scope: str, stream: str, delivery: Delivery) -> None:
        key, aggregate = stream_key(scope, stream), commits_aggregate(scope, stream)
        assert key == key_of(aggregate)
        view = self._journal.reader(key)

        def begin(reader: Reader, context: Context) -> Decision:
            return begin_batch(reader, scope, stream, context, self._most)

        waits = delays()
        while True:
            await self._runner.run(aggregate, delivery)
            if not transactions_of(view, scope, stream).committing or find_stream(view, scope, stream) is None:
                return
            try:
                executed = await self._journal.execute(key, None, begin)
            except JournalError as error:
                log.warning("commits wait", extra={"stream": key, "error": str(error)})
                async with delivery.waiting():
                    await asyncio.sleep(next(waits))
                continue
            if executed.decision is None or not executed.decision.events:
                async with delivery.waiting():
                    await self._may_go_on(key, scope, stream)

    async def _may_go_on(self, key: str, scope: str, stream: str) -> None:
        """Return when nothing keeps the next batch any more, or after a while."""

        def holds(view: Reader) -> bool:
            return why_not_now(view, scope, stream, now_ms()) is None

        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN_S):
                try:
                    await self._journal.until(key, holds)
                except JournalError:
                    await asyncio.sleep(LOOK_AGAIN_S)
