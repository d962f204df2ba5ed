"""`sluice dev` in the process of its caller: what is there to begin with, what people see, faults on purpose."""

import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from support.wait import SOON_S, eventually_async

from sluice.domain.segment import segment_name
from sluice.exceptions import CannotStartError
from sluice.pravega import AccessDenied, SegmentStoreClient
from sluice.pravega.event_frames import split_events
from sluice.security.credentials import basic
from sluice_client import Access, AccessRefused, Client, open_client
from sluice_dev.options import DevOptions, NotMadeError, StreamToBegin
from sluice_dev.system import DevSystem

EVENTS = [f"event {number}".encode() for number in range(200)]
ORDERS = StreamToBegin("demo", "orders")


@asynccontextmanager
async def running(**options: object) -> AsyncIterator[DevSystem]:
    system = DevSystem(DevOptions(grpc_port=0, rest_port=0, store_port=0, **options))  # type: ignore[arg-type]
    try:
        await system.start()
        yield system
    finally:
        await system.stop()


async def test_a_stream_that_is_refused_ends_the_start() -> None:
    with pytest.raises(NotMadeError, match="demo/orders: STREAM_EXISTS"):
        async with running(streams=(ORDERS, ORDERS)):
            pass


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
async def test_all_addresses_are_listened_on_only_with_one_that_clients_are_told(host: str) -> None:
    with pytest.raises(CannotStartError, match="--published"):
        async with running(host=host):
            pass


async def test_a_store_on_all_addresses_is_reached_at_a_published_one_of_ipv4() -> None:
    async with running(host="::", published="127.0.0.1", streams=(ORDERS,)) as system:
        assert system.addresses.segment_store == f"127.0.0.1:{system.store_server.host.port}"
        assert segment_name("demo", "orders", 0) in system.store.segments


async def test_what_ends_after_the_start_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def end() -> None:
        raise ValueError("no reason")

    async with running() as system:
        system.runtimes[-1].spawn(end(), "scaling")

        def is_logged() -> bool:
            return any(vars(record).get("check") == "api-gateway: scaling" for record in caplog.records)

        await eventually_async(is_logged, SOON_S, "it is logged")


async def test_operators_see_the_members_the_streams_and_how_far_requests_are() -> None:
    async with (
        running(scopes=("empty",), streams=(ORDERS,)) as system,
        httpx.AsyncClient(base_url=system.addresses.rest, timeout=SOON_S) as http,
    ):
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()["level"]) == (200, "ok")
        scopes = (await http.get("/v1/scopes")).json()["scopes"]
        assert {"demo", "empty"} <= {scope["scopeName"] for scope in scopes}
        services = {f"{service}-dev" for service in ("stream-workflows", "txn-manager", "cluster-manager")}

        async def seen(path: str, name: str) -> set[str]:
            return {one[name] for one in (await http.get(f"/sluice/v1/{path}")).json()["items"]}

        async def all_are_seen() -> bool:
            members = services | {"api-gateway-dev", "stream-workflows-dev-without-spark"}
            return await seen("members", "instance") == members and await seen("partitions", "owner") == services

        await eventually_async(all_are_seen, SOON_S, "all members are there, and own all partitions")
        assert (await http.get("/v1/health")).json()["status"] == "UP"
        assert (await http.get("/sluice/v1/dead-letters")).json()["items"] == []
        assert (await http.get("/ui/")).status_code == 200


async def test_a_store_that_hangs_up_moves_and_is_slow_stores_each_event_of_a_writer_once() -> None:
    async with running(streams=(ORDERS,), failing=0.1, slow_s=0.005, moving_s=0.2) as system:
        async with (
            open_client(system.addresses.controller) as client,
            client.event_writer("demo", "orders") as writer,
        ):
            for event in EVENTS:
                await writer.write("key", event)
        stored = split_events(system.store.segments[segment_name("demo", "orders", 0)].data, 0).events
        assert [event.data for event in stored] == EVENTS


async def test_a_secured_one_lets_users_do_what_they_may_and_takes_its_files_with_it() -> None:
    async with running(streams=(ORDERS,), secure=True) as system:
        at = system.addresses
        folder = Path(at.authority).parent

        def client(user: str) -> AbstractAsyncContextManager[Client]:
            credentials = basic(user, Path(at.passwords[user]).read_text())
            return open_client(f"tls://{at.controller}", access=Access(credentials, at.authority))

        async with client("writer") as writing, writing.event_writer("demo", "orders") as writer:
            await writer.write("key", b"event")
            with pytest.raises(AccessRefused):
                await writing.streams.create_stream("demo", "more")
        async with client("admin") as managing:
            await managing.streams.create_stream("demo", "more")
        stranger = SegmentStoreClient(
            lambda _container: system.store_server.host, 4, tls=Access(ca=at.authority).to_stores()
        )
        with pytest.raises(AccessDenied):
            await stranger.segment_info(segment_name("demo", "more", 0))
        await stranger.close()
        context = ssl.create_default_context(cafile=at.authority)
        async with httpx.AsyncClient(base_url=at.rest, timeout=SOON_S, verify=context) as http:
            assert (await http.get("/v1/scopes")).status_code == 401
    assert not folder.exists()
