"""Scaling by hand, segments, and transactions of Sluice's own interface."""

from typing import Any

import pytest
from unit.gateway.rest.test_sluice_streams import ST, problem
from unit.gateway.rest.world import World

from sluice.domain.cluster.events import ContainersAssigned
from sluice.domain.host import Host
from sluice.domain.segment import Segment, segment_id
from sluice.domain.stream.events import Replacement, StreamEpochAdded, StreamScaleCancelled, StreamScaleStarted
from sluice.domain.transaction import commands as c
from sluice.domain.transaction.events import TransactionAborted
from sluice.domain.transaction.state import NO_TIME

SPLIT = {"sealed": [0], "ranges": [[0.0, 0.25], [0.25, 0.5]]}
SECOND, THIRD = segment_id(1, 2), segment_id(1, 3)


async def scale(world: World, body: Any) -> Any:
    """What was answered to a scale that has ended meanwhile."""
    answer = await world.call("POST", f"{ST}/scale", body)
    assert answer.status_code == 202
    await world.until_idle("sc/st", "stream:sc/st")
    return answer.json()


async def test_a_scale_is_replied_to_with_its_new_segments(world: World, stream: str) -> None:
    found = await scale(world, SPLIT)
    assert (found["epoch"], [s["id"] for s in found["segments"]]) == (0, [SECOND, THIRD])
    assert await world.get(f"{ST}/scales/0") == {"epoch": 0, "done": True}
    for no_scale_began_there in (1, 7):
        assert problem(await world.call("GET", f"{ST}/scales/{no_scale_began_there}")) == (404, None)
    assert problem(await world.call("POST", f"{ST}/scale", SPLIT)) == (409, "PRECONDITION_FAILED")


async def test_a_cancelled_scale_is_not_one_under_way(world: World, stream: str) -> None:
    replacement = Replacement((0,), (Segment(SECOND, 0.0, 0.5),), 5)
    started = StreamScaleStarted(scope="sc", stream="st", replacement=replacement)
    await world.system.append("sc/st", started, StreamScaleCancelled(scope="sc", stream="st"))
    assert problem(await world.call("GET", f"{ST}/scales/0")) == (409, "INTERNAL_ERROR")


@pytest.mark.parametrize(
    "body",
    [
        {"sealed": [0], "ranges": [[0.0]]},
        {"sealed": [0], "ranges": [[0.0, 2.0]]},
        {"sealed": [-1], "ranges": [[0.0, 0.5]]},
        b'{"sealed": [0], "ranges": [[0.0, NaN]]}',
        {"sealed": [0]},
    ],
)
async def test_a_wrong_scale_is_a_wrong_request(world: World, stream: str, body: Any) -> None:
    assert problem(await world.call("POST", f"{ST}/scale", body)) == (400, None)


async def test_segments_of_now_of_an_epoch_and_of_a_time(world: World, stream: str) -> None:
    await scale(world, SPLIT)
    began = (await world.get("/v1/scopes/sc/streams/st/scaling-events?from=0&to=9999999999999"))[1]["timestamp"]

    async def ids(**query: Any) -> list[int]:
        return [s["id"] for s in (await world.get(f"{ST}/segments", **query))["items"]]

    assert await ids() == await ids(epoch=1) == await ids(time=began) == [SECOND, THIRD, 1]
    assert await ids(epoch=0) == await ids(time=began - 1) == [0, 1]
    assert problem(await world.call("GET", f"{ST}/segments", epoch=9)) == (404, None)
    assert problem(await world.call("GET", f"{ST}/segments", time=0)) == (404, None)
    assert problem(await world.call("GET", f"{ST}/segments", time=0, epoch=0)) == (400, None)


async def test_segments_of_a_scale_that_has_not_ended_are_not_those_of_now(world: World, stream: str) -> None:
    await world.system.stop_deciding()
    now = world.runtime.clock.now_ms()
    started = StreamScaleStarted("sc", "st", replacement=Replacement((0,), (Segment(SECOND, 0.0, 0.5),), now))
    await world.system.append("sc/st", started, StreamEpochAdded("sc", "st", created_at=now))
    found = await world.get(f"{ST}/segments", time=now)
    assert [s["id"] for s in found["items"]] == [0, 1]


async def test_a_list_of_segments_goes_on_in_the_epoch_it_began_with(world: World, stream: str) -> None:
    first = await world.get(f"{ST}/segments", limit=1)
    await scale(world, SPLIT)
    rest = await world.get(f"{ST}/segments", limit=1, after=first["next"])
    assert [s["id"] for s in first["items"] + rest["items"]] == [0, 1]
    assert "next" not in rest
    assert problem(await world.call("GET", f"{ST}/segments", after="MTI")) == (400, None)


