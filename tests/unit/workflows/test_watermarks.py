"""Watermarks on mark segments in memory: what is written, who goes on from where, and what goes wrong on the way."""

import asyncio
from collections.abc import Awaitable
from math import nan
from uuid import UUID

import pytest
from support.memory_world import Process, settle
from support.periodic_world import ALL, PeriodicWorld

from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.decision import Decision
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment
from sluice.domain.stream import events as ev
from sluice.domain.stream.commands import NoteWriterTime, RemoveWriter
from sluice.domain.stream.upper_bound import Watermark
from sluice.pravega import ConnectionFailure, Failure, RouteStale
from sluice.pravega.event_frames import split_events
from sluice.pravega.memory import MemorySegment
from sluice.pravega.store import MARK_ATTRIBUTE
from sluice.pravega.watermarks import decode_watermark, encode_watermark
from stream_workflows.stream_index import StreamIndex
from stream_workflows.watermarks import NoMarkStreamError, Watermarks

STREAM = StreamId("sc", "st")
MARK = "sc/_MARKst/0.#epoch.0"
PATIENT = StreamConfig(timestamp_aggregation_timeout_ms=1000)


def job_of(world: PeriodicWorld, process: Process) -> Watermarks:
    return Watermarks(process.journal, world.store, StreamIndex(process.journal), 10.0)


async def one_round(job: Watermarks) -> None:
    for stream in job.due(ALL):
        await job.work(stream)


async def note(world: PeriodicWorld, timestamp: int, position: dict[int, int], writer: str = "w") -> None:
    reply = await world.ask(NoteWriterTime(*STREAM, writer, timestamp, position))
    assert reply is not None and reply.status == "SUCCESS"


async def round_after(
    world: PeriodicWorld, job: Watermarks, timestamp: int, position: dict[int, int], writer: str = "w"
) -> None:
    """One round after a writer has noted its time."""
    await note(world, timestamp, position, writer)
    await one_round(job)


def mark_segment(world: PeriodicWorld) -> MemorySegment:
    return world.store.segments[MARK]


def written(world: PeriodicWorld) -> list[Watermark]:
    return [decode_watermark(event.data) for event in split_events(mark_segment(world).data, 0).events]


def bounds(world: PeriodicWorld) -> list[tuple[int, int]]:
    return [(m.lower, m.upper) for m in written(world)]


@pytest.fixture
def config() -> StreamConfig:
    return PATIENT


@pytest.fixture
async def world(config: StreamConfig) -> PeriodicWorld:
    world = PeriodicWorld()
    await world.create(*STREAM, config)
    return world


@pytest.fixture
def job(world: PeriodicWorld) -> Watermarks:
    return job_of(world, world.first)


async def test_watermarks_stand_in_the_mark_segment_with_the_attribute_one_behind(
    world: PeriodicWorld, job: Watermarks
) -> None:
    await one_round(job)
    assert mark_segment(world).data == b"" and MARK_ATTRIBUTE not in mark_segment(world).attributes
    await round_after(world, job, 1000, {0: 73})
    [first] = written(world)
    assert mark_segment(world).data == b"\0\0\0\0\0\0\0\x41" + encode_watermark(first)
    assert encode_watermark(first)[-8:] == (73).to_bytes(8, "big")
    assert mark_segment(world).attributes[MARK_ATTRIBUTE] == 0
    await round_after(world, job, 2000, {0: 80})
    assert mark_segment(world).attributes[MARK_ATTRIBUTE] == 73
    await round_after(world, job, 3000, {0: 80})
    await one_round(job)
    assert bounds(world) == [(1000, 1000), (2000, 2000), (3000, 3000)]
    assert mark_segment(world).attributes[MARK_ATTRIBUTE] == 146
    shown = world.stream(*STREAM).watermark
    assert shown is not None and (shown.lower, shown.upper) == (3000, 3000)
    assert len(world.events(ev.WatermarkEmitted)) == 3


