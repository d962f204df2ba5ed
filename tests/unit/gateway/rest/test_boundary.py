"""No more calls at a time than the gateway can answer."""

import asyncio

from unit.gateway.rest.test_sluice_streams import problem
from unit.gateway.rest.world import World

from api_gateway.rest.app import close_app
from api_gateway.rest.boundary import Slots


async def test_a_call_too_many_is_refused_at_once_and_health_is_still_shown(world: World) -> None:
    slots = world.app.state.slots = Slots(1)
    with slots.taken():
        ours, pravegas = await world.call("GET", "/sluice/v1/scopes"), await world.call("GET", "/v1/scopes")
        for answer in (ours, pravegas):
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert ours.json()["detail"] == "calls in progress: 1, no more may be"
        for path in ("/livez", "/ping", "/prometheus", "/v1/health", "/v1/health/liveness", "/v1/health/status"):
            assert (await world.call("GET", path)).status_code == 200, path
    assert (await world.call("GET", "/sluice/v1/scopes")).status_code == 200


async def test_an_answer_of_unavailability_says_what_is_wrong_with_the_process(world: World) -> None:
    world.app.state.slots = Slots(0)
    world.runtime.degraded["disk"] = lambda: "no space left on device"
    refused = await world.call("GET", "/sluice/v1/scopes")
    said = "calls in progress: 0, no more may be; disk: no space left on device"
    assert (refused.status_code, refused.json()["detail"]) == (503, said)


async def test_who_closes_takes_no_more_calls_and_waits_for_those_in_progress(world: World) -> None:
    with world.app.state.slots.taken():
        await close_app(world.app, 0.01)
        closing = asyncio.ensure_future(close_app(world.app, 60))
        refused = await world.call("GET", "/sluice/v1/scopes")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert not closing.done()
    await asyncio.wait_for(closing, 10)


async def test_a_call_that_failed_gives_its_permit_back(world: World) -> None:
    world.app.state.slots = Slots(1)
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
