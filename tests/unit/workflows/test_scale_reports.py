"""What segment stores report: forwarded to its topic at least once, under ids of its own, whatever stands between."""

import asyncio
from typing import Any

import pytest
from prometheus_client import REGISTRY
from support.auto_scale import auto_scale_event, controller_event
from support.memory_world import Process, settle
from support.periodic_world import PeriodicWorld

from sluice.domain.config import ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.segment import segment_id
from sluice.domain.stream import events as ev
from sluice.domain.stream.commands import ScaleStream, TruncateStream
from sluice.engine.ports import SendError
from sluice.kafka.topics import DEAD_LETTERS, JOURNAL, REQUESTS_STREAMS, SCALE
from sluice.pravega.event_frames import frame_event
from stream_workflows.report_publisher import ReportPublisher
from stream_workflows.scale_reports import KEY, STREAM, ScaleReports

TWO = StreamConfig(scaling=ScalingPolicy(min_segments=2))
SEGMENT = "_system/_requeststream/0.#epoch.0"


def report(number: int = 0, stream: str = "st", **more: Any) -> bytes:
    return frame_event(auto_scale_event("sc", stream, at=1000 + number, **more))


def job_of(world: PeriodicWorld, process: Process, keep_bytes: int = 1_000_000) -> ScaleReports:
    runtime = process.runtime
    publisher = ReportPublisher(runtime.producer, runtime.source, runtime.clock)
    return ScaleReports(runtime, world.store, publisher, 1.0, keep_bytes)


@pytest.fixture
async def world() -> PeriodicWorld:
    world = PeriodicWorld()
    await world.create(*STREAM, TWO)
    await world.create("sc", "st", StreamConfig(scaling=ScalingPolicy(ScaleType.EVENTS, 10, 2, 1)))
    return world


@pytest.fixture
def job(world: PeriodicWorld) -> ScaleReports:
    return job_of(world, world.first)


async def test_reports_come_with_what_is_true_of_their_segment(world: PeriodicWorld, job: ScaleReports) -> None:
    await world.ask(ScaleStream("sc", "st", seals=(0,), ranges=((0, 0.5), (0.5, 1)), at=2000))
    await world.finish_scale("sc", "st", {0: 100})
    low = segment_id(1, 1)
    world.write(*STREAM, 0, report(1, segment=low, splits=3) + report(2, segment=0, down=True, splits=0, silent=True))
    await job.work(STREAM)
    first, second = world.values(SCALE)
    since = world.stream("sc", "st").active_epoch.created_at
    assert first["id"] == SEGMENT + "@0" and second["id"] == f"{SEGMENT}@{len(report(1))}"
    assert first == {
        "id": SEGMENT + "@0", "by": "stream-workflows/0", "at": 1001, "scope": "sc", "stream": "st",
        "creation_id": "r-sc-st", "segment": low, "direction": "UP", "splits": 3, "silent": False,
        "range": [0.0, 0.5], "active": True, "epoch": 1, "epoch_since": since, "epoch_segments": 2,
        "neighbours": [[segment_id(1, 2), 0.5, 1.0]],
        "policy": {
            "scale_type": "BY_RATE_IN_EVENTS_PER_SEC", "target_rate": 10, "scale_factor": 2, "min_segments": 1,
        },
    }  # fmt: skip
    assert (second["direction"], second["silent"], second["active"]) == ("DOWN", True, False)
    assert second["neighbours"] == [] and second["range"] == [0.0, 1.0]
    message = world.messages(SCALE)[0]
    headers = dict(message.headers())
    assert message.key() == b"sc/st" and headers["ce_type"] == b"ScaleReport"
    assert headers["ce_id"] == first["id"].encode()


