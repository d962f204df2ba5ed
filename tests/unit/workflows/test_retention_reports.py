"""Retention reports: samples of the tail, changes, and the end of a policy for certain."""

import asyncio

import msgspec
import pytest
from support.memory_world import BEGAN_MS, LateClock, Process
from support.periodic_world import ALL, PeriodicWorld
from support.subscribing import subscribing

from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.policy.retention import observe
from sluice.domain.segment import segment_id, segment_name
from sluice.domain.stream import decide
from sluice.domain.stream import events as ev
from sluice.domain.stream.commands import (
    DeleteStream,
    ScaleStream,
    SealStream,
    TruncateStream,
    UpdateStream,
    UpdateSubscriberCut,
)
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.transaction.stream_deletion import finish_delete
from sluice.engine.ports import SendError
from sluice.kafka.topics import RETENTION
from sluice.lookback.rate_history import Sample, history_of
from sluice.policies.rules import RetentionRule
from stream_workflows.report_publisher import ReportPublisher
from stream_workflows.retention_reports import RetentionChanges, RetentionSamples
from stream_workflows.stream_index import StreamIndex

STREAM = StreamId("sc", "st")
POLICY = RetentionPolicy(RetentionType.TIME, 100, 1000)
KEPT = StreamConfig(scaling=ScalingPolicy(min_segments=2), retention=POLICY)
LOW, HIGH = segment_id(1, 2), segment_id(1, 3)


class Jobs:
    def __init__(self, world: PeriodicWorld, process: Process | None = None) -> None:
        runtime = (process or world.first).runtime
        publisher = ReportPublisher(runtime.producer, runtime.source, runtime.clock)
        self.index = StreamIndex(runtime.journal)
        self.samples = RetentionSamples(runtime.journal, world.store, self.index, publisher, 60)
        self.changes = RetentionChanges(runtime.journal, self.index, publisher, 1)

    async def sample(self) -> None:
        for stream in self.samples.due(ALL):
            await self.samples.work(stream)

    async def change(self) -> int:
        due = self.changes.due(ALL)
        for stream in due:
            await self.changes.work(stream)
        return len(due)


@pytest.fixture
async def world() -> PeriodicWorld:
    return PeriodicWorld()


@pytest.fixture
async def jobs(world: PeriodicWorld) -> Jobs:
    """They are there before the stream is."""
    jobs = Jobs(world)
    await world.create(*STREAM, KEPT)
    return jobs


async def subscribe(world: PeriodicWorld, group: str) -> None:
    for command in subscribing(group, STREAM):
        await world.ask(command)


async def truncate(world: PeriodicWorld, cut: dict[int, int]) -> None:
    await world.ask(TruncateStream(*STREAM, cut=cut))
    await world.do("sc/st", lambda reader, _: decide.finish_truncate(reader, STREAM))


async def seal(world: PeriodicWorld) -> None:
    await world.ask(SealStream(*STREAM))
    await world.do("sc/st", lambda reader, _: decide.finish_seal(reader, STREAM))


async def delete(world: PeriodicWorld) -> None:
    """The stream is sealed."""
    await world.ask(DeleteStream(*STREAM))
    await world.do("sc/st", lambda reader, _: finish_delete(reader, STREAM))


async def test_a_sample_is_a_cut_over_the_tail_with_all_bytes_before_it(world: PeriodicWorld, jobs: Jobs) -> None:
    world.write(*STREAM, 0, bytes(70))
    world.write(*STREAM, 1, bytes(30))
    await jobs.change()
    await jobs.sample()
    await truncate(world, {0: 50, 1: 0})
    await world.ask(ScaleStream(*STREAM, seals=(1,), ranges=((0.5, 0.75), (0.75, 1)), at=2000))
    await world.finish_scale(*STREAM, {1: 30})
    world.write(*STREAM, HIGH, bytes(5))
    await asyncio.sleep(60)
    await jobs.sample()
    _announcement, first, second = world.values(RETENTION)
    assert first["sample"] == {"cut": {"0": 70, "1": 30}, "size": 100} and first["at"] == BEGAN_MS
    assert first["policy"] == {"retention_type": "TIME", "minimum": 100, "maximum": 1000}
    assert second["sample"] == {"cut": {"0": 70, str(LOW): 0, str(HIGH): 5}, "size": 105}
    assert second["head"] == {"cut": {"0": 50, "1": 0}, "size": 50}
    assert second["ranges"] == {"0": [0, 0.5], "1": [0.5, 1], str(LOW): [0.5, 0.75], str(HIGH): [0.75, 1]}
    assert first["id"] != second["id"] and first["creation_id"] == "r-sc-st"


