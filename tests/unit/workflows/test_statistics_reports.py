"""Reports of statistics: what the owner of a partition counts, when it is sent, what happens while Kafka is away."""

import msgspec
from support.memory_world import PARTITIONS, MemoryWorld

from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.events import Event
from sluice.domain.segment import Segment
from sluice.domain.stream.events import StreamCreated, StreamCreationStarted
from sluice.engine.partition import partition_of
from sluice.insight.statistics import Counter, Figures, Operation, OperationCounter, Reported, StatisticsProgress
from sluice.kafka.topics import STATISTICS
from sluice.memory.broker import MemoryMessage
from sluice.workflows.statistics import StatisticsReporter


class Reporting:
    """A reporter of a process that owns the partitions in `owned`; `sent` is what it sent, in order."""

    def __init__(self, counter: Counter, *, progress: bool = False) -> None:
        self.world, self.owned = MemoryWorld(), set(range(PARTITIONS))
        self.sent: list[tuple[str, Reported]] = []
        self.reporter = StatisticsReporter(self.world.first.runtime, counter, lambda: self.owned, progress=progress)
        self.world.broker.on_landed.append(self._landed)

    def _landed(self, message: MemoryMessage) -> None:
        if message.topic() == STATISTICS.name:
            fact = msgspec.json.decode(message.value(), type=Reported)
            headers = dict(message.headers())
            assert headers["ce_type"] == type(fact).__name__.encode() and headers["ce_id"] == fact.id.encode()
            self.sent.append((message.key().decode(), fact))

    async def create(self, *streams: str) -> None:
        for stream in streams:
            await self.world.seed(f"sc/{stream}", *created(stream))

    async def reported(self) -> dict[str, Figures]:
        """What the next reports say, by key."""
        self.sent.clear()
        await self.reporter.report()
        return {key: fact.figures for key, fact in self.sent if not isinstance(fact, StatisticsProgress)}


def created(stream: str) -> tuple[Event, ...]:
    started = StreamCreationStarted("sc", stream, "i", config=CONFIG, created_at=0, segments=(Segment(0, 0.0, 1.0),))
    return started, StreamCreated("sc", stream)


CONFIG = StreamConfig(scaling=ScalingPolicy())
CREATED = Figures(operations={Operation.CREATE: 1})


async def test_what_happened_since_the_report_before_is_reported_once() -> None:
    reporting = Reporting(OperationCounter())
    await reporting.create("a", "b")
    assert await reporting.reported() == {"sc/a": CREATED, "sc/b": CREATED}
    assert await reporting.reported() == {}


async def test_only_the_owner_of_a_partition_reports() -> None:
    reporting = Reporting(OperationCounter(), progress=True)
    reporting.owned = {partition_of("sc/a", PARTITIONS)}
    streams = [f"s{number}" for number in range(8)]
    await reporting.create("a", *streams)
    mine = {f"sc/{s}" for s in ("a", *streams) if partition_of(f"sc/{s}", PARTITIONS) in reporting.owned}
    assert (await reporting.reported()).keys() == mine
    (progress,) = (fact for _, fact in reporting.sent if isinstance(fact, StatisticsProgress))
    assert progress.partition in reporting.owned


async def test_marks_stand_behind_the_reports_in_their_partition() -> None:
    reporting = Reporting(OperationCounter(), progress=True)
    await reporting.create("a", "b")
    await reporting.reported()
    progress = {key: fact for key, fact in reporting.sent[-PARTITIONS:] if isinstance(fact, StatisticsProgress)}
    assert {fact.partition for fact in progress.values()} == set(range(PARTITIONS))
    assert all(partition_of(key, PARTITIONS) == fact.partition for key, fact in progress.items())


async def test_what_kafka_does_not_take_is_reported_later() -> None:
    reporting = Reporting(OperationCounter(), progress=True)
    await reporting.create("a")
    reporting.world.refuse(STATISTICS, 1 + PARTITIONS)
    assert await reporting.reported() == {}
    assert await reporting.reported() == {"sc/a": CREATED}
