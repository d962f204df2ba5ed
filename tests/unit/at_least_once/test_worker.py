"""Workers on a cluster in memory: stopped, failing, taken for dead, over a scaling, and away."""

import logging
from collections.abc import Callable
from typing import cast

import pytest
from unit.at_least_once.cluster import DONE_S, Cluster, Running, cut_off

from at_least_once.functions import Result, upper_case
from at_least_once.output import StreamOutput
from at_least_once.processor import FunctionFailed
from harness import eventually_async


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def test_two_workers_process_each_event_once(cluster: Cluster) -> None:
    await cluster.write(0, 1000)
    workers = [Running(await cluster.worker()) for _ in range(2)]
    await eventually_async(lambda: len(cluster.results()) >= 1000, DONE_S, "all events are processed")
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
        worker = Running(await cluster.worker(record_events=50))
        await eventually_async(lambda wanted=wanted: len(cluster.results()) >= wanted, DONE_S, f"{wanted} events")  # type: ignore[misc]
        await worker.stopped()
        state = await worker.worker._group.fetch()
        assert not state.readers and not state.assigned and len(state.unassigned) == 4
    last = Running(await cluster.worker())
    await eventually_async(lambda: len(cluster.results()) >= 3000, DONE_S, "all events are processed")
    await last.stopped()
    assert cluster.numbers() == list(range(3000))


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
    assert caught.group_contains(FunctionFailed, match="bad luck")
    assert len(cluster.results()) == 122
    second = Running(await cluster.worker(fails_once))
    await eventually_async(lambda: len(cluster.results()) >= 500, DONE_S, "all events are processed")
    await second.stopped()
    assert cluster.numbers() == list(range(500))


class DiskFull(Exception):
    pass


async def test_what_could_not_be_stored_is_not_recorded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    await cluster.write(0, 500)
    flush, flushes = StreamOutput.flush, 0

    async def fails_at_times(output: StreamOutput) -> None:
        nonlocal flushes
        flushes += 1
        if flushes == 8:
            raise DiskFull
        await flush(output)

    monkeypatch.setattr(StreamOutput, "flush", fails_at_times)
    first = Running(await cluster.worker(record_events=10))
    with pytest.raises(ExceptionGroup) as caught:
        await first.task
    assert caught.group_contains(DiskFull)
    assert 0 < len(cluster.results()) < 500
    second = Running(await cluster.worker())
    await eventually_async(lambda: len(set(cluster.numbers())) >= 500, DONE_S, "all events are processed")
    await second.stopped()
    assert cluster.numbers() == list(range(500))


async def test_a_worker_that_was_taken_for_dead_begins_anew(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await cluster.write(0, 200)
    away, there = Running(await cluster.worker(name="away")), Running(await cluster.worker(name="there"))
    group = there.worker._group

    async def both() -> bool:
        return {reader.partition("-")[0] for reader in (await group.fetch()).readers} == {"away", "there"}

    await eventually_async(lambda: len(cluster.results()) >= 200, DONE_S, "all events are processed")
    with cut_off(away.worker):
        await eventually_async(lambda: "begins anew" in caplog.text, DONE_S, "its position is refused")
    assert "gone: away-" in caplog.text
    await eventually_async(cast(Callable[[], object], both), DONE_S, "both are there")
    await cluster.write(200, 200)
    await eventually_async(lambda: len(cluster.results()) >= 400, DONE_S, "all events are processed")
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
    await eventually_async(lambda: len(cluster.results()) >= 1800, DONE_S, "all events are processed")
    for worker in workers:
        await worker.stopped()
    assert cluster.numbers() == list(range(1800))


async def test_what_was_truncated_is_skipped(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    await cluster.write(0, 100)
    worker = Running(await cluster.worker())
    await eventually_async(lambda: len(cluster.results()) >= 100, DONE_S, "all events are processed")
    await worker.stopped()
    await cluster.write(100, 100)
    for name in await cluster.controller.segments("tests", "stream1"):
        await cluster.store.truncate_segment(name, cluster.store.segments[name].length)
    await cluster.write(200, 100)
    worker = Running(await cluster.worker())
    await eventually_async(lambda: len(cluster.results()) >= 200, DONE_S, "the rest is processed")
    await worker.stopped()
    assert cluster.numbers() == [*range(100), *range(200, 300)]
    assert "was truncated: skipped" in caplog.text
