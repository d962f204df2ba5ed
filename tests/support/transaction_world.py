"""A stream with transactions in memory, and processes that complete those whose end was decided."""

import asyncio
from typing import Any

from sluice.domain.commands import Command
from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.scope.events import ScopeCreated
from sluice.domain.segment import segment_name
from sluice.domain.stream import decide as stream_decide
from sluice.domain.stream import scale
from sluice.domain.stream.commands import CreateStream
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.transaction.batch import Commits, find_commits
from sluice.domain.transaction.commands import AbortReason
from sluice.domain.transaction.events import (
    CommitBatchStarted,
    TransactionAborting,
    TransactionCommitting,
    TransactionOpened,
    TransactionReady,
)
from sluice.domain.transaction.index import StreamTransactions, transactions_of
from sluice.domain.transaction.state import TransactionState, find_transaction, segment_names
from sluice.domain.transaction_ids import transaction_id
from sluice.engine.consumer import Delivery, RequestConsumer
from sluice.engine.crash_points import CrashPoints
from sluice.engine.runner import Runner
from sluice.kafka.topics import COMMIT
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import InMemorySegmentStore, Moment
from support.histories import segments_of
from support.memory_world import MemoryWorld, Process, until
from txn_manager.commit_steps import workflows
from txn_manager.skipped_segments import SkippedSegments
from txn_manager.step_context import TransactionStepContext
from txn_manager.transaction_completion import TransactionCompletion

STREAM = StreamId("sc", "st")
KEY = STREAM.key


class Completer:
    """As much of txn-manager as completes transactions, in one process. It owns nothing at first."""

    def __init__(self, world: "TransactionWorld", process: Process, most: int) -> None:
        runtime, journal = process.runtime, process.journal
        self.failures: list[Exception] = []
        self.partition = journal.partition_of(KEY)
        self.consumer = RequestConsumer(
            runtime.request_source(COMMIT),
            journal,
            self._nothing,
            self._own,
            self._failed,
            on_revoked=self._disown,
        )
        context = TransactionStepContext(world.store, journal)
        runner = Runner(journal, runtime.model, workflows(most), context, CrashPoints(""))
        self.skipped = SkippedSegments(journal, self.consumer, context)
        self.completion = TransactionCompletion(journal, self.consumer, runner, most)

    def take_over(self) -> None:
        """The group gives it the stream's partition."""
        self.consumer.assigned([self.partition])

    def drop(self) -> None:
        """Another one owns the partition now."""
        self.consumer.revoked([self.partition])

    async def _nothing(self, _delivery: Delivery) -> None:
        raise AssertionError("nothing comes from the topic here")

    async def _own(self, partition: int) -> None:
        self.completion.take_over(partition)
        self.skipped.take_over(partition)

    def _disown(self, partition: int) -> None:
        self.completion.drop(partition)
        self.skipped.drop(partition)

    async def _failed(self, _delivery: Delivery, error: Exception) -> None:
        self.failures.append(error)