async def test_successors_and_location(world: World, stream: str) -> None:
    await scale(world, SPLIT)
    found = (await world.get(f"{ST}/segments/0/successors"))["items"]
    assert [(s["id"], s["replaces"]) for s in found] == [(SECOND, [0]), (THIRD, [0])]
    assert (await world.get(f"{ST}/segments/1/successors"))["items"] == []
    assert problem(await world.call("GET", f"{ST}/segments/9/successors")) == (404, None)
    assert problem(await world.call("GET", f"{ST}/segments/0/location")) == (503, None)
    host = Host("store", 12345)
    assigned = ContainersAssigned(containers=dict.fromkeys(range(4), host), hosts=(host,), at=1)
    await world.system.append("cluster", assigned)
    located = await world.get(f"{ST}/segments/0/location")
    assert (located["segment"], located["store"]) == ("sc/st/0.#epoch.0", "store:12345")
    assert problem(await world.call("GET", f"{ST}/segments/9/location")) == (404, None)
    assert problem(await world.call("GET", f"{ST}/segments/x/location")) == (400, None)
    assert {s["store"] for s in (await world.get(ST))["segments"]} == {"store:12345"}


async def begin(world: World, lease_ms: int = 30_000) -> str:
    answer = await world.call("POST", f"{ST}/transactions", {"leaseMs": lease_ms})
    assert answer.status_code == 201, answer.text
    assert [s["low"] for s in answer.json()["segments"]] == [0.0, 0.5]
    id: str = answer.json()["id"]
    return id


async def test_the_life_of_a_transaction(world: World, stream: str) -> None:
    id = await begin(world)
    one = f"{ST}/transactions/{id}"
    found = await world.get(one)
    assert (found["id"], found["state"], found["leaseMs"]) == (id, "OPEN", 30_000)
    assert (await world.call("POST", f"{one}/ping", {"leaseMs": 20_000})).json() == {"state": "OPEN"}
    assert (await world.get(one))["leaseMs"] == 20_000
    assert (await world.get(ST))["transactions"]["open"] == 1
    committed = await world.call("POST", f"{one}/commit", {"writer": "w", "timestamp": 5})
    assert (committed.status_code, committed.json()) == (200, {"state": "COMMITTING"})
    command = world.sent[-1][1].command
    assert isinstance(command, c.CommitTransaction)
    assert (command.writer, command.timestamp) == ("w", 5)
    assert problem(await world.call("POST", f"{one}/abort")) == (409, "FAILURE")
    assert problem(await world.call("POST", f"{one}/ping", {"leaseMs": 20_000})) == (409, "COMMITTED")
    waiting = (await world.get(f"{ST}/transactions", state="waiting"))["items"]
    assert [(t["id"], t["queuePosition"], t["writer"]) for t in waiting] == [(id, 0, "w")]


async def test_a_commit_needs_no_body(world: World, stream: str) -> None:
    one = f"{ST}/transactions/{await begin(world)}"
    assert (await world.call("POST", f"{one}/commit")).json() == {"state": "COMMITTING"}


async def test_a_commit_notes_no_time_that_it_does_not_have(world: World, stream: str) -> None:
    one = f"{ST}/transactions/{await begin(world)}"
    assert (await world.call("POST", f"{one}/commit", {"writer": "w"})).status_code == 200
    command = world.sent[-1][1].command
    assert isinstance(command, c.CommitTransaction)
    assert (command.writer, command.timestamp) == ("w", NO_TIME)


async def test_an_unknown_transaction_is_not_found(world: World, stream: str) -> None:
    one = f"{ST}/transactions/00000000-0000-0000-0102-030405060708"
    for method, path, body in (
        ("GET", one, None),
        ("POST", f"{one}/commit", None),
        ("POST", f"{one}/abort", None),
        ("POST", f"{one}/ping", {"leaseMs": 20_000}),
    ):
        assert problem(await world.call(method, path, body)) == (404, "UNKNOWN")
    assert problem(await world.call("GET", f"{ST}/transactions/x")) == (400, None)


async def test_a_lease_has_bounds(world: World, stream: str) -> None:
    assert problem(await world.call("POST", f"{ST}/transactions", {"leaseMs": 1})) == (400, "LEASE_OUT_OF_BOUNDS")


async def test_transactions_come_in_pages(world: World, stream: str) -> None:
    ids = [await begin(world) for _ in range(5)]
    seen = await world.all_items(f"{ST}/transactions", state="open")
    assert sorted(t["id"] for t in seen) == sorted(ids)


async def test_those_that_have_ended_come_the_latest_first(world: World, stream: str) -> None:
    ids = [await begin(world) for _ in range(3)]
    for at, id in enumerate(ids):
        assert (await world.call("POST", f"{ST}/transactions/{id}/abort")).json() == {"state": "ABORTING"}
        await world.system.append("sc/st", TransactionAborted(scope="sc", stream="st", transaction=id, at=at))
    ended = await world.all_items(f"{ST}/transactions", state="ended")
    assert [(t["id"], t["state"], t["endedAt"], t["reason"]) for t in ended] == [
        (ids[at], "ABORTED", at, "user") for at in (2, 1, 0)
    ]
    assert (await world.get(f"{ST}/transactions"))["items"] == []
