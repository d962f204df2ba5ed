"""What real workflows depend on: which work holds the key queue of a command up, and so keeps it from being sent."""

import asyncio

import pytest
from support.memory_world import MemoryWorld

from sluice.domain.commands import Command
from sluice.domain.config import ReaderGroupConfig, StreamConfig, TableConfig
from sluice.domain.events import Event
from sluice.domain.ids import StreamId
from sluice.domain.names import MAX_NAME_LENGTH, key_of, scope_aggregate
from sluice.domain.reader_group.events import ReaderGroupCreationStarted
from sluice.domain.scope.commands import CreateScope
from sluice.domain.scope.events import ScopeCreated, ScopeDeletionStarted
from sluice.domain.segment import Segment
from sluice.domain.stream.commands import SealStream
from sluice.domain.stream.events import StreamCreated, StreamCreationStarted, StreamSealStarted, WorkflowQueued
from sluice.domain.stream.state import YIELD_MS
from sluice.domain.table.events import TableCreated, TableCreationStarted
from sluice.domain.transaction.commands import AbortReason, AbortTransaction
from sluice.domain.transaction.events import CommitBatchStarted, TransactionAborting, TransactionOpened
from sluice.domain.workflow import Workflow, running
from sluice.engine.dependencies import Dependencies, Dependency
from sluice.workflows.blockers import KeyQueues, aggregates_of

AGGREGATE = scope_aggregate("sc")
KEY = StreamId("sc", "x0").key
SEAL = SealStream("sc", "x0")
SEGMENTS = (Segment(0, 0.0, 1.0),)
DELETION = (ScopeCreated(scope="sc", creation_id="c", at=0), ScopeDeletionStarted(scope="sc", request="r", at=0))


class Scene:
    """A scope that is being deleted, or what else `events` begin, and what its workflow sends."""

    def __init__(self, aggregate: str = AGGREGATE, events: tuple[Event, ...] = DELETION) -> None:
        self.world = MemoryWorld()
        self.key = key_of(aggregate)
        self.sent: list[Command] = []
        self._aggregate = aggregate
        self._events = events
        self._dependencies: Dependencies | None = None

    async def begin(self) -> None:
        await self.world.seed(self.key, *self._events)
        runtime = self.world.first.runtime
        workflow = running(self.world.view(self.key).get(self._aggregate))
        assert isinstance(workflow, Workflow)
        blockers = KeyQueues(runtime.clock)
        self._dependencies = Dependencies(
            runtime.journal, runtime.model, self._send, blockers, self._aggregate, workflow
        )

    async def _send(self, _id: str, command: Command) -> None:
        self.sent.append(command)

    async def sent_within_s(self, dependency: Dependency, seconds: float) -> int:
        """How often something was sent from now on."""
        assert self._dependencies is not None
        before, loop = len(self.sent), asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end:
            async with asyncio.timeout(120):
                await self._dependencies.wait_for([dependency], self.key)
        return len(self.sent) - before

    def describe(self, dependency: Dependency) -> str:
        assert self._dependencies is not None
        return self._dependencies.describe([dependency])


@pytest.fixture
async def made() -> Scene:
    made = Scene()
    await made.begin()
    return made


def needs(command: Command, what: str = "x0") -> Dependency:
    """It never holds."""
    return Dependency(what, command.key, lambda _reader: False, command)


def stream_created(name: str) -> StreamCreationStarted:
    return StreamCreationStarted("sc", name, "i", config=StreamConfig(), created_at=0, segments=SEGMENTS)


def table_created(name: str) -> TableCreationStarted:
    return TableCreationStarted("sc", name, "i", config=TableConfig(2, 4), created_at=0, segments=SEGMENTS)


def group_created(name: str) -> ReaderGroupCreationStarted:
    config = ReaderGroupConfig(id="g", starts={})
    return ReaderGroupCreationStarted("sc", name, "i", config=config, created_at=0)


def waits_at(name: str, at_ms: int) -> WorkflowQueued:
    """A request for the stream waits for a batch of commits."""
    return WorkflowQueued(scope="sc", stream=name, kind="TruncateStream", at=at_ms)


IDLE = (stream_created("x0"), StreamCreated(scope="sc", stream="x0"))


