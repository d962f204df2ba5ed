"""Readers of a group when the store or the controller is slow or away, and when their callers are cancelled."""

import asyncio
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from unit.client.reader_cluster import EARLY, FIRST, SECOND, SOON_S, THIRD, Cluster, make_checkpoint, read_all, take

from sluice.controller_api import controller_pb2 as pb
from sluice.pravega import ConnectionFailure, Failure
from sluice.pravega.reader_group_config import Retention
from sluice.pravega.reader_group_state import UpdatingConfig
from sluice_client import Event, Unavailable
from sluice_client.groups.decisions import ReaderExists
from sluice_client.groups.reader import Item, open_reader


async def test_a_controller_that_is_away_stops_no_reading(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is to publish a checkpoint, to say what follows a segment, and which configuration the group has."""
    call, back = cluster.client.controller.call, asyncio.Event()
    waiting: set[type] = set()

    async def away(rpc: Any, request: Any) -> Any:
        if isinstance(request, pb.SubscriberStreamCut | pb.SegmentId | pb.ReaderGroupInfo):
            waiting.add(type(request))
            await back.wait()
        return await call(rpc, request)

    reader = await cluster.reader("r", retention=Retention.AUTOMATIC)
    await cluster.write(EARLY, b"1")
    await cluster.client.streams.scale([FIRST], [(0.0, 0.5)])
    assert await take(reader, 1) == [b"1"] and await reader.next(timeout_s=1.0) is None
    monkeypatch.setattr(cluster.client.controller, "call", away)
    await (await cluster.group()).shared.append([UpdatingConfig(True)])
    await make_checkpoint(cluster, reader, "c")
    for number in range(50):
        before = asyncio.get_running_loop().time()
        await cluster.store.append_events(SECOND, uuid4(), [b"%d" % number], 1)
        assert await take(reader, 1) == [b"%d" % number]
        assert asyncio.get_running_loop().time() - before < 0.1
        await asyncio.sleep(0.1)
    assert waiting == {pb.SubscriberStreamCut, pb.SegmentId, pb.ReaderGroupInfo}
    assert not (await cluster.state()).checkpoints.published and reader.segments == [SECOND, FIRST]
    back.set()
    assert await reader.next(timeout_s=5.0) is None
    assert (await cluster.state()).checkpoints.published and reader.segments == [SECOND, THIRD]


async def test_a_call_of_the_controller_that_failed_is_an_error_and_made_anew(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, failures = cluster.client.controller.call, [Unavailable("the controller is away")]

    async def fail_once(rpc: Any, request: Any) -> Any:
        if isinstance(request, pb.SegmentId) and failures:
            raise failures.pop()
        return await call(rpc, request)

    reader = await cluster.reader("r")
    await cluster.client.streams.scale([FIRST, SECOND], [(0.0, 1.0)])
    assert await reader.next(timeout_s=5.0) is None
    monkeypatch.setattr(cluster.client.controller, "call", fail_once)
    await make_checkpoint(cluster, reader, "c")
    with pytest.raises(Unavailable):
        await reader.next()
    assert await reader.next(timeout_s=5.0) is None
    assert reader.segments == [THIRD]


async def test_a_slow_store_makes_no_caller_wait_beyond_its_deadline(cluster: Cluster) -> None:
    """What the reader does in its group goes on: its checkpoint is complete at last."""
    await cluster.write(EARLY, b"1", b"2")
    reader = await cluster.reader("r")
    await take(reader, 1)
    await make_checkpoint(cluster, reader, "c")

    async def delay(moment: str, _request: str, _segment: str) -> None:
        await asyncio.sleep(1.0 if moment == "before" else 0.0)

    cluster.store.fault = delay
    for _ in range(10):
        before = asyncio.get_running_loop().time()
        assert await reader.next(timeout_s=0.05) is None
        assert asyncio.get_running_loop().time() - before == pytest.approx(0.05)
    cluster.store.fault = None
    assert await take(reader, 1) == [b"2"]
    assert (await cluster.state()).checkpoints.positions["c"] == {FIRST: 9, SECOND: 0}


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_reader_whose_close_failed_leaves_where_it_was_when_it_is_closed_again(
    cluster: Cluster, is_cancelled: bool
) -> None:
    await cluster.write(EARLY, b"1")
    reader = await cluster.reader("r")
    await take(reader, 1)

    async def away(_moment: str, _request: str, _segment: str) -> None:
        if is_cancelled:
            await asyncio.sleep(SOON_S)
        raise ConnectionFailure(Failure.CONNECT_FAILED)

    cluster.store.fault = away
    with pytest.raises(TimeoutError if is_cancelled else Unavailable):
        async with asyncio.timeout(1.0 if is_cancelled else None):
            await reader.close()
    cluster.store.fault = None
    await reader.close()
    assert (await cluster.state()).unassigned == {FIRST: 9, SECOND: 0}


async def test_a_caller_that_is_cancelled_at_any_moment_loses_nothing(cluster: Cluster) -> None:
    """Neither an event nor a segment, whatever its reader was just writing to the group."""
    reader, found = await cluster.reader("r", automatic_checkpoint_ms=500), list[bytes]()
    cluster.store.fault = lambda _moment, _request, _segment: asyncio.sleep(0.01)
    for number in range(150):
        if number % 5 == 0:
            await cluster.write(f"key-{number}", b"%d" % number)
        if number == 75:
            await cluster.client.streams.scale([FIRST], [(0.0, 0.25), (0.25, 0.5)])
        caller = asyncio.create_task(reader.next())
        await asyncio.wait([caller], timeout=0.007 * (number % 29))
        caller.cancel()
        await asyncio.wait([caller])
        item = None if caller.cancelled() else caller.result()
        found += [item.data] if isinstance(item, Event) else []
    await cluster.client.streams.seal_stream("sc", "st")
    found += [item.data for item in await read_all(reader) if isinstance(item, Event)]
    assert sorted(map(int, found)) == list(range(0, 150, 5))


async def test_a_caller_in_a_hurry_reads_though_joining_takes_longer_than_each_of_its_calls(cluster: Cluster) -> None:
    await cluster.write(EARLY, b"1")
    reader = await cluster.reader("r")
    cluster.store.fault = lambda _moment, _request, _segment: asyncio.sleep(0.02)
    async with asyncio.timeout(SOON_S):
        item: Item | None = None
        while item is None:
            with suppress(TimeoutError):
                item = await asyncio.wait_for(reader.next(), 0.03)
    assert isinstance(item, Event) and item.data == b"1"


async def test_an_opening_that_is_cancelled_at_any_moment_leaves_no_reader_behind(cluster: Cluster) -> None:
    await cluster.group()
    cluster.store.fault = lambda _moment, _request, _segment: asyncio.sleep(0.01)
    for ms in range(1, 400, 7):
        try:
            async with asyncio.timeout(ms / 1000):
                await open_reader(cluster.client, "sc", "g", "r")
        except TimeoutError:
            assert (await cluster.state()).assigned == {}, f"after {ms} ms"
            continue
        break
    else:
        raise AssertionError("it took longer than all time limits")
    for ms in range(1, 400, 7):
        with suppress(TimeoutError, ReaderExists):
            async with asyncio.timeout(ms / 1000):
                await open_reader(cluster.client, "sc", "g", "r")
    assert list((await cluster.state()).assigned) == ["r"], "the reader of this name stays in"


async def test_a_store_that_is_away_is_an_error_and_reading_goes_on(cluster: Cluster) -> None:
    await cluster.write(EARLY, b"1")
    reader = await cluster.reader("r")
    await take(reader, 1)

    def away(_moment: str, _request: str, _segment: str) -> None:
        raise ConnectionFailure(Failure.CONNECT_FAILED)

    cluster.store.fault = away
    with pytest.raises(Unavailable):
        await reader.next()
    cluster.store.fault = None
    await cluster.write(EARLY, b"2")
    read: list[bytes] = []
    while not read:
        # The other segment, and the group, had no answer either.
        with suppress(Unavailable):
            read = await take(reader, 1)
    assert read == [b"2"]