async def test_reports_on_a_partition_that_stopped_are_carried_with_the_others(
    world: PeriodicWorld, job: ScaleReports
) -> None:
    journal = world.first.journal
    ours = journal.partition_of(KEY)
    name = next(n for n in (f"stopped{i}" for i in range(100)) if journal.partition_of(f"sc/{n}") != ours)
    await world.create("sc", name, StreamConfig())
    world.broker.land(JOURNAL.name, f"sc/{name}", b"no record")
    await settle()
    world.write(*STREAM, 0, report(1, name) + report(2, name))
    await job.work(STREAM)
    assert [value["at"] for value in world.values(SCALE)] == [1001, 1002]


async def test_positions_move_on_per_segment_and_nothing_is_sent_twice(world: PeriodicWorld, job: ScaleReports) -> None:
    await job.work(STREAM)
    assert world.messages(SCALE) == [] and world.stream(*STREAM).forwarded is None
    world.write(*STREAM, 0, report(1))
    world.write(*STREAM, 1, report(2) + report(3))
    await job.work(STREAM)
    await job.work(STREAM)
    await job_of(world, world.process()).work(STREAM)
    assert sorted(v["at"] for v in world.values(SCALE)) == [1001, 1002, 1003]
    assert world.stream(*STREAM).forwarded == {0: len(report()), 1: 2 * len(report())}
    world.write(*STREAM, 0, report(4))
    await job.work(STREAM)
    assert [v["at"] for v in world.values(SCALE)][3:] == [1004]


async def test_a_topic_that_refuses_holds_the_position_and_the_ids_stay(
    world: PeriodicWorld, job: ScaleReports
) -> None:
    world.write(*STREAM, 0, report(1))
    world.refuse(SCALE, 1)
    with pytest.raises(SendError):
        await job.work(STREAM)
    assert world.stream(*STREAM).forwarded is None
    await job.work(STREAM)
    assert [v["id"] for v in world.values(SCALE)] == [SEGMENT + "@0"]


async def test_two_owners_send_the_same_ids_and_the_position_never_goes_back(
    world: PeriodicWorld, job: ScaleReports
) -> None:
    other = world.process()
    world.write(*STREAM, 0, report(1))
    other.log.freeze(other.journal.partition_of(KEY))
    await job.work(STREAM)
    world.write(*STREAM, 0, report(2))
    await job.work(STREAM)
    behind = asyncio.ensure_future(job_of(world, other).work(STREAM))
    await settle()
    assert not behind.done()
    other.log.thaw()
    await behind
    assert [v["id"] for v in world.values(SCALE)].count(SEGMENT + "@0") == 2
    assert len({v["id"] for v in world.values(SCALE)}) == 2
    assert world.stream(*STREAM).forwarded == {0: 2 * len(report())}


async def test_what_is_no_report_does_not_hold_up_the_rest(world: PeriodicWorld, job: ScaleReports) -> None:
    other, malformed = frame_event(controller_event(5, b"scale")), frame_event(b"nonsense")
    world.write(*STREAM, 0, other + malformed + report(1, stream="gone") + report(2, segment=77) + report(3))
    await job.work(STREAM)
    assert [v["at"] for v in world.values(SCALE)] == [1003]
    [letter] = world.messages(DEAD_LETTERS)
    headers = dict(letter.headers())
    assert (letter.key(), letter.value()) == (KEY.encode(), b"nonsense")
    assert headers["sluice_segment"] == SEGMENT.encode()
    assert headers["sluice_offset"] == str(len(other)).encode()
    assert b"format" in headers["sluice_reason"]
    position = (world.stream(*STREAM).forwarded or {})[0]
    assert position == len(world.store.segments[SEGMENT].data)


async def test_dead_letters_of_segments_are_counted_from_0_under_the_name_of_the_stream(
    world: PeriodicWorld, job: ScaleReports
) -> None:
    before = counted_dead_letters()
    world.write(*STREAM, 0, frame_event(b"nonsense"))
    await job.work(STREAM)
    assert before is not None and counted_dead_letters() == before + 1