class TransactionWorld(MemoryWorld):
    """`failing` are the requests that segment stores do not answer.

    `slow_s` is how long merges take to begin, `late_s` how long the answer takes when they are done; no more of them
    than `merges_allowed` are carried out. `delete_s` is how long deletions take to begin.
    """

    def __init__(
        self,
        processes: int = 1,
        most: int = 100,
        segments: int = 1,
        store: InMemorySegmentStore | None = None,
        scaling: ScalingPolicy | None = None,
    ) -> None:
        super().__init__("txn-manager", store=store)
        self.scaling = scaling or ScalingPolicy(min_segments=segments)
        self.failing: set[str] = set()
        self.slow_s = 0.0
        self.late_s = 0.0
        self.merges = 0
        self.delete_s = 0.0
        self.deletes = 0
        self.merges_allowed = 1_000_000
        self.store.fault = self._fault
        self.completers = [Completer(self, self.first, most)]
        for _ in range(1, processes):
            self.completers.append(Completer(self, self.process(), most))

    @property
    def completer(self) -> Completer:
        return self.completers[0]

    def _fault(self, moment: Moment, request: str, _segment: str) -> Any:
        if request in self.failing:
            raise ConnectionFailure(Failure.TIMED_OUT)
        if request == "MergeSegmentsBatch" and moment == "before":
            if self.merges >= self.merges_allowed:
                raise ConnectionFailure(Failure.TIMED_OUT)
            self.merges += 1
            return asyncio.sleep(self.slow_s) if self.slow_s else None
        if request == "DeleteSegment" and moment == "before":
            self.deletes += 1
            return asyncio.sleep(self.delete_s) if self.delete_s else None
        if request == "MergeSegmentsBatch" and self.late_s:
            return asyncio.sleep(self.late_s)
        return None

    async def create(self) -> None:
        config = StreamConfig(scaling=self.scaling)
        await self.seed("sc", ScopeCreated("sc", creation_id="scope", at=0))
        await self.decide(CreateStream(*STREAM, config))
        await self.do(KEY, lambda reader, _: stream_decide.finish_create(reader, STREAM))
        await self.create_segments()

    async def create_segments(self) -> None:
        """Those that the stream has by now."""
        for segment in segments_of(self.stream):
            name = segment_name(*STREAM, segment)
            if name not in self.store.segments:
                await self.store.create_segment(name, 0, 0)

    async def decide(self, command: Command) -> None:
        """Raises BusyError."""
        await self.ask(command, "r")

    async def finish_scale(self) -> None:
        """Bring the scale that was requested to its end, in the journal and in the segment stores."""
        await self.do(KEY, lambda reader, _: scale.add_epoch(reader, STREAM))
        await self.do(KEY, lambda reader, _: scale.finish_scale(reader, STREAM, {0: 0}))
        await self.create_segments()

    @property
    def stream(self) -> Stream:
        stream = find_stream(self.view(KEY), STREAM)
        assert stream is not None
        return stream

    @property
    def commits(self) -> Commits | None:
        return find_commits(self.view(KEY), STREAM)

    @property
    def transactions(self) -> StreamTransactions:
        return transactions_of(self.view(KEY), STREAM)

    def state(self, id: str) -> TransactionState | None:
        found = find_transaction(self.view(KEY), STREAM.transaction(id))
        return found.state if found is not None else None

    async def open(self, request: str, written: bytes = b"") -> str:
        """One with its segments, each of which holds what was written."""
        id = transaction_id(self.stream.active_epoch.reference, request)
        opened = TransactionOpened(*STREAM, id, lease_ms=10_000, at=1, dies_at=10**15)
        await self.seed(KEY, opened, TransactionReady(*STREAM, id, at=1))
        for name in segment_names(self.stream, id).values():
            await self.store.create_segment(name, 0, 0)
            self.store.segments[name].data += written or request.encode()
        return id

    async def commit(self, *ids: str) -> None:
        await self.seed(KEY, *(TransactionCommitting(*STREAM, id, at=1) for id in ids))

    async def abort(self, id: str) -> None:
        await self.seed(KEY, TransactionAborting(*STREAM, id, reason=AbortReason.USER, at=self.now_ms))

    async def begin(self, *ids: str, rolls: bool = False) -> None:
        started = CommitBatchStarted(*STREAM, transactions=ids, at=self.now_ms, rolls=rolls)
        await self.seed(KEY, started)

    def data(self, segment: int) -> bytes:
        return self.store.segments[segment_name(*STREAM, segment)].data

    def batches(self) -> list[tuple[str, ...]]:
        """All that were begun, in order."""
        return [event.transactions for event in self.events(CommitBatchStarted)]

    async def until_ended(self, max_s: float = 600.0) -> None:
        await until(lambda: self.transactions.live == 0, max_s)
