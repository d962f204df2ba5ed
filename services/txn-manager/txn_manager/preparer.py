"""Prepares transactions of the streams in use, and discards what is left of them.

The owner of a partition follows what is opened there. When less than half of what a stream's rate asks for is left, it
has a range created (`range_creator.py`). It discards ranges that a scale or a seal has made useless, those that a
stream wants no more, and those that another process has reserved: that one may be gone. A stream at rest has nothing
prepared, no timer and no record. Belongs to the event loop.
"""

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import Any

from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.events import Event
from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.model import JournalEntry
from sluice.domain.names import key_of
from sluice.domain.stream.events import StreamScaled, StreamSealStarted, StreamUpdated
from sluice.domain.stream.state import StreamState, find_stream
from sluice.domain.transaction import prepared
from sluice.domain.transaction.events import (
    TransactionOpened,
    TransactionRangeDiscarded,
    TransactionRangePrepared,
    TransactionRangeReserved,
)
from sluice.domain.transaction.index import StreamTransactions, transactions_of
from sluice.domain.transaction.prepared import PreparedRange, find_range
from sluice.domain.transaction_ids import MAX_RANGE
from sluice.domain.workflow import WorkflowKind
from sluice.engine.consumer import RequestConsumer
from sluice.engine.crash_points import CrashPoints
from sluice.engine.journal import Journal, JournalError
from sluice.engine.runner import Runner
from sluice.engine.step import Step, Workflows, all_done, plain
from sluice.engine.workflow import WorkflowRules
from sluice.pravega.errors import SegmentStoreError
from sluice.pravega.store import SegmentStore
from sluice.workflows.step_context import StepContext
from txn_manager.demand import MIN_PREPARED, Demand, PreparedLimits
from txn_manager.range_creator import RangeCreator
from txn_manager.stream_limits import StreamLimits

log = logging.getLogger(__name__)

SEGMENTS_AT_ONCE = 128
"""Of one range, unless a single transaction has more: they are created side by side."""

MAX_SEGMENTS = 1024
"""Of what is prepared for one stream, unless a single transaction has more."""

DISCARD_CONCURRENCY = 16
"""Ranges whose segments are deleted at once: there is no hurry, and other calls on the segment stores have."""

DISCARD_CONCURRENCY_OF_STREAM = 4
"""Likewise of one stream, so that one whose segment store is silent leaves room for others."""

PAUSE_S = 1.0
"""How long nothing is prepared for a stream when that has failed."""


async def _delete_segments(context: StepContext, found: PreparedRange) -> None:
    stream = find_stream(context.reader(found.id.key), found.id.stream_id)
    names = prepared.segments_of(stream, found.discarded) if stream is not None else []
    await all_done(context.store.delete_unused_segment(name) for name in names)


_WORKFLOWS: Workflows[StepContext] = {
    WorkflowKind.DISCARD_TRANSACTIONS: (Step("delete-segments", _delete_segments, plain(prepared.finish_discard)),)
}


class _StreamInUse:
    """One range of it is prepared at a time, and none before `retry_at_s`."""

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.is_preparing = False
        self.retry_at_s = 0.0


