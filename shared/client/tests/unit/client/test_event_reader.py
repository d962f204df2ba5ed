"""Readers of a group on the twins in memory: what they return, and what the group knows of it. In virtual time."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from unit.client.reader_cluster import (
    EARLY,
    FIRST,
    LATE,
    SECOND,
    SOON_S,
    THIRD,
    Cluster,
    make_checkpoint,
    read_all,
    take,
)

from sluice.controller_api import controller_pb2 as pb
from sluice.pravega import SegmentData
from sluice.pravega.reader_group_config import GroupConfig, Retention
from sluice.pravega.reader_group_state import CreateCheckpoint, UpdatingConfig
from sluice_client import (
    Event,
    EventMissing,
    Refused,
    Skipped,
    StreamCut,
)
from sluice_client.groups.decisions import ReaderExists, ReaderOffline
from sluice_client.groups.group import create_reader_group
from sluice_client.groups.messages import config_message
from sluice_client.groups.reader import CheckpointReached, EventReader, open_reader
from sluice_client.groups.state import is_complete
from sluice_client.memory import InMemoryController


async def test_all_events_are_read_in_order_to_the_end_of_the_stream(cluster: Cluster) -> None:
    await cluster.write(EARLY, b"1", b"2")
    await cluster.write(LATE, b"3")
    await cluster.client.streams.seal_stream("sc", "st")
    async with await cluster.reader("r", automatic_checkpoint_ms=1000) as reader:
        items = await read_all(reader)
        assert reader.at_end_of_data
    events = [item for item in items if isinstance(item, Event)]
    assert sorted(event.data for event in events) == [b"1", b"2", b"3"]
    assert [event.data for event in events if event.segment == FIRST] == [b"1", b"2"]
    assert any(isinstance(item, CheckpointReached) for item in items)


async def test_segments_take_turns_while_all_of_them_have_events(cluster: Cluster) -> None:
    for key in (EARLY, LATE):
        await cluster.write(key, *[key.encode()] * 2000)
    first = await take(await cluster.reader("r"), 2000)
    assert min(first.count(EARLY.encode()), first.count(LATE.encode())) >= 1000


async def test_nothing_came_in_time(cluster: Cluster) -> None:
    async with await cluster.reader("r") as reader:
        began = asyncio.get_running_loop().time()
        assert await reader.next(timeout_s=5.0) is None
        assert 5.0 <= asyncio.get_running_loop().time() - began < 6.0
        await cluster.write(EARLY, b"1")
        assert await take(reader, 1) == [b"1"]


async def test_batches_have_what_is_there_of_a_segment_and_end_at_checkpoints(cluster: Cluster) -> None:
    await cluster.write(EARLY, b"1", b"2", b"3")
    reader = await cluster.reader("r")
    assert await take(reader, 1) == [b"1"]
    batch = await reader.next_batch()
    assert batch == [Event(b"2", FIRST, 9, 18), Event(b"3", FIRST, 18, 27)]
    assert reader.position.offsets == {FIRST: 27, SECOND: 0} and await reader.next_batch(timeout_s=1.0) is None
    await cluster.write(LATE, *[b"%d" % number for number in range(3000)])
    await (await cluster.group()).shared.update(lambda _: [CreateCheckpoint("c")])
    await cluster.client.streams.seal_stream("sc", "st")
    found = [item async for item in reader.batches()]
    assert found.count(CheckpointReached("c")) == 1
    events = [event.data for item in found if isinstance(item, list) for event in item]
    assert events == [b"%d" % number for number in range(3000)] and reader.at_end_of_data


@pytest.mark.parametrize("segments", [1, 5])
async def test_no_more_is_read_ahead_than_a_reader_may(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, segments: int
) -> None:
    limit, came, read = 60_000, dict[str, int](), cluster.store.read_or_wait

    async def count(name: str, offset: int, length: int, wait_s: float) -> SegmentData:
        data = await read(name, offset, length, wait_s)
        came[name] = offset + len(data.data)
        return data

    await cluster.client.controller.create_stream("sc", "big", segments)
    names = await cluster.client.controller.segments("sc", "big")
    for name in names:
        await cluster.store.append_events(name, uuid4(), [bytes(992)] * 100, 100)
    monkeypatch.setattr(cluster.store, "read_or_wait", count)
    await create_reader_group(
        cluster.client, "sc", "g", GroupConfig(starts={"sc/big": None}, automatic_checkpoint_ms=0)
    )
    reader = await open_reader(cluster.client, "sc", "g", "r", read_ahead_bytes=limit)
    for returned in range(1, segments * 100):
        assert isinstance(await reader.next(), Event)
        await asyncio.sleep(0.01)
        ahead = sum(came.get(name, 0) for name in names) - 1000 * returned
        assert ahead <= limit


async def test_an_event_is_read_once_more_by_its_pointer(cluster: Cluster) -> None:
    await cluster.write(EARLY, b"before", b"this")
    async with await cluster.reader("r") as reader:
        items = [await reader.next() for _ in range(2)]
    (event,) = (item for item in items if isinstance(item, Event) and item.data == b"this")
    assert f"{event.pointer}" == f"{FIRST}:14-12"
    assert await cluster.client.fetch_event(event.pointer) == b"this"
    await cluster.store.truncate_segment(FIRST, 26)
    with pytest.raises(EventMissing):
        await cluster.client.fetch_event(event.pointer)


async def test_two_readers_share_the_segments_and_read_each_event_once(cluster: Cluster) -> None:
    one = await cluster.reader("one", automatic_checkpoint_ms=1000)
    await cluster.write(EARLY, b"1")
    await cluster.write(LATE, b"2")
    read = await take(one, 2)
    two = await cluster.reader("two")
    found: list[bytes] = []

    async def read_on(reader: EventReader) -> None:
        async for item in reader:
            found.extend([item.data] if isinstance(item, Event) else [])

    tasks = [asyncio.create_task(read_on(reader)) for reader in (one, two)]
    await asyncio.sleep(15.0)
    assert len(one.segments) == len(two.segments) == 1
    for number in range(3, 20):
        await cluster.write(f"key-{number}", b"%d" % number)
    await cluster.client.streams.seal_stream("sc", "st")
    async with asyncio.timeout(SOON_S):
        await asyncio.gather(*tasks)
    assert sorted(map(int, read + found)) == list(range(1, 20))


async def test_successors_are_read_after_a_checkpoint_behind_what_they_replace(cluster: Cluster) -> None:
    await cluster.write(EARLY, b"1")
    await cluster.write(LATE, b"2")
    await cluster.client.streams.scale([FIRST, SECOND], [(0.0, 1.0)])
    await cluster.write(EARLY, b"3")
    reader = await cluster.reader("r")
    assert sorted(await take(reader, 2)) == [b"1", b"2"]
    assert await reader.next(timeout_s=10.0) is None
    assert reader.position.offsets == {FIRST: -1, SECOND: -1}
    await make_checkpoint(cluster, reader, "c")
    assert await take(reader, 1) == [b"3"]
    assert reader.segments == [THIRD]
    assert (await cluster.state()).ranges[THIRD] == (0.0, 1.0)


async def test_a_checkpoint_is_complete_with_the_call_after_its_return(cluster: Cluster) -> None:
    await cluster.write(EARLY, b"1")
    reader = await cluster.reader("r")
    await take(reader, 1)
    await make_checkpoint(cluster, reader, "c")
    assert not is_complete(await cluster.state(), "c")
    assert await reader.next(timeout_s=1.0) is None
    state = await cluster.state()
    assert is_complete(state, "c") and state.checkpoints.positions["c"] == {FIRST: 9, SECOND: 0}
    assert state.assigned["r"] == {FIRST: 9, SECOND: 0}


async def test_a_checkpoint_found_at_an_answer_of_the_controller_is_complete_with_the_next_call(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer has the reader look at the group before it is time to: what follows the checkpoint is not in it."""
    call, back = cluster.client.controller.call, asyncio.Event()

    async def late(rpc: Any, request: Any) -> Any:
        if isinstance(request, pb.SubscriberStreamCut):
            await back.wait()
        return await call(rpc, request)

    reader = await cluster.reader("r", retention=Retention.AUTOMATIC, refresh_ms=50)
    monkeypatch.setattr(cluster.client.controller, "call", late)
    await make_checkpoint(cluster, reader, "c")
    await cluster.write(EARLY, b"1")
    assert await take(reader, 1) == [b"1"]
    await (await cluster.group()).shared.append([CreateCheckpoint("d")])
    await cluster.write(EARLY, b"2")
    await asyncio.sleep(0.06)
    back.set()
    await asyncio.sleep(0.01)
    assert await reader.next() == CheckpointReached("d")
    assert await take(reader, 1) == [b"2"]
    state = await cluster.state()
    assert is_complete(state, "d") and state.checkpoints.positions["d"] == {FIRST: 9, SECOND: 0}


