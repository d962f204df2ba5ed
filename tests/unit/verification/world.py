"""A journal and segment stores in memory, changed by the services' own decisions and steps, one after the other."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from support.domain_log import Lengths
from unit.cli.memory import History

from sluice.domain.commands import Command
from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.registry import DECIDE
from sluice.domain.scope.commands import CreateScope
from sluice.domain.segment import segment_name
from sluice.domain.stream.commands import CreateStream, DeleteStream, ScaleStream, SealStream, TruncateStream
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.transaction import batch, prepared
from sluice.domain.transaction.commands import AbortTransaction, CommitTransaction, OpenTransaction
from sluice.domain.transaction.decide import decide_ready
from sluice.domain.transaction.state import segment_names
from sluice.domain.transaction_ids import first_of_range
from sluice.domain.workflow import WorkflowKind, running
from sluice.engine.dependencies import Dependency
from sluice.engine.fold import PartitionView
from sluice.engine.step import Step, Workflows
from sluice.pravega.memory import InMemorySegmentStore, MemorySegment
from sluice.verification.survey import Finding, NotAnswered, Report, UnderWay
from sluice_cli.output import Output
from sluice_cli.verification.routes import Routes
from sluice_cli.verification.run import Choice, Summary, verify
from stream_workflows.workflows import WORKFLOWS
from txn_manager.commit_steps import workflows as txn_workflows
from txn_manager.early_answers import EarlyAnswers

STREAM = StreamId("demo", "orders")
KEY = STREAM.key
CONTAINERS: dict[str, Any] = {"items": [{"container": number, "store": f"store-{number}:1"} for number in range(4)]}

Record = Callable[[Reader, Context], Decision]


class DirectContext:
    """What steps are given: the journal's views, and the stores."""

    def __init__(self, world: "World") -> None:
        self.store = world.store
        self.lengths = EarlyAnswers(world.store.segment_info)
        self.deleted: dict[str, int] = {}
        self._world = world

    def reader(self, key: str) -> PartitionView:
        return self._world.history.view(key)

    def now_ms(self) -> int:
        return self._world.history.now

    async def catch_up(self, _keys: Iterable[str]) -> None:
        """The views here are never behind."""

    def require(self, dependencies: Iterable[Dependency]) -> None:
        assert all(dependency.holds(self.reader(dependency.key)) for dependency in dependencies)