async def test_subscribers_that_have_reported_come_with_their_cuts_and_sizes(world: PeriodicWorld, jobs: Jobs) -> None:
    world.write(*STREAM, 0, bytes(70))
    for name in ("sc/far", "sc/near", "sc/new"):
        await subscribe(world, name)
    for name, cut in (("sc/far", {0: 60, 1: 0}), ("sc/near", {0: 10, 1: 0})):
        reply = await world.ask(UpdateSubscriberCut(*STREAM, name, "id", 0, cut))
        assert reply is not None and reply.status == "SUCCESS"
    await truncate(world, {0: 40, 1: 0})
    assert await jobs.change() == 1 and await jobs.change() == 0
    [report] = world.values(RETENTION)
    assert report["sample"] is None and report["head"]["size"] == 40
    assert report["subscribers"] == {
        "sc/far": {"cut": {"0": 60, "1": 0}, "size": 60},
        "sc/near": {"cut": {"0": 40, "1": 0}, "size": 40},
    }


async def test_a_sample_that_a_truncation_overtook_is_dropped(world: PeriodicWorld, jobs: Jobs) -> None:
    world.write(*STREAM, 0, bytes(70))
    real = world.store.segment_info

    async def overtaken(name: str) -> object:
        info = await real(name)
        if name == segment_name(*STREAM, 0):
            world.store.segment_info = real  # type: ignore[method-assign]
            world.write(*STREAM, 0, bytes(10))
            await truncate(world, {0: 75, 1: 0})
        return info

    world.store.segment_info = overtaken  # type: ignore[method-assign,assignment]
    await jobs.change()
    await jobs.sample()
    assert [t["sample"] for t in world.values(RETENTION)] == [None]


async def test_no_sample_tells_of_a_policy_whose_end_would_not_be_reported(world: PeriodicWorld, jobs: Jobs) -> None:
    await jobs.sample()
    await world.ask(UpdateStream(*STREAM, msgspec.structs.replace(KEPT, retention=None)))
    assert await jobs.change() == 0 and world.values(RETENTION) == []


async def test_a_sealed_stream_is_not_sampled_nor_one_without_a_policy(world: PeriodicWorld, jobs: Jobs) -> None:
    await world.create("sc", "plain", StreamConfig())
    await jobs.change()
    await seal(world)
    await jobs.sample()
    assert jobs.samples.due(ALL) == [] and [t["sample"] for t in world.values(RETENTION)] == [None]


async def test_a_stream_that_scales_is_sampled_and_nothing_is_kept_of_it_for_retention(world: PeriodicWorld) -> None:
    jobs = Jobs(world)
    await world.create(*STREAM, StreamConfig(scaling=ScalingPolicy(ScaleType.EVENTS, 10, 2, 1)))
    world.write(*STREAM, 0, bytes(70))
    assert await jobs.change() == 0
    await jobs.sample()
    [sample] = world.values(RETENTION)
    assert (sample["sample"]["cut"], sample["policy"]) == ({"0": 70}, None)
    report = msgspec.json.decode(msgspec.json.encode(sample), type=RetentionReport)
    assert RetentionRule().observe(None, report, BEGAN_MS) is None


async def test_while_nothing_is_written_few_samples_of_what_only_scales_are_sent(world: PeriodicWorld) -> None:
    jobs = Jobs(world)
    await world.create(*STREAM, StreamConfig(scaling=ScalingPolicy(ScaleType.EVENTS, 10, 2, 1)))
    for minute in range(13):
        if minute in (1, 6):
            world.write(*STREAM, 0, bytes(60))
        await jobs.sample()
        await asyncio.sleep(60)
    sent = [(t["at"] - BEGAN_MS, t["sample"]["cut"]["0"]) for t in world.values(RETENTION)]
    expected = ((0, 0), (1, 60), (2, 60), (5, 60), (6, 120), (7, 120), (12, 120))
    assert sent == [(minute * 60_000, length) for minute, length in expected]
    _, [rates] = history_of([Sample(at, {0: length}) for at, length in sent], 0, 12 * 60_000, 60_000)
    assert rates.bytes_per_s == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], "as if all had been sent"