async def test_the_next_owner_goes_on_from_the_mark_segment(world: PeriodicWorld, job: Watermarks) -> None:
    for at in (1000, 2000, 3000):
        await round_after(world, job, at, {0: at})
    reads: list[str] = []
    world.store.fault = lambda moment, request, _: reads.append(request) if moment == "before" else None
    other = job_of(world, world.process())
    await one_round(other)
    assert reads.count("ReadSegment") == 1 and "ConditionalAppend" not in reads
    await note(world, 4000, {0: 4000})
    await one_round(other)
    assert bounds(world)[-1] == (4000, 4000) and len(bounds(world)) == 4


@pytest.mark.parametrize("config", [StreamConfig()], ids=["without patience"])
async def test_of_two_that_believe_to_own_a_stream_one_goes_on(world: PeriodicWorld, job: Watermarks) -> None:
    await round_after(world, job, 1000, {0: 1})
    stale = world.process()
    other = job_of(world, stale)
    await one_round(other)
    stale.log.freeze()
    await round_after(world, job, 2000, {0: 2})
    await note(world, 1500, {0: 0}, "late")
    stale.log.thaw()
    await settle()
    await asyncio.gather(one_round(job), one_round(other))
    await note(world, 3000, {0: 3})
    for _ in range(3):
        await asyncio.gather(one_round(job), one_round(other))
    assert [lower for lower, _ in bounds(world)] == [1000, 2000, 3000]


async def test_the_owner_that_was_overtaken_rereads_and_neither_writes_twice(
    world: PeriodicWorld, job: Watermarks
) -> None:
    other = job_of(world, world.process())
    for at in range(1000, 1010):
        await note(world, at, {0: at})
        await asyncio.gather(one_round(job), one_round(other))
        await asyncio.gather(one_round(job), one_round(other))
    assert bounds(world) == [(at, at) for at in range(1000, 1010)]
    assert len(world.events(ev.WatermarkEmitted)) >= 10
    assert mark_segment(world).attributes[MARK_ATTRIBUTE] == 9 * 73


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("request_type", ["SetupAppend", "ConditionalAppend", "UpdateSegmentAttribute", "ReadSegment"])
async def test_a_lost_answer_neither_loses_nor_doubles_a_watermark(
    world: PeriodicWorld, job: Watermarks, moment: str, request_type: str
) -> None:
    broken: list[str] = []

    def fault(when: str, request: str, _segment: str) -> Awaitable[None] | None:
        if when == moment and request == request_type and not broken:
            broken.append(request)
            raise ConnectionFailure(Failure.LOST, "broken")
        return None

    lost = 0
    for at in (1000, 2000, 3000):
        await note(world, at, {0: at})
        world.store.fault = fault if at > 1000 or request_type == "UpdateSegmentAttribute" else None
        for _ in range(3):
            try:
                await one_round(job if request_type != "ReadSegment" else job_of(world, world.first))
            except RouteStale:
                lost += 1
    assert lost == 1 == len(broken)
    assert bounds(world) == [(at, at) for at in (1000, 2000, 3000)]
    shown = world.stream(*STREAM).watermark
    assert shown is not None and shown.lower == 3000
    assert mark_segment(world).attributes[MARK_ATTRIBUTE] == 2 * 73


async def test_silent_writers_are_waited_for_then_forgotten(world: PeriodicWorld, job: Watermarks) -> None:
    await note(world, 1000, {0: 1}, "a")
    await round_after(world, job, 1000, {0: 1}, "b")
    await round_after(world, job, 2000, {0: 2}, "a")
    await asyncio.sleep(0.999)
    await one_round(job)
    assert bounds(world) == [(1000, 1000)] and world.stream(*STREAM).writers.keys() == {"a", "b"}
    await asyncio.sleep(0.001)
    await one_round(job)
    assert bounds(world) == [(1000, 1000), (2000, 2000)] and world.stream(*STREAM).writers.keys() == {"a"}
    assert [event.writers for event in world.events(ev.WritersForgotten)] == [("b",)]