class TransactionPreparer:
    """Serves the partitions that `consumer` owns, from when each was taken over."""

    def __init__(
        self,
        journal: Journal,
        rules: WorkflowRules,
        consumer: RequestConsumer,
        store: SegmentStore,
        limits: PreparedLimits,
        crash_points: CrashPoints,
    ) -> None:
        self._journal = journal
        self._consumer = consumer
        self._limits = limits
        self._discards = StreamLimits(DISCARD_CONCURRENCY_OF_STREAM, DISCARD_CONCURRENCY)
        self._loop = asyncio.get_running_loop()
        self._unopened: dict[int, int] = {}
        """By owned partition: how many are reserved or prepared, and neither opened nor discarded."""
        self._in_use: dict[StreamId, _StreamInUse] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._creator = RangeCreator(journal, store, crash_points)
        context = StepContext(store, journal)
        self._runner = Runner(journal, rules, _WORKFLOWS, context, crash_points, foreseen=SegmentStoreError)
        journal.on_entry.append(self._observe)

    # Partitions.

    def take_over(self, partition: int) -> None:
        """Use or discard what others have left. The view must be at the end of the journal."""
        self._unopened[partition] = 0
        view = self._journal.views()[partition]
        for name, index in list(view.projections()):
            if isinstance(index, StreamTransactions) and index.ranges:
                id = StreamId.of(name)
                self._use(id)
                for first, unopened in index.ranges.items():
                    self._unopened[partition] += unopened
                    self._adopt(partition, id.transaction(first))

    def drop(self, partition: int) -> None:
        """Leave the partition to its next owner."""
        self._unopened.pop(partition, None)
        for id in [id for id in self._in_use if self._journal.partition_of(id.key) == partition]:
            del self._in_use[id]

    async def stop(self) -> None:
        """End; the next owners discard what was begun."""
        self._unopened.clear()
        self._in_use.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _adopt(self, partition: int, first: TransactionId) -> None:
        view = self._journal.views()[partition]
        found = find_range(view, first)
        if found is None:
            return
        if found.workflow is not None:
            self._run(partition, first.range)
        elif found.is_reserved:
            if not self._creator.is_mine(first):
                self._discard(first)
        elif not prepared.is_usable(find_stream(view, first.stream_id), first):
            self._discard(first)

    # Following.

    def _observe(self, partition: int, entry: JournalEntry) -> None:
        for event in entry.events:
            if isinstance(event, TransactionRangePrepared):
                self._creator.observe(event)
            if partition in self._unopened:
                self._observe_owned(partition, event)

    def _observe_owned(self, partition: int, event: Event) -> None:
        match event:
            case TransactionOpened():
                self._unopened[partition] -= event.prepared
                self._use(event.stream_id).demand.opened(self._loop.time())
                self._replenish(event.stream_id)
            case TransactionRangeReserved():
                self._unopened[partition] += event.count
                self._adopt(partition, event.first_id)
            case TransactionRangePrepared():
                self._use(event.stream_id)
            case TransactionRangeDiscarded():
                self._unopened[partition] -= len(event.transactions)
                self._adopt(partition, event.first_id)
                if event.stream_id in self._in_use:
                    self._replenish(event.stream_id)
            case StreamScaled() | StreamUpdated() | StreamSealStarted():
                for first in self._ranges(event.stream_id):
                    self._adopt(partition, event.stream_id.transaction(first))

    def _use(self, id: StreamId) -> _StreamInUse:
        """The stream is in use from now on, if it was not: until it has been idle for a while."""
        found = self._in_use.get(id)
        if found is None:
            demand = Demand(self._limits, self._loop.time())
            found = self._in_use[id] = _StreamInUse(demand)
            self._loop.call_later(self._limits.idle_s, self._look, id, found)
        return found

    def _look(self, id: StreamId, used: _StreamInUse) -> None:
        """Discard what the stream wants no more, which is all of an idle one; look at one in use later."""
        if self._in_use.get(id) is not used:
            return
        left_s = used.demand.idle_for(self._loop.time())
        if not used.is_preparing:
            self._discard_beyond(id, max(MIN_PREPARED, used.demand.wanted) if left_s > 0 else 0)
            if left_s <= 0:
                del self._in_use[id]
                return
        self._loop.call_later(max(left_s, 1.0), self._look, id, used)

    def _discard_beyond(self, id: StreamId, wanted: int) -> None:
        """The newest ranges first: opens take from the oldest."""
        ranges = self._ranges(id)
        left = sum(ranges.values())
        for first, unopened in reversed(ranges.items()):
            if left - unopened >= wanted:
                left -= unopened
                self._discard(id.transaction(first))

    # Ranges.

    def _ranges(self, id: StreamId) -> dict[str, int]:
        """How many of each of the stream's ranges are not opened."""
        return transactions_of(self._journal.reader(id.key), id).ranges

    def _replenish(self, id: StreamId) -> None:
        """Have more prepared if no more than half of what is wanted is there."""
        used, stream = self._in_use[id], find_stream(self._journal.reader(id.key), id)
        if used.is_preparing or self._loop.time() < used.retry_at_s:
            return
        if stream is None or stream.state is not StreamState.ACTIVE:
            return
        segments = len(stream.active_epoch.segments)
        wanted, left = min(used.demand.wanted, max(1, MAX_SEGMENTS // segments)), sum(self._ranges(id).values())
        room = self._limits.total - sum(self._unopened.values())
        count = min(wanted - left, max(1, SEGMENTS_AT_ONCE // segments), MAX_RANGE, room)
        if left <= wanted // 2 and count > 0:
            used.is_preparing = True
            self._spawn(self._prepare(id, used, count))

    async def _prepare(self, id: StreamId, used: _StreamInUse, count: int) -> None:
        partition = self._journal.partition_of(id.key)
        try:
            if not await self._creator.prepare(id, count, lambda: partition in self._unopened):
                used.retry_at_s = self._loop.time() + PAUSE_S
        finally:
            used.is_preparing = False
        if self._in_use.get(id) is used:
            self._replenish(id)

    def _discard(self, first: TransactionId) -> None:
        partition = self._journal.partition_of(first.key)

        def decide(reader: Reader, context: Context) -> Decision:
            is_owned = partition in self._unopened
            return prepared.decide_discard(reader, first, context.now) if is_owned else Decision()

        async def propose() -> None:
            await self._journal.propose(first.key, decide)

        self._spawn(propose())

    def _run(self, partition: int, aggregate: str) -> None:
        if not self._consumer.executor.has_work(aggregate):
            job = partial(self._runner.run_to_completion, aggregate, self._discards.of(key_of(aggregate)))
            self._consumer.executor.run(partition, aggregate, job)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = task.exception() if not task.cancelled() else None
        if isinstance(error, JournalError):
            log.warning("transactions neither prepared nor discarded", extra={"error": str(error)})
        elif error is not None:
            log.critical("preparing transactions failed", exc_info=error)
