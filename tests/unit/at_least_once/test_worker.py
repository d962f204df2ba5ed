"""Workers on a cluster in memory: stopped, failing, taken for dead, over a scaling, and away."""

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable

import pytest
from unit.at_least_once.cluster import DONE_S, SCOPE, Cluster, Running, cut_off

from at_least_once.functions import Result, upper_case
from at_least_once.groups import OtherInput
from at_least_once.output import StreamOutput
from at_least_once.processor import FunctionFailed
from harness import eventually_async
from sluice_client import split_events


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def test_two_workers_process_each_event_once(cluster: Cluster) -> None:
    await cluster.write(0, 1000)
    workers = [Running(await cluster.worker()) for _ in range(2)]
    await cluster.until_processed(1000)
    for worker in workers:
        await worker.stopped()
    assert cluster.numbers() == list(range(1000))
    assert all(event.text == "TEXT" for event in cluster.results())
    for number in range(8):
        of_key = [event.sequence for event in cluster.results() if event.key == f"key-{number}"]
        assert of_key == sorted(of_key)
    assert sum(worker.worker.done for worker in workers) == 1000


async def test_stopping_and_starting_repeats_nothing(cluster: Cluster) -> None:
    """To zero and back, in the middle of the work."""
    await cluster.write(0, 3000)
    for wanted in (1, 700, 1500, 2200):
        worker = await cluster.work_until(wanted)
        state = await worker.worker.group.shared.refresh()
        assert not state.assigned and len(state.unassigned) == 4
    await cluster.work_until(3000)
    assert cluster.numbers() == list(range(3000))


async def test_a_group_that_reads_another_stream_is_not_taken_over(cluster: Cluster) -> None:
    await cluster.write(0, 10)
    await cluster.work_until(10)
    with pytest.raises(OtherInput, match=f"^group .* reads {SCOPE}/.*: for another input, another group"):
        await cluster.worker(input="other")


async def test_workers_of_a_sealed_stream_end_when_all_is_read(cluster: Cluster) -> None:
    await cluster.write(0, 400)
    workers = [Running(await cluster.worker()) for _ in range(2)]
    await cluster.controller.seal(SCOPE, "stream1")
    async with asyncio.timeout(DONE_S):
        await asyncio.gather(*(worker.task for worker in workers))
    assert cluster.numbers() == list(range(400))


