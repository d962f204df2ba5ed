"""The client that asks where a segment is: what it remembers, when it asks again, and what if nobody knows."""

from collections.abc import Callable, Sequence

import pytest
from unit.pravega.fake_store import CLOSE, fake_store

from sluice.pravega import (
    ConnectionFailure,
    Failure,
    Host,
    LocatedSegmentStores,
    RouteStale,
    SegmentMissing,
    TryLater,
)
from sluice.pravega.wire.command import Command
from sluice.pravega.wire.refusals import NoSuchSegment, WrongHost
from sluice.pravega.wire.segments import CreateSegment, SealSegment, SegmentCreated

NAME = "s/t/0.#epoch.0"


class Directory:
    """Says where segments are, and what it was asked."""

    def __init__(self, *hosts: Host) -> None:
        self.hosts = list(hosts)
        self.asked: list[str] = []

    async def locate(self, segment: str) -> Host:
        self.asked.append(segment)
        if not self.hosts:
            raise ConnectionFailure(Failure.NO_ROUTE, "said the test")
        return self.hosts.pop(0) if len(self.hosts) > 1 else self.hosts[0]


def created(command: Command) -> Sequence[Command]:
    if isinstance(command, SealSegment):
        return [NoSuchSegment(command.request_id, command.segment)]
    assert isinstance(command, CreateSegment)
    return [SegmentCreated(command.request_id, command.segment)]


async def test_an_answer_is_remembered_for_each_segment() -> None:
    async with fake_store(created) as store:
        directory = Directory(store.host)
        stores = LocatedSegmentStores(directory.locate)
        other = "s/t/0.#epoch.1"
        for name in (NAME, other, NAME, other):
            await stores.create_segment(name, 0, 0)
        assert directory.asked == [NAME, other] and store.connections == 1
        await stores.close()


async def test_segments_far_apart_do_not_share_a_connection() -> None:
    async with fake_store(created) as store:
        stores = LocatedSegmentStores(Directory(store.host).locate)
        for number in range(100):
            await stores.create_segment(f"s/t/{number}.#epoch.0", 0, 0)
        await stores.create_segment("_system/containers/metadata_4711", 0, 0)
        assert store.connections == 8
        await stores.close()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda command: [WrongHost(command.request_id, command.segment, "")], RouteStale),
        (lambda _: [CLOSE], TryLater),
    ],
)
async def test_after_a_failure_that_may_pass_the_next_attempt_asks_anew(
    answer: Callable[[Command], Sequence[Command | bytes]], error: type[Exception]
) -> None:
    async with fake_store(answer) as first, fake_store(created) as second:
        directory = Directory(first.host, second.host)
        stores = LocatedSegmentStores(directory.locate)
        with pytest.raises(error):
            await stores.create_segment(NAME, 0, 0)
        await stores.create_segment(NAME, 0, 0)
        assert directory.asked == [NAME, NAME]
        await stores.close()


async def test_a_store_that_is_gone_is_asked_for_anew() -> None:
    async with fake_store(created) as second:
        directory = Directory(Host("127.0.0.1", 1), second.host)
        stores = LocatedSegmentStores(directory.locate)
        with pytest.raises(RouteStale, match="does not accept connections"):
            await stores.create_segment(NAME, 0, 0)
        await stores.create_segment(NAME, 0, 0)
        await stores.close()


async def test_a_refusal_says_nothing_against_the_place() -> None:
    async with fake_store(created) as store:
        directory = Directory(store.host)
        stores = LocatedSegmentStores(directory.locate)
        for _ in range(2):
            with pytest.raises(SegmentMissing):
                await stores.seal_segment(NAME)
        assert directory.asked == [NAME]
        await stores.close()


async def test_nobody_knows_where_a_segment_is() -> None:
    stores = LocatedSegmentStores(Directory().locate)
    with pytest.raises(TryLater, match="said the test"):
        await stores.create_segment(NAME, 0, 0)
    await stores.close()