@pytest.mark.parametrize(
    ("begun", "ended", "shown"),
    [
        (stream_created("x0"), StreamCreated(scope="sc", stream="x0"), "create-stream runs there"),
        (stream_created("_MARKx0"), StreamCreated("sc", "_MARKx0"), "stream:sc/_MARKx0: create-stream runs"),
        (table_created("x0"), TableCreated(scope="sc", table="x0"), "table:sc/x0: create-table runs"),
    ],
)
async def test_a_command_is_not_repeated_while_its_key_queue_is_held_up(
    made: Scene, begun: Event, ended: Event, shown: str
) -> None:
    await made.world.seed(KEY, begun)
    assert await made.sent_within_s(needs(SEAL), 3600) == 1
    assert made.describe(needs(SEAL)) == f"waits: x0 ({shown})"
    await made.world.seed(KEY, ended)
    assert await made.sent_within_s(needs(SEAL), 200) > 1
    assert made.describe(needs(SEAL)) == "waits: x0"


def test_a_key_queue_has_all_aggregates_of_its_key_but_transactions() -> None:
    found = list(aggregates_of("sc/x"))
    assert found[:2] == ["stream:sc/x", "stream:sc/_MARKx"] and found[-1] == "table:sc/x"
    assert next(aggregates_of("sc/_RGg")) == "group:sc/g"
    for key in ("sc/x", "sc/_RGg", "sc/_MARK", f"sc/{'n' * MAX_NAME_LENGTH}"):
        assert {key_of(aggregate) for aggregate in aggregates_of(key)} == {key}


async def test_a_group_holds_the_key_queue_of_its_state_stream_up(made: Scene) -> None:
    seal = SealStream("sc", "_RGg")
    await made.world.seed(seal.key, group_created("g"), stream_created("_RGg"), stream_created("_MARK_RGg"))
    assert await made.sent_within_s(needs(seal, "it runs"), 3600) == 1
    assert made.describe(needs(seal, "it runs")) == "waits: it runs (group:sc/g: create-reader-group runs)"


async def test_what_is_at_work_in_other_queues_keeps_no_command_back(made: Scene) -> None:
    batch = CommitBatchStarted(scope="sc", stream="x0", transactions=("t",), at=0)
    aborting = TransactionAborting(scope="sc", stream="x0", transaction="t", at=0, reason=AbortReason.USER)
    opened = TransactionOpened(scope="sc", stream="x0", transaction="t", at=0, dies_at=10**15, lease_ms=1000)
    await made.world.seed(KEY, batch, opened, aborting)
    partition_of = made.world.first.journal.partition_of
    names = (f"y{i}" for i in range(99))
    other = next(name for name in names if partition_of(StreamId("sc", name).key) == partition_of(KEY))
    await made.world.seed(KEY, stream_created(other))
    assert await made.sent_within_s(needs(SEAL), 300) > 5
    assert made.describe(needs(SEAL)) == "waits: x0"


async def test_a_request_that_waits_for_a_batch_holds_the_key_queue_while_it_records_that(made: Scene) -> None:
    now = made.world.now_ms
    await made.world.seed(KEY, *IDLE, waits_at("x0", now + 7_200_000))
    assert await made.sent_within_s(needs(SEAL), 3600) == 1
    assert made.describe(needs(SEAL)) == "waits: x0 (TruncateStream is queued there)"
    await made.world.seed(KEY, waits_at("x0", now - YIELD_MS))
    assert await made.sent_within_s(needs(SEAL), 200) > 1
    assert made.describe(needs(SEAL)) == "waits: x0"


async def test_a_seal_repeats_aborts_though_it_holds_the_key_queue_of_its_stream() -> None:
    made = Scene("stream:sc/x0", (*IDLE, StreamSealStarted(scope="sc", stream="x0", request="r", at=0)))
    await made.begin()
    abort = needs(AbortTransaction("sc", "x0", "t", AbortReason.SEAL), "t is open")
    assert await made.sent_within_s(abort, 300) > 5
    assert made.describe(abort) == "waits: t is open"


async def test_a_scope_at_work_keeps_commands_of_its_key_back(made: Scene) -> None:
    held = needs(CreateScope("sc"), "held")
    assert await made.sent_within_s(held, 300) == 1
    assert made.describe(held) == "waits: held (delete-scope runs there)"
