"""No more calls at a time than the gateway can answer."""

import asyncio
from contextlib import ExitStack

import httpx
from support.callers import called_by
from support.wait import SOON_S, eventually_async
from unit.gateway.rest.test_sluice_streams import problem
from unit.gateway.rest.world import World
from unit.gateway.security.support import ALL, READ, Callers, as_

from api_gateway.app import close_app
from api_gateway.edge.security.guard import Guard
from api_gateway.edge.shares import Shares
from sluice.telemetry.health import HttpServer
from sluice.telemetry.http_connections import HttpBounds


async def test_a_call_too_many_is_refused_at_once_and_health_is_still_shown(world: World) -> None:
    calls = world.app.state.capacity.calls = Shares(1, "calls")
    with calls.taken():
        ours, pravegas = await world.call("GET", "/sluice/v1/scopes"), await world.call("GET", "/v1/scopes")
        for answer in (ours, pravegas):
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert ours.json()["detail"] == "calls: 1 are under way or wait, no more may"
        for path in ("/livez", "/ping", "/prometheus", "/v1/health", "/v1/health/liveness", "/v1/health/status"):
            assert (await world.call("GET", path)).status_code == 200, path
    assert (await world.call("GET", "/sluice/v1/scopes")).status_code == 200


async def test_calls_that_wait_leave_connections_for_probes(unused_tcp_port: int) -> None:
    world, connections = World(connections=10), 10
    await world.start()
    await world.system.stop_deciding()
    server = HttpServer(world.app, "127.0.0.1", unused_tcp_port, bounds=HttpBounds(connections))
    await server.start()

    async def call(request: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", unused_tcp_port)
        try:
            writer.write(f"{request} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            return (await reader.readline()).rstrip()
        finally:
            writer.close()

    waiting = [asyncio.create_task(call(f"PUT /sluice/v1/scopes/s{n}")) for n in range(connections)]
    try:
        journal = world.runtime.journal
        await eventually_async(lambda: journal.replies_expected >= connections // 2, SOON_S, "calls wait")
        async with asyncio.timeout(SOON_S):
            assert await call("GET /livez") == b"HTTP/1.1 200 OK"
    finally:
        for each in waiting:
            each.cancel()
        await server.stop()
        await world.stop()


async def test_one_user_takes_a_quarter_of_the_calls_and_of_the_searches() -> None:
    world = World(guard=Guard(Callers(alice={ALL: READ}, bob={ALL: READ}), readers_write=True))
    await world.start()
    capacity = world.app.state.capacity
    transport = httpx.ASGITransport(world.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        for name, path in (("calls", "/sluice/v1/scopes"), ("scans", "/sluice/v1/search?q=a")):
            shares = Shares(8, name)
            setattr(capacity, name, shares)
            with ExitStack() as held:
                with called_by("alice"):
                    for _ in range(2):
                        held.enter_context(shares.taken())
                answers = {user: await client.get(path, headers=dict(as_(user))) for user in ("alice", "bob")}
            assert {user: answer.status_code for user, answer in answers.items()} == {"alice": 429, "bob": 200}
    await world.stop()


async def test_an_answer_of_unavailability_says_what_is_wrong_with_the_process(world: World) -> None:
    world.app.state.capacity.calls = Shares(0, "calls")
    world.runtime.degraded["disk"] = lambda: "no space left on device"
    refused = await world.call("GET", "/sluice/v1/scopes")
    said = "calls: 0 are under way or wait, no more may; disk: no space left on device"
    assert (refused.status_code, refused.json()["detail"]) == (503, said)


async def test_who_closes_takes_no_more_calls_and_waits_for_those_in_progress(world: World) -> None:
    with world.app.state.capacity.calls.taken():
        await close_app(world.app, 0.01)
        closing = asyncio.ensure_future(close_app(world.app, 60))
        refused = await world.call("GET", "/sluice/v1/scopes")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert not closing.done()
    await asyncio.wait_for(closing, SOON_S)


async def test_a_call_that_failed_gives_its_permit_back(world: World) -> None:
    world.app.state.capacity.calls = Shares(1, "calls")
    assert (await world.call("GET", "/sluice/v1/scopes/none")).status_code == 404
    assert (await world.call("GET", "/sluice/v1/scopes")).status_code == 200


async def test_a_slash_within_a_name_ends_no_name(world: World, stream: str) -> None:
    assert (await world.call("POST", f"{stream}/seal")).status_code == 200
    before = len(world.sent)
    for path in ("/sluice/v1/scopes/sc%2Fstreams%2fst", "/v1/scopes/sc%2fstreams%2Fst"):
        assert (await world.call("DELETE", path)).status_code == 404
    ours = await world.call("GET", "/sluice/v1/scopes/sc%2Fstreams")
    assert problem(ours) == (404, None)
    pravegas = await world.call("GET", "/v1/scopes/sc%2Fstreams")
    assert (pravegas.status_code, pravegas.content) == (404, b"")
    assert len(world.sent) == before


async def test_dots_are_a_name_like_any_other(world: World) -> None:
    assert (await world.call("PUT", "/sluice/v1/scopes/%2E%2E")).status_code == 201
    assert (await world.get("/sluice/v1/scopes"))["items"] == [{"name": ".."}, {"name": "_system"}]