@pytest.mark.parametrize("config", [StreamConfig()], ids=["without patience"])
async def test_a_stream_without_writers_is_not_looked_at_any_more(world: PeriodicWorld, job: Watermarks) -> None:
    await note(world, 1000, {0: 1})
    await world.ask(RemoveWriter(*STREAM, "w"))
    await one_round(job)
    assert job.due(ALL) == [STREAM]
    await one_round(job)
    assert job.due(ALL) == [] and world.stream(*STREAM).writers == {}
    await round_after(world, job, 500, {0: 1})
    assert bounds(world) == [(1000, 1000)], "a time that was passed says nothing new"


async def test_a_mark_that_the_store_has_not_cached_is_requested_twice(world: PeriodicWorld, job: Watermarks) -> None:
    for at in (1000, 2000):
        await round_after(world, job, at, {0: at})
    real, reads = world.store.attribute, list[UUID]()

    async def cold(name: str, attribute: UUID) -> int | None:
        reads.append(attribute)
        return None if len(reads) == 1 else await real(name, attribute)

    world.store.attribute = cold  # type: ignore[method-assign,assignment]
    other = job_of(world, world.first)
    await note(world, 3000, {0: 3000})
    await one_round(other)
    assert len(reads) == 2 and mark_segment(world).attributes[MARK_ATTRIBUTE] == 146
    assert [lower for lower, _ in bounds(world)] == [1000, 2000, 3000]


async def test_what_was_read_of_one_life_is_not_shown_of_the_next(world: PeriodicWorld, job: Watermarks) -> None:
    await round_after(world, job, 1000, {0: 1})
    assert world.stream(*STREAM).watermark is not None
    real = world.store.attribute

    async def late(name: str, attribute: UUID) -> int | None:
        found = await real(name, attribute)
        gone = [ev.StreamDeleted(scope="sc", stream=s, next_number=1) for s in ("st", "_MARKst")]
        await world.do("sc/st", lambda *_: Decision(tuple(gone)))
        await world.create(*STREAM, PATIENT, "second")
        return found

    world.store.attribute = late  # type: ignore[method-assign,assignment]
    await one_round(job_of(world, world.first))
    assert world.stream(*STREAM).watermark is None


async def test_a_truncated_mark_segment_is_read_from_its_start(world: PeriodicWorld, job: Watermarks) -> None:
    for at in (1000, 2000):
        await round_after(world, job, at, {0: at})
    await world.store.truncate_segment(MARK, 146)
    await note(world, 3000, {0: 3000})
    await one_round(job_of(world, world.first))
    end = split_events(mark_segment(world).data, 146).events
    assert [decode_watermark(event.data).lower for event in end] == [3000]


async def test_the_last_event_that_is_a_watermark_is_gone_on_from(world: PeriodicWorld, job: Watermarks) -> None:
    await round_after(world, job, 1000, {0: 1000})
    forged, at = Watermark(9000, 9000, {Segment(0, 0.0, nan): 1}), len(mark_segment(world).data)
    await world.store.append(MARK, UUID(int=7), encode_watermark(forged), event_number=1, expected_offset=at)
    await note(world, 2000, {0: 2000})
    await one_round(job_of(world, world.first))
    events = split_events(mark_segment(world).data, 0).events
    assert decode_watermark(events[-1].data).lower == 2000 and len(events) == 3


@pytest.mark.parametrize("config", [StreamConfig(scaling=ScalingPolicy(min_segments=5000))], ids=["wide"])
async def test_a_watermark_over_thousands_of_segments_is_read_back(world: PeriodicWorld, job: Watermarks) -> None:
    await round_after(world, job, 1000, dict.fromkeys(range(5000), 7))
    await note(world, 2000, {4999: 9})
    await one_round(job_of(world, world.process()))
    assert [list(m.cut.values()) for m in written(world)] == [[7] * 5000, [7] * 4999 + [9]]


async def test_a_stream_that_lost_its_mark_stream_says_so(world: PeriodicWorld, job: Watermarks) -> None:
    await note(world, 1000, {0: 1})
    gone = ev.StreamDeleted(scope="sc", stream="_MARKst", next_number=1)
    await world.do("sc/st", lambda *_: Decision((gone,)))
    with pytest.raises(NoMarkStreamError):
        await one_round(job)
