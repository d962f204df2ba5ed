"""The driver of periodic work, in virtual time; the index of streams that need it."""

import asyncio
from collections.abc import Collection

from prometheus_client import REGISTRY
from support.periodic_world import ALL, PeriodicWorld
from support.subscribing import subscribing

from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.stream import decide
from sluice.domain.stream.commands import (
    CreateStream,
    DeleteStream,
    NoteWriterTime,
    RemoveWriter,
    SealStream,
    UpdateStream,
    UpdateSubscriberCut,
)
from sluice.domain.transaction.stream_deletion import finish_delete
from sluice.kafka.topics import JOURNAL
from sluice.memory.log import ENDS_TIMEOUT_S
from stream_workflows.periodic import Periodic
from stream_workflows.report_publisher import ReportPublisher
from stream_workflows.retention_reports import RetentionChanges
from stream_workflows.stream_index import StreamIndex

POLICY = RetentionPolicy(RetentionType.SIZE, 100, 1000)
SCALES = StreamConfig(scaling=ScalingPolicy(ScaleType.EVENTS, 10, 2, 1))


class Job:
    """Notes when it worked on what; fails for streams called `bad`."""

    def __init__(self, name: str, streams: Collection[StreamId], interval_s: float = 10.0, takes_s: float = 0) -> None:
        self.name = name
        self.interval_s = interval_s
        self.streams = streams
        self.looked_at: list[frozenset[int]] = []
        self.worked: list[tuple[float, str]] = []
        self.running = 0
        self.most = 0
        self.takes_s = takes_s

    def due(self, partitions: frozenset[int]) -> Collection[StreamId]:
        self.looked_at.append(partitions)
        return self.streams if partitions else ()

    async def work(self, stream: StreamId) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(self.takes_s)
        self.running -= 1
        self.worked.append((asyncio.get_running_loop().time(), stream[1]))
        if stream[1] == "bad":
            raise ValueError("bad")


def failures(job: str) -> float:
    return REGISTRY.get_sample_value("sluice_periodic_failures_total", {"task": job}) or 0.0


async def run_for(periodic: Periodic, seconds: float) -> None:
    task = asyncio.get_running_loop().create_task(periodic.run())
    await asyncio.sleep(seconds)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_jobs_have_rhythms_of_their_own_and_a_failure_ends_nothing() -> None:
    world = PeriodicWorld()
    slow = Job("slow", [StreamId("sc", "bad"), StreamId("sc", "good")], 10)
    fast = Job("fast", [StreamId("sc", "x")], 1)
    await run_for(Periodic(world.first.journal, lambda: {1, 2}, [slow, fast]), 25)
    assert [at for at, name in slow.worked if name == "good"] == [0, 10, 20]
    assert len(fast.worked) == 25
    assert set(slow.looked_at) == {frozenset({1, 2})}
    assert failures("slow") == 3 and failures("fast") == 0


async def test_the_interval_counts_from_the_end_of_a_round_and_streams_are_bounded() -> None:
    job = Job("bounded", [StreamId("sc", f"s{i}") for i in range(10)], 10, takes_s=5)
    await run_for(Periodic(PeriodicWorld().first.journal, lambda: {0}, [job], at_once=4), 30)
    assert job.most == 4
    assert sorted({at for at, _ in job.worked}) == [5, 10, 15, 30]


async def test_without_partitions_or_behind_a_journal_that_is_away_nothing_is_done() -> None:
    world = PeriodicWorld()
    job = Job("idle", [StreamId("sc", "s")], 1)
    owned: set[int] = set()
    periodic = Periodic(world.first.journal, lambda: owned, [job])
    await run_for(periodic, 5)
    assert job.worked == []
    owned.add(0)

    world.broker.go_away(60)
    await run_for(periodic, 3 * (ENDS_TIMEOUT_S + 1))
    assert job.worked == [] and failures("idle") == 3


async def test_a_partition_of_the_journal_that_stopped_keeps_no_work_from_the_others() -> None:
    world = PeriodicWorld()
    job = Job("healthy", [StreamId("sc", "s")], 10)
    stopped = world.first.journal.partition_of("key")
    world.broker.land(JOURNAL.name, "key", b"no record")
    await run_for(Periodic(world.first.journal, lambda: ALL, [job]), 5)
    assert job.looked_at == [ALL - {stopped}] and len(job.worked) == 1