async def test_a_group_whose_stream_was_made_anew_says_that_it_reads_nothing(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.write(0, 100)
    await cluster.work_until(100)
    await cluster.controller.make_anew(SCOPE, "stream1")
    await cluster.write(100, 100)
    for _ in range(2):
        async with asyncio.timeout(DONE_S):
            await Running(await cluster.worker()).task
        assert "For a stream that was made anew, another group" in caplog.text
        caplog.clear()
    assert cluster.numbers() == list(range(100))


async def test_an_exception_repeats_nothing(cluster: Cluster) -> None:
    await cluster.write(0, 500)
    calls = 0

    def fails_once(data: bytes) -> Result:
        nonlocal calls
        calls += 1
        if calls == 123:
            raise ValueError("bad luck")
        return upper_case(data)

    first = Running(await cluster.worker(fails_once))
    with pytest.raises(ExceptionGroup) as caught:
        await first.task
    assert caught.group_contains(FunctionFailed, match="ValueError: bad luck")
    assert len(cluster.results()) == 122
    await cluster.work_until(500, fails_once)
    assert cluster.numbers() == list(range(500))


class DiskFull(Exception):
    pass


def fail_flushes(monkeypatch: pytest.MonkeyPatch, fails: Callable[[int], bool]) -> None:
    """Flushes of results fail by their number."""
    flush, numbers = StreamOutput.flush, itertools.count(1)

    async def flush_or_fail(output: StreamOutput) -> None:
        if fails(next(numbers)):
            raise DiskFull
        await flush(output)

    monkeypatch.setattr(StreamOutput, "flush", flush_or_fail)


async def test_what_could_not_be_stored_is_not_recorded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    await cluster.write(0, 500)
    fail_flushes(monkeypatch, lambda number: number == 8)
    first = Running(await cluster.worker())
    with pytest.raises(ExceptionGroup) as caught:
        await first.task
    assert caught.group_contains(DiskFull)
    assert 0 < len(cluster.results()) < 500
    await cluster.work_until(500)
    assert cluster.numbers() == list(range(500))


async def test_what_a_killed_worker_did_since_its_last_checkpoint_is_redelivered(cluster: Cluster) -> None:
    await cluster.write(0, 400)
    await cluster.lose_a_worker(cluster.results)
    stored = len(cluster.results())
    other = Running(await cluster.worker())
    await eventually_async(lambda: len(cluster.results()) == 400 + stored, DONE_S, "all events are processed")
    await other.stopped()
    assert set(cluster.numbers()) == set(range(400))


def slow(data: bytes) -> Result:
    time.sleep(0.004)
    return upper_case(data)


async def test_a_slow_function_does_not_keep_a_worker_from_its_share(cluster: Cluster) -> None:
    await cluster.write(0, 20_000)
    first = Running(await cluster.worker(slow))
    await eventually_async(lambda: cluster.results(), DONE_S, "the first worker is at work")
    second = Running(await cluster.worker(slow))

    async def shared() -> bool:
        return [len(held) for held in (await cluster.readers()).values()] == [2, 2]

    await eventually_async(shared, DONE_S, "the second worker has segments")
    assert len(cluster.results()) < 20_000
    for worker in (first, second):
        await worker.stopped()
    assert len(cluster.numbers()) == len(set(cluster.numbers()))


async def test_a_segment_that_cannot_be_read_stops_neither_the_others_nor_the_worker(cluster: Cluster) -> None:
    await cluster.write(0, 400)
    stuck = max(
        (name for name in cluster.store.segments if name.startswith("tests/stream1/")),
        key=lambda name: cluster.store.segments[name].length,
    )
    away = len(split_events(cluster.store.segments[stuck].data, 0).events)

    def fault(_moment: str, request: str, segment: str) -> Awaitable[None] | None:
        return asyncio.Event().wait() if (request, segment) == ("ReadSegment", stuck) else None  # type: ignore[return-value]

    cluster.store.fault = fault
    first = Running(await cluster.worker(patience_s=60.0))
    await eventually_async(lambda: len(cluster.results()) == 400 - away, DONE_S, "the others are processed")
    second = Running(await cluster.worker(patience_s=60.0))

    async def shared() -> bool:
        return all((await cluster.readers()).values()) and len(await cluster.readers()) == 2

    await eventually_async(shared, DONE_S, "segments move")
    async with asyncio.timeout(DONE_S):
        await first.stopped()
        await second.stopped()
    cluster.store.fault = None
    await cluster.work_until(400)
    assert cluster.numbers() == list(range(400))


async def test_the_exception_of_a_function_is_said_although_nothing_can_be_stored(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.write(0, 10)

    def fails(_data: bytes) -> Result:
        raise ValueError("bad luck")

    worker = await cluster.worker(fails)
    fail_flushes(monkeypatch, lambda _: True)
    with pytest.raises(ExceptionGroup) as caught:
        await Running(worker).task
    assert caught.group_contains(DiskFull)
    assert "bad luck" in caplog.text and "in fails" in caplog.text


async def test_a_worker_that_was_taken_for_dead_begins_anew(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await cluster.write(0, 200)
    away, there = Running(await cluster.worker(name="away")), Running(await cluster.worker(name="there"))

    async def both() -> bool:
        return {reader.partition("-")[0] for reader in await cluster.readers()} == {"away", "there"}

    await cluster.until_processed(200)
    with cut_off(away.worker):
        await eventually_async(lambda: "begins anew" in caplog.text, DONE_S, "it finds out")
    assert "gone: away-" in caplog.text
    await eventually_async(both, DONE_S, "both are there")
    await cluster.write(200, 200)
    await cluster.until_processed(400)
    for worker in (away, there):
        await worker.stopped()
    assert sorted(set(cluster.numbers())) == list(range(400))


async def test_both_streams_may_be_scaled(cluster: Cluster) -> None:
    await cluster.write(0, 600)
    workers = [Running(await cluster.worker()) for _ in range(2)]
    await cluster.controller.scale("tests", "stream1", 2)
    await cluster.write(600, 600)
    await cluster.controller.scale("tests", "stream2", 6)
    await cluster.controller.scale("tests", "stream1", 5)
    await cluster.write(1200, 600)
    await cluster.until_processed(1800)
    for worker in workers:
        await worker.stopped()
    assert cluster.numbers() == list(range(1800))


async def test_what_was_truncated_is_skipped(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    await cluster.write(0, 100)
    await cluster.work_until(100)
    await cluster.write(100, 100)
    for name in await cluster.controller.segments("tests", "stream1"):
        await cluster.store.truncate_segment(name, cluster.store.segments[name].length)
    await cluster.write(200, 100)
    await cluster.work_until(200)
    assert cluster.numbers() == [*range(100), *range(200, 300)]
    assert "truncated before it was read" in caplog.text
