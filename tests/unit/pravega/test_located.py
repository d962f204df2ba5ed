"""The client that asks where a segment is: what it remembers, when it asks anew, and what if there is no answer."""

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from unit.pravega.fake_store import CLOSE, created, fake_store

from sluice.pravega import ConnectionFailure, Failure, Host, LocatedSegmentStores, RouteStale, SegmentMissing, TryLater
from sluice.pravega.errors import AccessDenied, TokenExpired
from sluice.pravega.wire.command import Command
from sluice.pravega.wire.refusals import TOKEN_EXPIRED, AuthTokenCheckFailed, WrongHost
from sluice.pravega.wire.segments import CreateSegment

NAME = "s/t/0.#epoch.0"


@asynccontextmanager
async def located(*hosts: Host) -> AsyncIterator[tuple[LocatedSegmentStores, list[str]]]:
    """A client that is given these hosts in turn, the last one for ever, and the segments that it looked up."""
    left, looked_up = list(hosts), list[str]()

    async def locate(segment: str) -> Host:
        looked_up.append(segment)
        if not left:
            raise ConnectionFailure(Failure.NO_ROUTE, "said the test")
        return left.pop(0) if len(left) > 1 else left[0]

    numbers = itertools.count(1)

    async def fetch_token(_segment: str, _is_append: bool) -> str:
        return f"token {next(numbers)}"

    stores = LocatedSegmentStores(locate, fetch_token)
    try:
        yield stores, looked_up
    finally:
        await stores.close()


async def test_an_answer_is_remembered_for_each_segment() -> None:
    async with fake_store(created) as store, located(store.host) as (stores, looked_up):
        other = "s/t/0.#epoch.1"
        for name in (NAME, other, NAME, other):
            await stores.create_segment(name, 0, 0)
        assert looked_up == [NAME, other] and store.connections == 1


async def test_segments_far_apart_do_not_share_a_connection() -> None:
    async with fake_store(created) as store, located(store.host) as (stores, _):
        for number in range(100):
            await stores.create_segment(f"s/t/{number}.#epoch.0", 0, 0)
        await stores.create_segment("_system/containers/metadata_4711", 0, 0)
        assert store.connections == 8


@pytest.mark.parametrize(
    ("answer", "error"),
    [(lambda command: [WrongHost(command.request_id, command.segment, "")], RouteStale), (lambda _: [CLOSE], TryLater)],
)
async def test_after_a_failure_that_may_pass_the_next_attempt_asks_anew(
    answer: Callable[[Command], Sequence[Command | bytes]], error: type[Exception]
) -> None:
    async with (
        fake_store(answer) as first,
        fake_store(created) as second,
        located(first.host, second.host) as (stores, looked_up),
    ):
        with pytest.raises(error):
            await stores.create_segment(NAME, 0, 0)
        await stores.create_segment(NAME, 0, 0)
        assert looked_up == [NAME, NAME]


async def test_a_store_that_is_gone_is_looked_up_anew() -> None:
    async with fake_store(created) as second, located(Host("127.0.0.1", 1), second.host) as (stores, _):
        with pytest.raises(RouteStale, match="does not accept connections"):
            await stores.create_segment(NAME, 0, 0)
        await stores.create_segment(NAME, 0, 0)


@pytest.mark.parametrize(("code", "error"), [(0, AccessDenied), (TOKEN_EXPIRED, TokenExpired)])
async def test_a_token_that_a_store_refuses_is_replaced(code: int, error: type[Exception]) -> None:
    refused: list[Command] = []

    def answer(command: Command) -> Sequence[Command]:
        if refused:
            return created(command)
        refused.append(command)
        assert isinstance(command, CreateSegment)
        return [AuthTokenCheckFailed(command.request_id, "", code)]

    async with fake_store(answer) as store, located(store.host) as (stores, _):
        with pytest.raises(error):
            await stores.create_segment(NAME, 0, 0)
        for _ in range(2):
            await stores.create_segment(NAME, 0, 0)
        tokens = [getattr(command, "token", None) for command in store.received]
        assert tokens == [None, "token 1", "token 2", "token 2"]


async def test_a_refusal_leaves_the_location_remembered() -> None:
    async with fake_store(created) as store, located(store.host) as (stores, looked_up):
        for _ in range(2):
            with pytest.raises(SegmentMissing):
                await stores.seal_segment(NAME)
        assert looked_up == [NAME]


async def test_a_segment_without_a_location_fails_with_the_reason() -> None:
    async with located() as (stores, _):
        with pytest.raises(TryLater, match="said the test"):
            await stores.create_segment(NAME, 0, 0)
