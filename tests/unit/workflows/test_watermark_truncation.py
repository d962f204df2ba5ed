"""Watermarks behind the head of their stream: dropped once no reader can need them, by any owner."""

from math import nan
from uuid import UUID

import pytest
from support.memory_world import Process
from support.periodic_world import ALL, PeriodicWorld

from sluice.domain.config import StreamConfig
from sluice.domain.ids import StreamId
from sluice.domain.segment import Segment
from sluice.domain.stream import decide
from sluice.domain.stream.commands import NoteWriterTime, TruncateStream
from sluice.domain.stream.upper_bound import Watermark
from sluice.kafka.topics import REQUESTS_STREAMS
from sluice.pravega.store import MARK_ATTRIBUTE
from sluice.pravega.watermarks import encode_watermark
from stream_workflows.stream_index import StreamIndex
from stream_workflows.watermark_truncation import WatermarkTruncation
from stream_workflows.watermarks import Watermarks

STREAM = StreamId("sc", "st")
MARK = "sc/_MARKst/0.#epoch.0"
SIZE = 73
"""Of a watermark with one segment, with its header."""


class Jobs:
    def __init__(self, world: PeriodicWorld, process: Process, most: int = 100) -> None:
        index = StreamIndex(process.journal)
        self.watermarks = Watermarks(process.journal, world.store, index, 10.0)
        self.marks = WatermarkTruncation(process.runtime, world.store, index, 60.0, most)

    async def look(self) -> list[StreamId]:
        due = self.marks.due(ALL)
        for stream in due:
            await self.marks.work(stream)
        return due


@pytest.fixture
async def world() -> PeriodicWorld:
    """A stream of 100 bytes with watermarks at 10, 20, 30, 40 and 50."""
    world = PeriodicWorld()
    await world.create(*STREAM, StreamConfig(timestamp_aggregation_timeout_ms=1000))
    world.write(*STREAM, 0, bytes(100))
    watermarks = Jobs(world, world.first).watermarks
    for at in (10, 20, 30, 40, 50):
        await world.ask(NoteWriterTime(*STREAM, "w", at, {0: at}))
        await watermarks.work(STREAM)
    assert len(world.store.segments[MARK].data) == 5 * SIZE
    return world


@pytest.fixture
def jobs(world: PeriodicWorld) -> Jobs:
    return Jobs(world, world.first)


async def truncate(world: PeriodicWorld, name: str, at: int) -> None:
    await world.ask(TruncateStream("sc", name, cut={0: at}))
    await world.store.truncate_segment(f"sc/{name}/0.#epoch.0", at)
    await world.do("sc/st", lambda reader, _: decide.finish_truncate(reader, StreamId("sc", name)))


def truncations(world: PeriodicWorld) -> list[int]:
    """Where the mark stream was to be truncated, each once."""
    found = {request.id: request.command for request in world.requests(REQUESTS_STREAMS)}
    commands = [command for command in found.values() if isinstance(command, TruncateStream)]
    assert all((command.scope, command.stream) == ("sc", "_MARKst") for command in commands)
    return [command.cut[0] for command in commands]


async def test_while_the_head_stands_still_nothing_is_looked_at(jobs: Jobs) -> None:
    assert await jobs.look() == []


async def test_marks_go_when_the_head_moves_and_the_last_two_stay(world: PeriodicWorld, jobs: Jobs) -> None:
    await truncate(world, "st", 35)
    assert await jobs.look() == [STREAM]
    assert truncations(world) == [2 * SIZE], "that of 30 tells readers at the head how far time had come"
    assert await jobs.look() == [], "once is enough"
    await truncate(world, "_MARKst", 2 * SIZE)
    await truncate(world, "st", 100)
    await jobs.look()
    assert truncations(world) == [2 * SIZE, 3 * SIZE]
    assert world.store.segments[MARK].attributes[MARK_ATTRIBUTE] >= 3 * SIZE


async def test_watermarks_go_on_behind_a_truncated_mark_stream(world: PeriodicWorld, jobs: Jobs) -> None:
    await truncate(world, "st", 100)
    await jobs.look()
    await truncate(world, "_MARKst", truncations(world)[0])
    await world.ask(NoteWriterTime(*STREAM, "w", 60, {0: 100}))
    await Jobs(world, world.process()).watermarks.work(STREAM)
    shown = world.stream(*STREAM).watermark
    assert shown is not None and shown.lower == 60
    assert len(world.store.segments[MARK].data) == 3 * SIZE, "three of six are gone"


async def test_the_next_owner_requests_the_same_truncation(world: PeriodicWorld, jobs: Jobs) -> None:
    await truncate(world, "st", 35)
    await jobs.look()
    assert await Jobs(world, world.process()).look() == [STREAM]
    assert len(world.requests(REQUESTS_STREAMS)) == 2 and truncations(world) == [2 * SIZE]


async def test_of_many_marks_some_go_each_time(world: PeriodicWorld) -> None:
    jobs = Jobs(world, world.first, most=3)
    await truncate(world, "st", 100)
    rounds = 0
    while await jobs.look():
        last = truncations(world)[-1]
        await truncate(world, "_MARKst", last)
        rounds += 1
        assert rounds < 10
    assert truncations(world)[-1] == 3 * SIZE


async def test_more_marks_than_a_round_takes_are_read_once_while_the_head_stands(
    world: PeriodicWorld,
) -> None:
    jobs = Jobs(world, world.first, most=3)
    await truncate(world, "st", 5)
    assert await jobs.look() == [STREAM]
    assert await jobs.look() == [] and truncations(world) == []
    await truncate(world, "st", 35)
    await jobs.look()
    assert truncations(world) == [2 * SIZE]


async def test_a_stream_that_is_gone_or_busy_is_left_alone(world: PeriodicWorld, jobs: Jobs) -> None:
    await truncate(world, "st", 35)
    await world.ask(TruncateStream("sc", "_MARKst", cut={0: SIZE}))
    assert await jobs.look() == [STREAM] and truncations(world) == []
    await world.do("sc/st", lambda reader, _: decide.finish_truncate(reader, StreamId("sc", "_MARKst")))
    await world.store.truncate_segment(MARK, SIZE)
    await jobs.look()
    assert truncations(world) == [2 * SIZE]
    await jobs.marks.work(StreamId("sc", "none"))


async def test_an_event_that_is_no_watermark_is_passed_over(world: PeriodicWorld, jobs: Jobs) -> None:
    await append_to_marks(world, Watermark(60, 60, {Segment(0, 0.0, nan): 60}))
    await truncate(world, "st", 100)
    assert await jobs.look() == [STREAM]
    assert truncations(world) == [3 * SIZE], "of five watermarks two stay"


async def append_to_marks(world: PeriodicWorld, forged: Watermark) -> None:
    """As a client does that may write to the mark stream."""
    at = len(world.store.segments[MARK].data)
    event = encode_watermark(forged)
    await world.store.append(MARK, UUID(int=7), event, event_number=1, expected_offset=at)
