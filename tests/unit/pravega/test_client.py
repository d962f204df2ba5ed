"""The client against a store of a few lines: routes, shared connections, tokens, deadlines."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from support.wait import SOON_S
from unit.pravega.fake_store import CLOSE, FakeStore, created, fake_store, set_up_or_appended

from harness import eventually_async
from sluice.pravega import RouteStale, SegmentStoreClient, TryLater, container_of
from sluice.pravega.connection import ConnectionLimits
from sluice.pravega.errors import ConnectionClosed
from sluice.pravega.wire.command import Command
from sluice.pravega.wire.segments import SealSegment, SegmentSealed

NAME = "s/t/0.#epoch.0"


@asynccontextmanager
async def client_of(store: FakeStore, **options: Any) -> AsyncIterator[SegmentStoreClient]:
    client = SegmentStoreClient(lambda _: store.host, 4, **options)
    try:
        yield client
    finally:
        await client.close()


async def test_the_route_is_looked_up_at_every_call() -> None:
    async with fake_store(created) as first, fake_store(created) as second:
        route = {container_of(NAME, 4): first.host}
        client = SegmentStoreClient(route.get, 4)
        await client.create_segment(NAME, 1, 2, 3)
        route[container_of(NAME, 4)] = second.host
        await client.create_segment(NAME, 1, 2, 3)
        assert [len(first.received), len(second.received)] == [2, 2]
        route.clear()
        with pytest.raises(TryLater, match="no host for the container"):
            await client.create_segment(NAME, 1, 2, 3)
        await client.close()


async def test_callers_of_a_container_share_one_connection_and_one_attempt() -> None:
    async with fake_store(created) as store, client_of(store) as client:
        await asyncio.gather(*(client.create_segment(f"s/t/0.#epoch.{n}", 0, 0) for n in range(50)))
        assert store.connections == 1
        await client.close()
        await eventually_async(lambda: store.open_connections == 0, SOON_S, "the socket is closed")
        with pytest.raises(TryLater):
            await client.create_segment(NAME, 0, 0)


async def test_the_shared_attempt_fails_for_all_and_the_next_is_a_new_one() -> None:
    limits = ConnectionLimits(connect_timeout_s=0.5)
    async with fake_store(created, None) as store, client_of(store, limits=limits) as client:
        calls = [client.create_segment(NAME, 0, 0) for _ in range(3)]
        assert [type(error) for error in await asyncio.gather(*calls, return_exceptions=True)] == [RouteStale] * 3
        await eventually_async(lambda: store.connections == 1, SOON_S, "the store saw one attempt")
        with pytest.raises(RouteStale):
            await client.create_segment(NAME, 0, 0)
        await eventually_async(lambda: store.connections == 2, SOON_S, "the store saw another attempt")


async def test_no_more_calls_wait_for_a_connection_than_allowed() -> None:
    limits = ConnectionLimits(max_waiting=2)
    async with fake_store(created, None) as store, client_of(store, limits=limits) as client:
        calls = [asyncio.create_task(client.create_segment(NAME, 0, 0)) for _ in range(3)]
        (refused,), waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        with pytest.raises(TryLater, match="2 calls wait for a connection already"):
            await refused
        waiting.pop().cancel()
        await asyncio.sleep(0)
        calls.append(asyncio.create_task(client.create_segment(NAME, 0, 0)))
        done, _ = await asyncio.wait(calls[-1:], timeout=0)
        assert not done, "a caller who gave up makes room for another"
        await client.close()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_a_container_that_does_not_run_yet_costs_the_calls_to_others_nothing() -> None:
    waiting: list[SealSegment] = []

    def answer(command: Command) -> Sequence[Command | bytes]:
        if not isinstance(command, SealSegment):
            return [CLOSE]
        waiting.append(command)
        return []

    other = next(name for name in map("s/t/{}.#epoch.0".format, range(100)) if container_of(name, 4) == 1)
    assert container_of(NAME, 4) != 1
    async with fake_store(answer) as store, client_of(store) as client:
        call = asyncio.create_task(client.seal_segment(other))
        await eventually_async(lambda: len(waiting) == 1, SOON_S, "the request is under way")
        for _ in range(5):
            with pytest.raises(ConnectionClosed, match="or never takes this request"):
                await client.create_segment(NAME, 0, 0)
        assert not call.done()
        store.send_first(SegmentSealed(waiting[0].request_id, other))
        await call


async def test_an_attempt_goes_on_when_one_of_its_callers_gives_up() -> None:
    async with fake_store(created) as store, client_of(store) as client:
        first, second = (asyncio.ensure_future(client.create_segment(NAME, 0, 0)) for _ in range(2))
        await asyncio.wait([first], timeout=0)
        first.cancel()
        await second
        assert store.connections == 1


async def test_closing_ends_calls_under_way() -> None:
    async with fake_store(lambda _: []) as store, client_of(store) as client:
        call = asyncio.ensure_future(client.create_segment(NAME, 0, 0))
        await eventually_async(lambda: len(store.received) == 2, SOON_S, "the request is sent")
        await client.close()
        with pytest.raises(TryLater, match="the client was closed"):
            await call


async def test_a_call_ends_at_its_deadline_with_the_address_in_the_error() -> None:
    async with fake_store(lambda _: []) as store, client_of(store, call_timeout_s=0.02) as client:
        with pytest.raises(RouteStale, match=f"SealSegment {NAME} at {store.host}: the call's time was up"):
            await client.seal_segment(NAME)


class Numbered:
    """Tokens that tell what they are for."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    async def for_request(self, segment: str) -> str:
        return f"request {next(self._numbers)} on {segment}"

    async def for_append(self, segment: str) -> str:
        return f"append {next(self._numbers)} to {segment}"


async def test_every_command_has_a_token_of_its_own() -> None:
    async with fake_store(created) as store, client_of(store, tokens=Numbered()) as client:
        for _ in range(2):
            await client.create_segment(NAME, 0, 0)
        tokens = [getattr(command, "token", None) for command in store.received]
        assert tokens == [None, f"request 1 on {NAME}", f"request 2 on {NAME}"]


async def test_the_set_up_of_a_writer_has_a_token_for_appends() -> None:
    async with fake_store(set_up_or_appended) as store, client_of(store, tokens=Numbered()) as client:
        await client.append_events(NAME, UUID(int=1), [b"event"], 1)
        tokens = [getattr(command, "token", None) for command in store.received]
        assert tokens == [None, f"append 1 to {NAME}", None]


async def test_closing_fails_those_that_wait_for_a_connection() -> None:
    """Each call fails as if its connection had ended: no caller is cancelled, and a task group sees the error."""
    async with fake_store(created, None) as store, client_of(store) as client:
        calls = [asyncio.create_task(client.create_segment(NAME, 0, 0)) for _ in range(3)]
        await eventually_async(lambda: store.connections == 1, SOON_S, "a connection is being made")
        calls[0].cancel()
        await client.close()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError, TryLater, TryLater]
        assert "the client was closed" in str(outcomes[1])


async def test_every_append_of_a_lone_writer_succeeds_however_many_connections_it_wears_out() -> None:
    limits = ConnectionLimits(max_setups=3)
    async with fake_store(set_up_or_appended) as store, client_of(store, limits=limits) as client:
        for number in range(1, 8):
            assert await client.append(NAME, UUID(int=1), b"x", event_number=number) == 9
        assert store.connections == 3
        await eventually_async(lambda: store.open_connections == 1, SOON_S, "worn-out connections are closed")
