"""Times that writers note, and the windows that readers of a group have by them: on the twins, in virtual time."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from sluice_client import (
    Client,
    Event,
    EventReader,
    GroupConfig,
    Refused,
    StreamMissing,
    StreamSealed,
    TimeWindow,
    create_reader_group,
    open_client,
    open_reader,
)

STREAM = "sc/st"
EARLY, LATE = "c", "hello"
"""Keys of the first and of the second half of the ranges."""
SOON_S = 60.0


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with open_client("memory:") as client:
        await client.streams.create_scope("sc")
        await client.controller.create_stream("sc", "st", 2)
        yield client


@pytest.fixture
async def reader(client: Client) -> AsyncIterator[EventReader]:
    await create_reader_group(client, "sc", "g", GroupConfig(starts={STREAM: None}, automatic_checkpoint_ms=1000))
    async with await open_reader(client, "sc", "g", "r") as reader:
        yield reader


async def window_after(reader: EventReader, count: int) -> TimeWindow:
    """The window when so many more events were read, and the group knows that they were."""
    read = 0
    while read < count:
        read += isinstance(await reader.next(SOON_S), Event)
    until = asyncio.get_running_loop().time() + SOON_S
    while asyncio.get_running_loop().time() < until:
        assert not isinstance(await reader.next(1.0), Event)
    return await reader.time_window(STREAM)


async def test_a_window_follows_what_the_group_has_read(client: Client, reader: EventReader) -> None:
    assert await window_after(reader, 0) == TimeWindow(None, None)
    async with client.event_writer("sc", "st") as writer:
        await writer.write(EARLY, b"1")
        await writer.write(LATE, b"2")
        await writer.note_time(10)
        assert await reader.time_window(STREAM) == TimeWindow(None, 10)
        assert await window_after(reader, 2) == TimeWindow(None, 10)
        await writer.write(EARLY, b"3")
        await writer.note_time(20)
        assert await window_after(reader, 1) == TimeWindow(10, 20)
        for time in (30, 40):
            await writer.write(LATE, b"4")
            await writer.note_time(time)
        # Not all that lies before 40 was read.
        assert await reader.time_window(STREAM) == TimeWindow(10, 30)
        await writer.write(LATE, b"5")
        await writer.flush()
        assert await window_after(reader, 3) == TimeWindow(40, None)


async def test_the_slowest_writer_has_the_lower_bound_and_the_fastest_the_upper(
    client: Client, reader: EventReader
) -> None:
    fast = client.event_writer("sc", "st", writer_id="fast")
    async with client.event_writer("sc", "st", writer_id="slow") as slow:
        await slow.write(EARLY, b"1")
        await slow.note_time(1)
        await fast.write(LATE, b"2")
        await fast.note_time(100)
        await slow.write(EARLY, b"3")
        await slow.note_time(2)
        assert await window_after(reader, 3) == TimeWindow(1, 100)
        await fast.write(LATE, b"4")
        await fast.flush()
        assert await window_after(reader, 1) == TimeWindow(2, None)
    # A writer that has ended holds up no other.
    await fast.note_time(101)
    await fast.write(LATE, b"5")
    await fast.flush()
    assert await window_after(reader, 1) == TimeWindow(101, None)


async def test_a_window_goes_on_behind_a_scale(client: Client, reader: EventReader) -> None:
    writer = client.event_writer("sc", "st")
    await writer.write(EARLY, b"1")
    await writer.note_time(1)
    await client.streams.scale(await client.controller.segments("sc", "st"), [(0.0, 0.2), (0.2, 1.0)])
    await writer.write(EARLY, b"2")
    await writer.note_time(2)
    await writer.write(EARLY, b"3")
    await writer.flush()
    assert await window_after(reader, 3) == TimeWindow(2, None)


async def test_what_cannot_be_noted_or_seen_is_refused(client: Client, reader: EventReader) -> None:
    writer = client.event_writer("sc", "st")
    await writer.note_time(2)
    with pytest.raises(Refused, match="INVALID_TIME"):
        await writer.note_time(1)
    with pytest.raises(Refused, match="sc/other"):
        await reader.time_window("sc/other")
    with pytest.raises(StreamMissing):
        await client.event_writer("sc", "other").note_time(1)
    await client.streams.seal_stream("sc", "st")
    with pytest.raises(StreamSealed):
        await writer.note_time(3)