async def test_a_sample_has_the_time_after_it_was_measured(world: PeriodicWorld, jobs: Jobs) -> None:
    real = world.store.segment_info

    async def slow(name: str) -> object:
        info = await real(name)
        await asyncio.sleep(5)
        return info

    world.store.segment_info = slow  # type: ignore[method-assign,assignment]
    await jobs.change()
    await jobs.sample()
    assert [t["at"] for t in world.values(RETENTION)] == [BEGAN_MS, BEGAN_MS + 5_000]


async def test_a_later_report_has_a_later_version_whatever_the_clock_says(world: PeriodicWorld, jobs: Jobs) -> None:
    await jobs.change()
    await jobs.sample()
    await world.ask(UpdateStream(*STREAM, msgspec.structs.replace(KEPT, retention=None)))
    late = Jobs(world, world.process(LateClock(world.broker, 2000)))
    await late.change()
    await seal(world)
    await delete(world)
    late.index.put_back(world.first.journal.partition_of("sc/st"), STREAM)
    await late.change()
    reports = [msgspec.convert(t, RetentionReport, strict=False) for t in world.values(RETENTION)]
    versions = [report.version for report in reports]
    assert versions[0] > 0 and versions == sorted(versions) and versions[-1] > versions[-2]
    state = observe(None, reports[0])
    for report in reports:
        state = observe(state, report)
    assert state.policy is None


async def test_a_policy_is_reported_until_the_journal_says_so(world: PeriodicWorld, jobs: Jobs) -> None:
    world.refuse(RETENTION, 2)
    for _ in range(2):
        with pytest.raises(SendError):
            await jobs.change()
    assert await jobs.change() == 1 and await jobs.change() == 0
    assert [t["policy"]["minimum"] for t in world.values(RETENTION)] == [100]
    await world.ask(UpdateStream(*STREAM, msgspec.structs.replace(KEPT, tags=("a",))))
    assert await jobs.change() == 0
    await world.ask(UpdateStream(*STREAM, msgspec.structs.replace(KEPT, retention=None)))
    assert await Jobs(world).change() == 1, "the next instance reports it, too"
    assert await jobs.change() == 0
    assert world.values(RETENTION)[-1]["policy"] is None
    assert [e.policy for e in world.events(ev.RetentionPolicyAnnounced)] == [POLICY, None]


async def test_a_change_that_could_not_be_reported_is_reported_later(world: PeriodicWorld, jobs: Jobs) -> None:
    await jobs.change()
    await subscribe(world, "sc/rg")
    await world.ask(UpdateSubscriberCut(*STREAM, "sc/rg", "id", 0, {0: 0, 1: 0}))
    world.refuse(RETENTION, 1)
    with pytest.raises(SendError):
        await jobs.change()
    assert await jobs.change() == 1
    assert list(world.values(RETENTION)[-1]["subscribers"]) == ["sc/rg"]


async def test_the_seal_of_a_stream_ends_its_policy_and_so_does_its_deletion(world: PeriodicWorld, jobs: Jobs) -> None:
    await jobs.change()
    await seal(world)
    assert await jobs.change() == 1 and await jobs.change() == 0
    assert [t["policy"] is None for t in world.values(RETENTION)] == [False, True]
    await delete(world)
    await jobs.change()
    report = world.values(RETENTION)[-1]
    assert report["policy"] is None and report["creation_id"] == "" and report["head"] == {"cut": {}, "size": 0}


async def test_ids_follow_from_what_is_reported(world: PeriodicWorld, jobs: Jobs) -> None:
    await jobs.change()
    for _ in range(2):
        await jobs.sample()
    world.write(*STREAM, 0, b"x")
    await jobs.sample()
    await asyncio.sleep(0.001)
    await jobs.sample()
    announcement, same, again, other, later = (t["id"] for t in world.values(RETENTION))
    assert same == again and len({announcement, same, other, later}) == 4
