"""No more calls at a time than the gateway can answer."""

from unit.gateway.rest.world import World

from api_gateway.rest.boundary import Slots


async def test_a_call_too_many_is_refused_at_once_and_health_is_told_still(world: World) -> None:
    slots = world.app.state.slots = Slots(1)
    with slots.taken():
        ours, pravegas = await world.call("GET", "/sluice/v1/scopes"), await world.call("GET", "/v1/scopes")
        for answer in (ours, pravegas):
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert ours.json()["detail"] == "calls in progress: 1, no more may be"
        assert (await world.call("GET", "/livez")).status_code == 200
    assert (await world.call("GET", "/sluice/v1/scopes")).status_code == 200


async def test_a_call_that_failed_gives_its_place_back(world: World) -> None:
    world.app.state.slots = Slots(1)
    assert (await world.call("GET", "/sluice/v1/scopes/none")).status_code == 404
    assert (await world.call("GET", "/sluice/v1/scopes")).status_code == 200
