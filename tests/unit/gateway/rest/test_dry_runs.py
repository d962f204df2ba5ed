"""Dry runs say what the operation then does; descriptions say what is allowed."""

from typing import Any

import pytest
from unit.gateway.rest.test_sluice_segments import SPLIT, begin, scale
from unit.gateway.rest.test_sluice_streams import ST, S, problem
from unit.gateway.rest.world import World

from sluice.domain.ids import StreamId
from sluice.domain.stream.events import StreamSealStarted, SubscriberAdded, SubscriberCutUpdated
from sluice.security.caller import CALLER, Caller
from sluice.security.resources import Permission

ID = StreamId("sc", "st")


async def dry(world: World, method: str, path: str, body: Any = None) -> Any:
    sent = len(world.sent)
    answer = await world.call(method, path, body, dryRun=True)
    assert answer.status_code == 200, answer.text
    assert len(world.sent) == sent, "nothing is requested"
    return answer.json()


def fill(world: World, segment: str, length: int) -> None:
    world.store.segments[f"sc/st/{segment}"].data = bytes(length)


async def test_a_scale_is_counted_and_refused_as_the_real_one(world: World, stream: str) -> None:
    assert await dry(world, "POST", f"{ST}/scale", SPLIT) == {"effects": {"segmentsSealed": 1, "segmentsCreated": 2}}
    wrong = {"sealed": [0], "ranges": [[0.0, 0.25]]}
    refused = (await dry(world, "POST", f"{ST}/scale", wrong))["refused"]
    real = await world.call("POST", f"{ST}/scale", wrong)
    assert (refused["status"], refused["detail"]) == (real.json()["reason"], real.json()["detail"])


async def test_a_truncation_is_counted_in_bytes_segments_and_readers(world: World, stream: str) -> None:
    fill(world, "0.#epoch.0", 100)
    fill(world, "1.#epoch.0", 60)
    await scale(world, SPLIT)
    await world.system.append(
        "sc/st",
        SubscriberAdded(*ID, subscriber="sc/slow", group_id="g", generation=0, at=1),
        SubscriberAdded(*ID, subscriber="sc/done", group_id="h", generation=0, at=1),
    )
    ends = {1: 60, 2 + (1 << 32): 0, 3 + (1 << 32): 0}
    await world.system.append("sc/st", SubscriberCutUpdated(*ID, subscriber="sc/done", cut=ends, at=2))
    cut = {"1": 20, str(2 + (1 << 32)): 0, str(3 + (1 << 32)): 0}
    found = await dry(world, "POST", f"{ST}/truncate", {"cut": cut})
    assert found == {"effects": {"segmentsDeleted": 1, "bytesDropped": 120, "readerGroupsBehind": 1}}
    assert (await world.call("POST", f"{ST}/truncate", {"cut": cut})).status_code == 200
    assert (await world.get(ST))["truncatedBytes"] == 120
    beyond = await dry(world, "POST", f"{ST}/truncate", {"cut": cut | {"1": 61}})
    assert "beyond" not in beyond["effects"] and "which has 60 bytes" in beyond["refused"]["detail"]


async def test_a_seal_and_a_deletion_say_what_goes(world: World, stream: str) -> None:
    fill(world, "0.#epoch.0", 100)
    await begin(world)
    sealing = await dry(world, "POST", f"{ST}/seal")
    assert sealing["effects"] == {"segmentsSealed": 2, "transactionsAborted": 1, "transactionsCommitted": 0}
    assert (await dry(world, "DELETE", ST))["refused"]["status"] == "STREAM_NOT_SEALED"
    path = f"{S}/scopes/sc/streams/other"
    await world.call("PUT", path, {})
    world.store.segments["sc/other/0.#epoch.0"].data = bytes(9)
    assert (await world.call("POST", f"{path}/seal")).status_code == 200
    deletion = await dry(world, "DELETE", path)
    assert deletion == {"effects": {"segmentsDeleted": 1, "bytesDropped": 9, "readerGroupsBehind": 0}}
    assert (await dry(world, "POST", f"{path}/seal")) == {"effects": {}}
    world.store.segments.pop("sc/other/0.#epoch.0")
    assert "bytesDropped" not in (await dry(world, "DELETE", path))["effects"]


async def test_a_put_says_whether_it_creates_or_replaces(world: World, stream: str) -> None:
    five = {"scaling": {"minSegments": 5}}
    assert (await dry(world, "PUT", ST, five))["effects"] == {"segmentsSealed": 2, "segmentsCreated": 5}
    assert (await dry(world, "PUT", ST, {"scaling": {"minSegments": 2}})) == {"effects": {}}
    assert (await dry(world, "PUT", f"{S}/scopes/sc/streams/new", five))["effects"] == {"segmentsCreated": 5}
    assert (await dry(world, "PUT", f"{S}/scopes/none/streams/new", five))["refused"]["status"] == "SCOPE_NOT_FOUND"
    answer = await world.client.put(ST, json=five, params={"dryRun": True}, headers={"If-Match": '"other"'})
    assert problem(answer) == (412, "CONFIG_CHANGED")


async def test_what_has_to_wait_says_for_what(world: World, stream: str) -> None:
    await world.system.stop_deciding()
    await world.system.append("sc/st", StreamSealStarted(*ID, request=None, at=1))
    found = await dry(world, "POST", f"{ST}/scale", SPLIT)
    assert found["effects"]["waitsFor"] == "sc/st: seal-stream is running"


@pytest.fixture
def reader() -> Any:
    """The caller may READ everything, and change nothing."""
    token = CALLER.set(Caller("reader", lambda _resource: Permission.READ))
    yield
    CALLER.reset(token)


def allowed(description: Any) -> dict[str, Any]:
    return {one["action"]: one.get("why", True) for one in description["allowed"]}


async def test_descriptions_say_what_is_allowed_and_why_not(world: World, stream: str) -> None:
    nothing = "nothing is under way there"
    changes = dict.fromkeys(("update", "scale", "truncate", "seal"), True)
    idle = "it has no transaction that has not ended"
    common = {"commit": idle, "abort": idle, "retry": nothing, "cancel": nothing}
    assert allowed(await world.get(ST)) == {**changes, "delete": "it is not sealed", **common}
    await world.call("POST", f"{ST}/seal")
    assert allowed(await world.get(ST)) == {**dict.fromkeys(changes, "it is sealed"), "delete": True, **common}
    await world.call("PUT", f"{S}/scopes/sc/tables/t", {"partitionCount": 1, "primaryKeyLength": 4})
    table = await world.call("GET", f"{S}/scopes/sc/tables/t")
    assert allowed(table.json()) == {"delete": True, "retry": nothing, "cancel": nothing}
    assert table.headers["etag"]


async def test_what_the_credentials_do_not_allow_is_not_offered(world: World, stream: str, reader: None) -> None:
    found = allowed(await world.get(ST))
    assert set(found.values()) == {"the credentials do not allow it"}