async def test_a_silent_checkpoint_is_made_without_the_user(cluster: Cluster) -> None:
    await cluster.write(EARLY, b"1")
    reader = await cluster.reader("r")
    await take(reader, 1)
    group = await cluster.group()
    await group.shared.update(lambda _: [CreateCheckpoint("x_SILENT_")])
    assert await reader.next(timeout_s=10.0) is None
    state = await cluster.state()
    assert is_complete(state, "x_SILENT_") and state.checkpoints.positions["x_SILENT_"] == {FIRST: 9, SECOND: 0}
    assert state.assigned["r"] == {FIRST: 0, SECOND: 0}


async def test_the_controller_hears_what_each_complete_checkpoint_has(cluster: Cluster) -> None:
    """While one of two segments that were merged is read to its end, and the other is not, and when both are."""
    controller = cluster.client.controller
    assert isinstance(controller, InMemoryController)
    await cluster.write(EARLY, b"1")
    await cluster.write(LATE, b"2", b"3", b"4", b"5")
    await cluster.client.streams.scale([FIRST, SECOND], [(0.0, 1.0)])
    gate = asyncio.Event()

    async def delay_second(_moment: str, request: str, segment: str) -> None:
        if (request, segment) == ("ReadSegment", SECOND):
            await gate.wait()

    cluster.store.fault = delay_second
    reader = await cluster.reader("r", retention=Retention.AUTOMATIC)
    assert await take(reader, 1) == [b"1"] and await reader.next(timeout_s=1.0) is None
    gate.set()
    assert await take(reader, 3) == [b"2", b"3", b"4"]
    third = 1 << 32 | 2
    for name, cut in (("c", {0: 9, 1: 27}), ("d", {1: 36, third: -1}), ("e", {third: 0})):
        await make_checkpoint(cluster, reader, name)
        await reader.next(timeout_s=1.0)
        async with asyncio.timeout(SOON_S):
            while not (await cluster.state()).checkpoints.published:
                assert await reader.next(timeout_s=0.1) is None
        assert controller.released["sc/g", "sc/st"] == cut


