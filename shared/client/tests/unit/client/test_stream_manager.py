"""Scopes, streams and cuts, on the twins in memory."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from sluice_client import (
    Client,
    KeyRange,
    Refused,
    RetentionPolicy,
    RetentionType,
    ScalingPolicy,
    ScopeMissing,
    ScopeNotEmpty,
    StreamConfig,
    StreamCut,
    StreamManager,
    StreamMissing,
    StreamNotSealed,
    StreamSealed,
    open_client,
)

TWO = StreamConfig(ScalingPolicy(min_segments=2), RetentionPolicy(RetentionType.SIZE, 1000, 2000), ("blue",))
_WRITER = UUID(int=1)
FIRST, SECOND, THIRD = (f"sc/st/{number}.#epoch.{epoch}" for number, epoch in ((0, 0), (1, 0), (2, 1)))


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with open_client("memory:") as client:
        await client.streams.create_scope("sc")
        yield client


@pytest.fixture
def streams(client: Client) -> StreamManager:
    return client.streams


async def test_scopes_are_made_listed_and_deleted(streams: StreamManager) -> None:
    assert [await streams.create_scope(name) for name in ("other", "sc")] == [True, False]
    assert sorted([scope async for scope in streams.scopes()]) == ["other", "sc"]
    await streams.create_stream("sc", "st")
    with pytest.raises(ScopeNotEmpty, match="sc"):
        await streams.delete_scope("sc")
    assert await streams.delete_scope("sc", with_contents=True)
    assert [await streams.delete_scope("other") for _ in range(2)] == [True, False]
    assert not await streams.scope_exists("sc")
    with pytest.raises(Refused, match="INVALID_SCOPE_NAME"):
        await streams.scope_exists("")


async def test_a_stream_is_described_as_it_was_made(streams: StreamManager) -> None:
    assert [await streams.create_stream("sc", "st", TWO) for _ in range(2)] == [True, False]
    await streams.create_stream("sc", "plain")
    assert await streams.config("sc", "plain") == StreamConfig()
    found = await streams.describe("sc", "st")
    assert found.config == TWO and not found.sealed
    assert found.segments == (KeyRange(FIRST, 0.0, 0.5), KeyRange(SECOND, 0.5, 1.0))
    assert found.head == StreamCut("sc", "st", {FIRST: 0, SECOND: 0})


async def test_streams_of_a_scope_are_listed_by_their_tags(streams: StreamManager) -> None:
    for name in ("st", "_MARKst", "_RGgroup", "_private"):
        await streams.create_stream("sc", name, TWO if name == "st" else None)
    assert sorted([name async for name in streams.streams("sc")]) == ["_private", "st"]
    assert [name async for name in streams.streams("sc", tag="blue")] == ["st"]
    with pytest.raises(ScopeMissing):
        [name async for name in streams.streams("nowhere")]


async def test_what_is_not_there_is_said_to_be_missing(streams: StreamManager) -> None:
    assert not await streams.stream_exists("sc", "st")
    with pytest.raises(ScopeMissing):
        await streams.create_stream("nowhere", "st")
    for call in (
        streams.config("sc", "st"),
        streams.describe("sc", "st"),
        streams.update_stream("sc", "st", TWO),
        streams.seal_stream("sc", "st"),
        streams.truncate_stream(StreamCut("sc", "st", {FIRST: 0})),
        streams.tail("sc", "st"),
    ):
        with pytest.raises(StreamMissing, match="sc/st"):
            await call
    assert not await streams.delete_stream("sc", "st")


async def test_a_stream_is_deleted_only_when_it_is_sealed(streams: StreamManager) -> None:
    await streams.create_stream("sc", "st")
    with pytest.raises(StreamNotSealed):
        await streams.delete_stream("sc", "st")
    await streams.seal_stream("sc", "st")
    assert (await streams.describe("sc", "st")).sealed
    for call in (
        streams.update_stream("sc", "st", TWO),
        streams.truncate_stream(StreamCut("sc", "st", {FIRST: 0})),
        streams.tail("sc", "st"),
    ):
        with pytest.raises(StreamSealed):
            await call
    assert await streams.delete_stream("sc", "st")
    assert not await streams.stream_exists("sc", "st")


async def test_another_number_of_segments_scales_a_stream(streams: StreamManager) -> None:
    await streams.create_stream("sc", "st", TWO)
    await streams.update_stream("sc", "st", StreamConfig())
    found = await streams.describe("sc", "st")
    assert found.config == StreamConfig() and found.segments == (KeyRange(THIRD, 0.0, 1.0),)


async def test_a_segment_is_split_and_followed_by_its_successors(client: Client, streams: StreamManager) -> None:
    await streams.create_stream("sc", "st", TWO)
    await streams.scale([SECOND], [(0.5, 0.75), (0.75, 1.0)])
    fourth = "sc/st/3.#epoch.1"
    assert (await streams.describe("sc", "st")).segments == (
        KeyRange(FIRST, 0.0, 0.5),
        KeyRange(THIRD, 0.5, 0.75),
        KeyRange(fourth, 0.75, 1.0),
    )
    assert await client.controller.successors(SECOND) == {THIRD: [SECOND], fourth: [SECOND]}
    assert await client.controller.successors(FIRST) == {}
    with pytest.raises(Refused, match="PRECONDITION_FAILED"):
        await streams.scale([SECOND], [(0.5, 1.0)])


async def test_a_stream_begins_at_the_cut_that_it_was_truncated_at(client: Client, streams: StreamManager) -> None:
    await streams.create_stream("sc", "st")
    for number in range(3):
        await client.store.append_events(FIRST, _WRITER, [b"%d" % number], number + 1)
    tail = await streams.tail("sc", "st")
    assert tail.offsets == {FIRST: 27}
    middle = StreamCut("sc", "st", {FIRST: 9})
    await streams.truncate_stream(middle)
    assert await streams.head("sc", "st") == middle
    assert (await client.store.segment_info(FIRST)).start_offset == 9
    with pytest.raises(Refused):
        await streams.truncate_stream(StreamCut("sc", "st", {FIRST: 0}))
