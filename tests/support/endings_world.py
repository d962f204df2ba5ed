"""A stream with transactions on a journal and a segment store in memory, and an instance that ends what was decided.

Time is virtual, the clock of the decisions included.
"""

import asyncio
from typing import Any

import pytest

from sluice.domain import events as ev
from sluice.domain.aggregates import DECIDE
from sluice.domain.commands import AbortReason, Command, CreateReserved, CreateStream
from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.decision import Context
from sluice.domain.segment_id import segment_name
from sluice.domain.stream import decide as stream_decide
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.transaction.batch import Commits, find_commits
from sluice.domain.transaction.ids import transaction_id
from sluice.domain.transaction.index import StreamTransactions, transactions_of
from sluice.domain.transaction.state import TransactionState, find_transaction, segment_names
from sluice.messaging.keyed_consumer import Delivery, KeyedConsumer
from sluice.segmentstore.failure import ConnectionFailure, Failure
from sluice.segmentstore.memory import InMemorySegmentStore, Moment
from sluice.workflows.crash_points import CrashPoints
from sluice.workflows.runner import Runner
from support.memory_journal import Instance, JournalWorld
from txn_manager.ending_steps import workflows
from txn_manager.endings import Endings
from txn_manager.tools import TransactionTools

SCOPE, STREAM, KEY = "sc", "st", "sc/st"
BEGAN_MS = 1_000_000


def clock_ms() -> int:
    return BEGAN_MS + int(asyncio.get_running_loop().time() * 1000)


def use_virtual_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have everything that decides look at the loop's clock."""
    for module in ("sluice.journal.journal", "sluice.workflows.runner", "txn_manager.endings"):
        monkeypatch.setattr(f"{module}.now_ms", clock_ms)


class Ender:
    """As much of txn-manager as ends transactions, on one instance of the journal. It owns nothing at first."""

    def __init__(self, world: "EndingsWorld", instance: Instance, most: int) -> None:
        self.failures: list[Exception] = []
        self.consumer = KeyedConsumer({}, "sluice.commit", "g", self._nothing, self._assigned, self._failed)
        tools = TransactionTools(world.store, instance.journal)
        runner = Runner(instance.journal, workflows(most), tools, CrashPoints(""))
        self.endings = Endings(instance.journal, self.consumer, runner, most)
        self.partition = instance.journal.partition_of(KEY)

    def take_over(self) -> None:
        self.consumer._assigned([self.partition])
        self.endings.take_over(self.partition)

    def drop(self) -> None:
        """Another one owns the partition now."""
        self.endings.drop(self.partition)
        self.consumer._revoked([self.partition])

    async def _nothing(self, _delivery: Delivery) -> None:
        raise AssertionError("nothing comes from the topic here")

    async def _assigned(self, _partition: int) -> None:
        return None

    async def _failed(self, _delivery: Delivery, error: Exception) -> None:
        self.failures.append(error)


class EndingsWorld:
    """`failing` are the requests that segment stores do not answer.

    `slow_s` is how long merges take to begin, `late_s` how long the answer takes when they are done; no more of them
    than `merges_allowed` are carried out. `delete_s` is how long deletions take to begin.
    """

    def __init__(self, instances: int = 1, most: int = 100) -> None:
        self.world = JournalWorld(instances)
        self.failing: set[str] = set()
        self.slow_s = 0.0
        self.late_s = 0.0
        self.merges = 0
        self.delete_s = 0.0
        self.deletes = 0
        self.merges_allowed = 1_000_000
        self.store = InMemorySegmentStore(self._fault)
        self.enders = [Ender(self, instance, most) for instance in self.world.instances]

    @property
    def ender(self) -> Ender:
        return self.enders[0]

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

    async def create(self, segments: int = 1) -> None:
        config = StreamConfig(scaling=ScalingPolicy(min_segments=segments))
        create = CreateReserved(CreateStream(SCOPE, STREAM, config), "r", BEGAN_MS)
        await self.decide(create)
        await self.world.do(KEY, lambda reader: stream_decide.finish_create(reader, SCOPE, STREAM))
        for segment in self.stream.segments:
            await self.store.create_segment(segment_name(SCOPE, STREAM, segment), 0, 0)

    async def decide(self, command: Command) -> None:
        """Raises BusyError."""
        choose = DECIDE[type(command)]
        await self.world.do(KEY, lambda reader: choose(reader, command, Context(clock_ms(), "r")))

    @property
    def stream(self) -> Stream:
        stream = find_stream(self.world.view(KEY), SCOPE, STREAM)
        assert stream is not None
        return stream

    @property
    def commits(self) -> Commits | None:
        return find_commits(self.world.view(KEY), SCOPE, STREAM)

    @property
    def transactions(self) -> StreamTransactions:
        return transactions_of(self.world.view(KEY), SCOPE, STREAM)

    def state(self, id: str) -> TransactionState | None:
        found = find_transaction(self.world.view(KEY), SCOPE, STREAM, id)
        return found.state if found is not None else None

    def seed(self, *events: ev.Event) -> None:
        self.world.seed(KEY, *events)

    async def open(self, request: str, written: bytes = b"") -> str:
        """One with its segments, each of which holds what was written."""
        id = transaction_id(self.stream.active_epoch.reference, request)
        facts = {"scope": SCOPE, "stream": STREAM, "transaction": id}
        self.seed(ev.TransactionOpened(**facts, lease_ms=10_000, at=1), ev.TransactionReady(**facts, at=1))
        for name in segment_names(self.stream, id).values():
            await self.store.create_segment(name, 0, 0)
            self.store.segments[name].data += written or request.encode()
        return id

    def commit(self, *ids: str) -> None:
        for id in ids:
            self.seed(ev.TransactionCommitting(scope=SCOPE, stream=STREAM, transaction=id, at=1))

    def abort(self, id: str) -> None:
        self.seed(
            ev.TransactionAborting(scope=SCOPE, stream=STREAM, transaction=id, reason=AbortReason.USER, at=clock_ms())
        )

    def begin(self, *ids: str, rolls: bool = False) -> None:
        self.seed(ev.CommitBatchStarted(scope=SCOPE, stream=STREAM, transactions=ids, at=clock_ms(), rolls=rolls))

    def data(self, segment: int) -> bytes:
        return self.store.segments[segment_name(SCOPE, STREAM, segment)].data

    def batches(self) -> list[tuple[str, ...]]:
        """All that were begun, in order."""
        events = (event for record in self.world.records(KEY) for event in record.events)
        return [event.transactions for event in events if isinstance(event, ev.CommitBatchStarted)]

    async def until(self, holds: Any, most_s: float = 600.0) -> None:
        """Let time pass until the condition holds."""
        async with asyncio.timeout(most_s):
            while not holds():  # noqa: ASYNC110 - looking again costs nothing, time is virtual
                await asyncio.sleep(0.01)

    async def until_ended(self, most_s: float = 600.0) -> None:
        await self.until(lambda: self.transactions.live == 0, most_s)