def counted_dead_letters() -> float | None:
    return REGISTRY.get_sample_value("sluice_dead_letters_total", {"topic": KEY})


async def test_where_events_cannot_be_parsed_everything_up_to_the_end_is_a_dead_letter(
    world: PeriodicWorld, job: ScaleReports
) -> None:
    world.write(*STREAM, 0, report(1) + b"garbage that is no event")
    await job.work(STREAM)
    world.write(*STREAM, 0, report(2))
    await job.work(STREAM)
    assert [v["at"] for v in world.values(SCALE)] == [1001, 1002]
    [letter] = world.messages(DEAD_LETTERS)
    assert letter.value() == b"garbage that is no event"
    assert b"24 bytes skipped" in dict(letter.headers())["sluice_reason"]


async def test_an_event_that_is_not_whole_yet_is_waited_for_and_a_large_one_passed(
    world: PeriodicWorld, job: ScaleReports
) -> None:
    whole = report(1)
    world.write(*STREAM, 0, whole[:30])
    await job.work(STREAM)
    assert world.values(SCALE) == []
    world.write(*STREAM, 0, whole[30:] + frame_event(bytes(5_000_000)) + report(2))
    await job.work(STREAM)
    assert [v["at"] for v in world.values(SCALE)] == [1001, 1002]


async def test_a_scaled_request_stream_is_carried_over_all_its_segments(
    world: PeriodicWorld, job: ScaleReports
) -> None:
    world.write(*STREAM, 0, report(1))
    await world.ask(ScaleStream(*STREAM, seals=(0,), ranges=((0, 0.25), (0.25, 0.5)), at=2000))
    await world.finish_scale(*STREAM, {0: len(report())})
    new = segment_id(1, 2)
    world.write(*STREAM, new, report(2))
    reads: list[str] = []
    await job.work(STREAM)
    world.store.fault = lambda moment, _request, segment: reads.append(segment) if moment == "before" else None
    await job.work(STREAM)
    assert sorted(v["at"] for v in world.values(SCALE)) == [1001, 1002]
    assert SEGMENT not in reads, "what is sealed and forwarded is not looked at again"
    await job_of(world, world.first, keep_bytes=1).work(STREAM)
    [request] = world.requests(REQUESTS_STREAMS)
    assert isinstance(request.command, TruncateStream)
    assert request.command.cut == {1: 0, new: len(report()), segment_id(1, 3): 0}


async def test_the_stream_is_truncated_behind_what_was_carried_under_an_id_of_its_own(world: PeriodicWorld) -> None:
    size = len(report())
    job = job_of(world, world.first, keep_bytes=3 * size)
    world.write(*STREAM, 0, report(1) + report(2))
    await job.work(STREAM)
    assert world.requests(REQUESTS_STREAMS) == []
    world.write(*STREAM, 1, report(3))
    await job.work(STREAM)
    await job.work(STREAM)
    first, again = world.requests(REQUESTS_STREAMS)
    assert first.id == again.id == f"forwarded-r-_system-_requeststream-0@{2 * size}-1@{size}"
    assert first.command == TruncateStream(*STREAM, cut={0: 2 * size, 1: size})
    started = await world.ask(first.command)
    assert started is None and world.stream(*STREAM).cut == {0: 2 * size, 1: size}
    await world.store.truncate_segment(SEGMENT, 2 * size)
    await job.work(STREAM)
    assert len(world.requests(REQUESTS_STREAMS)) == 2 and len(world.values(SCALE)) == 3


async def test_a_stream_truncated_by_a_user_goes_on_at_its_head(world: PeriodicWorld, job: ScaleReports) -> None:
    world.write(*STREAM, 0, report(1) + report(2))
    await world.store.truncate_segment(SEGMENT, len(report()))
    await job.work(STREAM)
    assert [v["at"] for v in world.values(SCALE)] == [1002]
    assert len(world.events(ev.ReportsForwarded)) == 1
