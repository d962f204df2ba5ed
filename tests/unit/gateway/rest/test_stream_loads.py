"""What lists show of streams beside their state, and within which bounds it is measured."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from support import group_state as written
from unit.gateway.rest.test_group_readers import CONFIG, FIRST, SECOND, STATE, fill
from unit.gateway.rest.test_sluice_others import BODY, RG
from unit.gateway.rest.test_sluice_segments import SPLIT, scale
from unit.gateway.rest.test_sluice_streams import problem
from unit.gateway.rest.world import World

from api_gateway.console import rates, stream_groups
from api_gateway.edge.security.guard import calling
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import Moment
from sluice.security.caller import Caller
from sluice.security.resources import ROOT, Permission, stream_resource

LOADS = "/sluice/v1/streams/loads"


async def load(world: World) -> dict[str, Any]:
    found = await world.get(LOADS, name=["sc/st", "sc/none"])
    (only,) = found["items"]
    return dict(only)


async def until(world: World, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The load once that holds."""
    async with asyncio.timeout(60):
        # Each look is what keeps the measuring going.
        while not holds(found := await load(world)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "INTERVAL_S", 0.05)
    monkeypatch.setattr(rates, "LISTED_INTERVAL_S", 0.05)
    monkeypatch.setattr(stream_groups, "FRESH_S", 0.05)
    monkeypatch.setattr(stream_groups, "PAUSE_S", 0.01)


async def test_a_load_is_what_is_written_and_held_and_who_is_slowest(world: World, stream: str) -> None:
    assert set(await load(world)) == {"scope", "name", "complete"}, "the first call knows nothing yet"
    fill(world, FIRST, 100)
    fill(world, SECOND, 60)
    for name in ("rg", "other"):
        assert (await world.call("PUT", RG.replace("/rg", f"/{name}"), BODY)).status_code == 201
    await world.store.append(STATE, uuid4(), written.initial(CONFIG, [FIRST, SECOND]))
    await world.store.append(STATE, uuid4(), written.updates(written.add_reader("a"), written.acquire("a", FIRST)))
    await world.store.append(STATE, uuid4(), written.updates(written.last_read("a", {FIRST: 90})))
    slowest = {"name": "sc/other", "bytes": 160, "complete": True}
    known = {"bytes": 160, "bytesPerS": 0.0, "complete": True, "groups": 2, "slowest": slowest}
    # What was measured, or read of a group, in the midst of these changes is shown until the next look.
    await until(world, lambda found: known.items() <= found.items() and "unknownGroups" not in found)


async def test_what_was_truncated_or_sealed_counts_as_it_is_held(world: World, stream: str) -> None:
    fill(world, FIRST, 100)
    fill(world, SECOND, 60)
    await scale(world, SPLIT)
    assert (await world.call("POST", "/sluice/v1/scopes/sc/streams/st/truncate", {"cut": {"0": 40, "1": 0}})).is_success
    found = await until(world, lambda found: found["complete"])
    assert found["bytes"] == 120


async def test_what_a_store_does_not_say_is_left_out_and_said(world: World, stream: str) -> None:
    assert (await world.call("PUT", RG, BODY)).status_code == 201

    def down(moment: Moment, _request: str, segment: str) -> None:
        if moment == "before" and segment == SECOND:
            raise ConnectionFailure(Failure.SILENT)

    fill(world, FIRST, 100)
    world.store.fault = down
    found = await until(world, lambda found: {"bytesPerS", "slowest"} <= found.keys())
    assert (found["bytes"], found["complete"]) == (100, False)
    assert found["slowest"] == {"name": "sc/rg", "bytes": 100, "complete": False}


async def test_a_list_asks_for_at_most_a_hundred_streams(world: World, stream: str) -> None:
    assert problem(await world.call("GET", f"{LOADS}?" + "&".join(["name=sc/st"] * 101)))[0] == 400
    assert problem(await world.call("GET", LOADS))[0] == 400


async def test_groups_that_the_caller_may_not_read_are_left_out(world: World, stream: str) -> None:
    assert (await world.call("PUT", RG, BODY)).status_code == 201
    await until(world, lambda found: found.get("groups") == 1)
    may = {stream_resource("sc", "st"): Permission.READ, ROOT: Permission.READ}
    with calling(Caller("amy", lambda resource: may.get(resource, Permission.NONE))):
        assert (await load(world))["groups"] == 0