class World:
    """`demo/orders` with two segments, and whatever tests do to it."""

    def __init__(self, history: History | None = None, store: InMemorySegmentStore | None = None) -> None:
        self.history = history or History()
        self.store = store or InMemorySegmentStore()
        self._context: Any = DirectContext(self)
        self._requests = 0

    # The journal, with what workflows do.

    async def create(self, segments: int = 2) -> None:
        self.begin(CreateScope(STREAM.scope))
        config = StreamConfig(scaling=ScalingPolicy(min_segments=segments))
        await self.do(CreateStream(*STREAM, config))

    async def do(self, command: Command, aggregate: str = STREAM.aggregate, key: str = KEY) -> None:
        """Have it decided, and the workflow of the aggregate carried out."""
        self.begin(command)
        await self.finish(aggregate, key)

    async def create_anew(self) -> None:
        """Another stream of the name."""
        await self.do(CreateStream(*STREAM, StreamConfig(scaling=ScalingPolicy(min_segments=2))))

    def begin(self, command: Command) -> Decision:
        """Have it decided, and no more."""
        decide = DECIDE[type(command)]
        measured = Lengths()
        return self.record(command.key, lambda r, c: decide(r, command, msgspec.structs.replace(c, measured=measured)))

    def record(self, key: str, choose: Record) -> Decision:
        self._requests += 1
        return self.history.decide(key, choose, f"request-{self._requests}")

    async def finish(self, aggregate: str, key: str = KEY, before: str = "") -> None:
        """Carry out the steps of the aggregate's workflow; all, or those `before` the record of one of them."""
        state = self.history.view(key).get(aggregate)
        workflow = running(state)
        assert workflow is not None
        for step in self._steps(workflow.kind):
            state = self.history.view(key).get(aggregate)
            outcome = await step.carry_out(self._context, state)
            if step.name == before:
                return
            if step.record is not None:
                self._recorded(key, step, state, outcome)

    def _recorded(self, key: str, step: Step[Any], state: Any, outcome: Any) -> None:
        decide = step.record
        assert decide is not None
        self.record(key, lambda reader, context: decide(reader, context, state, outcome))

    def _steps(self, kind: WorkflowKind) -> tuple[Step[Any], ...]:
        tables: tuple[Workflows[Any], ...] = (WORKFLOWS, txn_workflows(100))
        return next(table[kind] for table in tables if kind in table)

    @property
    def stream(self) -> Stream:
        found = find_stream(self.history.view(KEY), STREAM)
        assert found is not None
        return found

    def split(self, segment: int) -> ScaleStream:
        """The scale that halves a segment."""
        found = self.stream.history.segment(segment)
        middle = (found.low + found.high) / 2
        return ScaleStream(*STREAM, (segment,), ((found.low, middle), (middle, found.high)), at=1)

    async def truncate(self, cut: dict[int, int]) -> None:
        await self.do(TruncateStream(*STREAM, cut))

    async def seal(self) -> None:
        await self.do(SealStream(*STREAM))

    async def delete(self) -> None:
        await self.do(DeleteStream(*STREAM))

    # Transactions.

    async def open(self) -> TransactionId:
        (opened,) = self.begin(OpenTransaction(*STREAM, 10_000)).events
        id = STREAM.transaction(opened.transaction)
        await self._create(segment_names(self.stream, id.transaction).values())
        self.record(KEY, lambda reader, context: decide_ready(reader, id, context.now))
        return id

    async def commit(self, id: TransactionId) -> None:
        self.begin(CommitTransaction(*id))
        self.record(KEY, lambda reader, context: batch.begin_batch(reader, STREAM, context, 100))
        await self.finish(STREAM.commits)

    async def delete_skipped(self) -> None:
        """Delete what commits have skipped, and record that."""
        commits = batch.find_commits(self.history.view(KEY), STREAM)
        assert commits is not None
        for skipped in commits.skipped.values():
            for name in batch.skipped_names(self.stream, skipped):
                await self.store.delete_segment(name)
        self.record(KEY, lambda reader, _: Decision(batch.record_deleted(reader, STREAM, commits.batches)))

    async def abort(self, id: TransactionId) -> None:
        self.begin(AbortTransaction(*id))
        await self.finish(id.aggregate)

    async def prepare(self, count: int) -> TransactionId:
        """Ids whose segments exist; the first of them."""
        self._requests += 1
        token = f"token-{self._requests}"
        self.record(KEY, lambda r, c: prepared.decide_reserve(r, STREAM, token, count, c.now))
        first = STREAM.transaction(first_of_range(self.stream.active_epoch.reference, token))
        found = prepared.find_range(self.history.view(KEY), first)
        assert found is not None
        await self._create(prepared.segments_of(self.stream, found.transactions))
        self.record(KEY, lambda r, c: prepared.decide_prepared(r, first, c.now))
        return first

    async def discard(self, first: TransactionId) -> None:
        """What is left of a range is deleted."""
        self.record(KEY, lambda r, c: prepared.decide_discard(r, first, c.now))
        found = prepared.find_range(self.history.view(KEY), first)
        assert found is not None
        for name in prepared.segments_of(self.stream, found.discarded):
            await self.store.delete_segment(name)
        self.record(KEY, lambda r, _c: prepared.finish_discard(r, first))

    def names(self, id: TransactionId) -> list[str]:
        """The transaction's segments."""
        return list(segment_names(self.stream, id.transaction).values())

    async def _create(self, names: Iterable[str]) -> None:
        for name in names:
            await self.store.create_segment(name, 0, 0)

    # The stores.

    def segment(self, id: int) -> MemorySegment:
        return self.store.segments[segment_name(*STREAM, id)]

    def write(self, segment: int, length: int) -> None:
        self.segment(segment).data += b"x" * length

    def lose(self, name: str) -> None:
        del self.store.segments[name]

    # Looking.

    async def verify(self, choice: Choice | None = None) -> "Reports":
        routes = Routes(lambda: CONTAINERS)
        progress = Output(json=True).progress
        reports = verify(self.history.source, self.store, routes, choice or Choice(), progress)
        return Reports([report async for report in reports])


class Reports:
    """What a run reported."""

    def __init__(self, reports: list[Report | Summary]) -> None:
        *found, summary = reports
        assert isinstance(summary, Summary)
        self.summary = summary
        self.findings = [report for report in found if isinstance(report, Finding)]
        self.not_answered = [report for report in found if isinstance(report, NotAnswered)]
        self.under_way = [report for report in found if isinstance(report, UnderWay)]

    @property
    def problems(self) -> dict[str, set[str]]:
        """By segment, in short: the part of its name behind the stream."""
        found: dict[str, set[str]] = {}
        for finding in self.findings:
            found.setdefault(finding.segment.removeprefix(f"{finding.of}/"), set()).add(finding.problem.name)
        return found