@pytest.mark.parametrize(("how", "offset"), [("returned", 27), ("before", 18), ("checkpoint", 9), ("error", 9)])
async def test_others_go_on_where_a_reader_left(cluster: Cluster, how: str, offset: int) -> None:
    """With all that it returned; where it says; at its last checkpoint, also after an error."""
    await cluster.write(EARLY, b"1")
    reader = await cluster.reader("r")
    await take(reader, 1)
    await make_checkpoint(cluster, reader, "c")
    await cluster.write(EARLY, b"2", b"3")
    await take(reader, 1)
    before = reader.position
    await take(reader, 1)
    if how == "error":
        with pytest.raises(ZeroDivisionError):
            await _fail_in(reader)
    else:
        await reader.close() if how == "returned" else await reader.close_at(before if how == "before" else None)
    state = await cluster.state()
    assert state.assigned == {} and state.unassigned == {FIRST: offset, SECOND: 0}


async def _fail_in(reader: EventReader) -> None:
    async with reader:
        raise ZeroDivisionError


async def test_a_reader_that_was_reported_offline_finds_out_and_returns_nothing_more(cluster: Cluster) -> None:
    await cluster.write(EARLY, b"1")
    reader = await cluster.reader("r")
    await take(reader, 1)
    await (await cluster.group()).reader_offline("r")
    await asyncio.sleep(3.0)
    await cluster.write(EARLY, b"2")
    for _ in range(2):
        with pytest.raises(ReaderOffline):
            await reader.next()
    await reader.close()
    async with await cluster.reader("s") as other:
        assert await take(other, 2) == [b"1", b"2"]


async def test_a_reader_is_out_when_its_group_is_reset(cluster: Cluster) -> None:
    reader, group = await cluster.reader("r"), await cluster.group()
    await group.reset(await group.config())
    with pytest.raises(ReaderOffline):
        await reader.next(SOON_S)


async def test_a_reset_that_died_half_way_is_completed_by_a_reader(cluster: Cluster) -> None:
    reader, group = await cluster.reader("r"), await cluster.group()
    await group.shared.update(lambda _: [UpdatingConfig(True)])
    request = config_message("sc", "g", await group.config())
    await cluster.client.controller.call(lambda stub: stub.updateReaderGroup, request)
    with pytest.raises(ReaderOffline):
        await reader.next(SOON_S)
    state = await cluster.state()
    assert state.config.generation == 1 and not state.updating


async def test_two_readers_have_no_id_in_common_and_some_can_be_none(cluster: Cluster) -> None:
    await cluster.reader("r")
    with pytest.raises(ReaderExists):
        await cluster.reader("r")
    with pytest.raises(Refused, match="a/b"):
        await cluster.reader("a/b")


async def test_what_was_truncated_is_said_and_reading_goes_on(cluster: Cluster) -> None:
    await cluster.write(EARLY, b"1", b"2")
    reader = await cluster.reader("r")
    await cluster.store.truncate_segment(FIRST, 9)
    items = [await reader.next() for _ in range(2)]
    assert items[0] == Skipped(FIRST, 0, 9)
    assert isinstance(items[1], Event) and items[1].data == b"2"


async def test_a_bounded_group_ends_at_its_cut(cluster: Cluster) -> None:
    await cluster.write(EARLY, b"1", b"2")
    await cluster.write(LATE, b"3")
    end = StreamCut("sc", "st", {FIRST: 9, SECOND: 0})
    reader = await cluster.reader("r", ends={"sc/st": end}, automatic_checkpoint_ms=1000)
    items = await read_all(reader)
    assert [item.data for item in items if isinstance(item, Event)] == [b"1"]
    await cluster.write(LATE, b"4")
    assert await reader.next(timeout_s=10.0) is None