async def test_the_index_follows_the_journal() -> None:
    world = PeriodicWorld()
    await world.create("sc", "old", StreamConfig(retention=POLICY))
    index = StreamIndex(world.first.journal)
    assert index.unannounced(ALL) == [("sc", "old")]
    assert index.unannounced(ALL - {world.first.journal.partition_of("sc/old")}) == []

    await world.create("sc", "st", StreamConfig())
    assert index.with_writers(ALL) == []
    await world.ask(NoteWriterTime("sc", "st", "w", 1, {0: 1}))
    await world.ask(RemoveWriter("sc", "st", "w"))
    assert index.with_writers(ALL) == [("sc", "st")]
    await world.ask(UpdateStream("sc", "st", StreamConfig(retention=POLICY)))
    assert sorted(index.unannounced(ALL)) == [("sc", "old"), ("sc", "st")]
    await world.ask(UpdateStream("sc", "old", StreamConfig()))
    assert index.unannounced(ALL) == [("sc", "st")]
    assert index.sampled(ALL) == []
    await world.create("sc", "scales", SCALES)
    assert index.sampled(ALL) == [("sc", "scales")]


async def test_the_streams_of_our_own_scope_have_no_watermarks() -> None:
    world = PeriodicWorld()
    await world.create("_system", "st", StreamConfig())
    index = StreamIndex(world.first.journal)
    await world.ask(NoteWriterTime("_system", "st", "w", 1, {0: 1}))
    assert index.with_writers(ALL) == [] == StreamIndex(world.first.journal).with_writers(ALL)


async def test_nothing_is_asked_of_the_journal_where_nothing_is_due() -> None:
    world = PeriodicWorld()
    world.broker.go_away(60)
    job = Job("undue", [], 1)
    await run_for(Periodic(world.first.journal, lambda: {0}, [job]), 4.5)
    assert len(job.looked_at) == 5 and failures("undue") == 0


async def test_changes_are_taken_once_and_only_for_streams_with_a_policy() -> None:
    world = PeriodicWorld()
    index = StreamIndex(world.first.journal)
    await world.create("sc", "kept", StreamConfig(retention=POLICY))
    await world.create("sc", "plain", StreamConfig())
    for command in subscribing("sc/rg", ("sc", "kept"), ("sc", "plain")):
        await world.ask(command)
    for name in ("kept", "plain"):
        assert await world.ask(UpdateSubscriberCut("sc", name, "sc/rg", "id", 0, {0: 0})) is not None
    partition = world.first.journal.partition_of("sc/kept")
    assert index.changed(ALL) == [("sc", "kept")] == index.changed(ALL)
    index.take_change(partition, StreamId("sc", "kept"))
    assert index.changed(ALL) == []
    index.put_back(partition, StreamId("sc", "kept"))
    assert index.changed(ALL - {partition}) == [] == index.changed(ALL), "that of others is dropped"


async def delete(world: PeriodicWorld) -> None:
    """Create the stream `st` with a policy, and delete it."""
    key = StreamId("sc", "st").key
    await world.create("sc", "st", StreamConfig(retention=POLICY))
    await world.ask(SealStream("sc", "st"))
    await world.do(key, lambda reader, _: decide.finish_seal(reader, StreamId("sc", "st")))
    await world.ask(DeleteStream("sc", "st"))
    await world.do(key, lambda reader, _: finish_delete(reader, StreamId("sc", "st")))


async def test_an_instance_without_partitions_collects_no_deleted_streams() -> None:
    world = PeriodicWorld()
    index, runtime = StreamIndex(world.first.journal), world.first.runtime
    publisher = ReportPublisher(runtime.producer, runtime.source, runtime.clock)
    job = RetentionChanges(world.first.journal, index, publisher, 1)
    await delete(world)
    await Periodic(world.first.journal, tuple, [job]).round(job)
    assert index.changed(ALL) == []


async def test_a_deletion_is_a_change() -> None:
    world = PeriodicWorld()
    index = StreamIndex(world.first.journal)
    await delete(world)
    assert index.changed(ALL) == [("sc", "st")]
    await world.ask(CreateStream("sc", "st", StreamConfig()), "again")
    assert index.unannounced(ALL) == []
