"""The past over HTTP: descriptions as they were, the journal, histories, and what became of a request."""

from typing import Any

import pytest
from pydantic import TypeAdapter
from support.wait import eventually_async
from unit.gateway.rest.world import World

from api_gateway.console.paging import token_of
from api_gateway.console.rest.journal import Journal
from api_gateway.console.rest.requests import RequestHistory
from sluice.domain.cluster.events import ContainersAssigned, MemberJoined, MemberLeft
from sluice.domain.host import Host
from sluice.insight.cluster import ContainerMap, MemberList
from sluice.insight.groups import GroupDescription
from sluice.insight.scopes import ScopeDescription
from sluice.insight.shown import Moment
from sluice.insight.streams import StreamDescription
from sluice.insight.tables import TableDescription
from sluice.lookback.errors import HelperEndedError, TimeIsOverError
from sluice.lookback.history import ContainersHistory, MembersHistory
from sluice.lookback.memory import MemoryLookback
from sluice.lookback.times import show_time

PRESENT_ONLY = {"allowed", "problem", "lastSeen", "problems"}
"""What the journal does not know; nor does a stream's partition of it know stores."""


async def later(world: World) -> int:
    """A moment behind all that happened so far and before all that will, epoch ms."""
    clock = world.runtime.clock
    before = clock.now_ms()
    await eventually_async(lambda: clock.now_ms() > before + 1, 5.0, "time goes on")
    return before + 1


def without(found: Any, left_out: set[str]) -> Any:
    if isinstance(found, dict):
        return {key: without(value, left_out) for key, value in found.items() if key not in left_out}
    return [without(one, left_out) for one in found] if isinstance(found, list) else found


async def test_each_description_of_this_moment_is_that_of_now(world: World, stream: str) -> None:
    """The same form: what shows one shows the other."""
    base = "/sluice/v1/scopes/sc"
    group = {"config": {"streams": {"sc/st": {"start": {"0": 7}}}, "retention": "manual"}}
    assert (await world.call("PUT", f"{base}/readergroups/g", group)).status_code == 201
    table = {"partitionCount": 2, "primaryKeyLength": 4}
    assert (await world.call("PUT", f"{base}/tables/t", table)).status_code == 201
    await world.cover_containers()
    await world.system.append("cluster", MemberJoined("stream-workflows", "x", {"http": "h:1"}, at=1))
    models: dict[str, type[Moment]] = {
        base: ScopeDescription,
        stream: StreamDescription,
        f"{base}/readergroups/g": GroupDescription,
        f"{base}/tables/t": TableDescription,
        "/sluice/v1/containers": ContainerMap,
        "/sluice/v1/members": MemberList,
    }
    for path, model in models.items():
        now, then = await world.get(path), await world.get(path, at="now")
        TypeAdapter(model).validate_python(then)
        as_of = then.pop("asOf")
        assert then.pop("at") <= world.runtime.clock.now_ms() and as_of["offset"] >= 0
        assert then == without(now, {*PRESENT_ONLY, *({"store"} if path == stream else ())}), path


async def test_a_stream_as_it_was_and_before_it_was(world: World, scope: str) -> None:
    path, before = "/sluice/v1/scopes/sc/streams/st", await later(world)
    assert (await world.call("PUT", path, {"tags": ["old"]})).status_code == 201
    created = await later(world)
    assert (await world.call("PUT", path, {"tags": ["new"]})).status_code == 200
    assert (await world.get(path, at=show_time(created)))["config"]["tags"] == ["old"]
    assert (await world.get(path))["config"]["tags"] == ["new"]
    missing = await world.call("GET", path, at=show_time(before))
    assert missing.status_code == 404 and "did not exist at" in missing.json()["detail"]
    for wrong in ("yesterday", show_time(world.runtime.clock.now_ms() + 60_000)):
        assert (await world.call("GET", path, at=wrong)).status_code == 400


async def test_the_journal_goes_back_page_by_page_without_gap_or_repetition(world: World, stream: str) -> None:
    for number in range(5):
        assert (await world.call("PUT", stream, {"tags": [str(number)]})).status_code == 200
    whole = await world.get("/sluice/v1/journal", limit=1000)
    Journal.model_validate(whole)
    assert whole["complete"] and "next" not in whole and len(whole["items"]) > 10
    assert [one["at"] for one in whole["items"]] == sorted((one["at"] for one in whole["items"]), reverse=True)
    assert await world.all_items("/sluice/v1/journal") == whole["items"]
    of_stream = [one for one in whole["items"] if one["key"] == "sc/st" and one["aggregate"] == "stream:sc/st"]
    assert (await world.get("/sluice/v1/journal", key="stream:sc/st", limit=1000))["items"] == of_stream
    history = await world.get(f"{stream}/history", limit=1000)
    assert [one for one in history["items"] if one["aggregate"] == "stream:sc/st"] == of_stream
    updated = (await world.get(f"{stream}/history", types="StreamUpdated"))["items"]
    assert {one["type"] for one in updated} == {"StreamUpdated"} and len(updated) == 5
    assert not any(one["void"] for one in updated)
    assert (await world.get("/sluice/v1/journal", key="sc", types="ScopeCreated"))["items"][0]["request"]


async def test_a_place_that_no_journal_has_is_no_token(world: World, stream: str) -> None:
    answer = await world.call("GET", f"/sluice/v1/journal?after={token_of('9999999999999999999.0.0.0.0')}")
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("journal?types=StreamUpdated,StreamUpdatd", "'StreamUpdatd' is no type of event; near to it: StreamUpdated"),
        ("scopes/sc/streams/st/history?types=Nonsense", "'Nonsense' is no type of event"),
        ("journal?key=steam:sc/st", "'steam:sc/st' is no aggregate"),
        ("decisions?code=splitt", "'splitt' is no case of a decision; near to it: split"),
        ("scopes/sc/streams/st/decisions?kind=scale", "kind, code and acts need from"),
    ],
)
async def test_a_filter_that_nothing_can_fit_is_refused(world: World, stream: str, path: str, problem: str) -> None:
    answer = await world.call("GET", f"/sluice/v1/{path}")
    assert (answer.status_code, problem in answer.text) == (400, True), answer.text


async def test_the_journal_of_an_interval_has_nothing_else(world: World, stream: str) -> None:
    begin = await later(world)
    assert (await world.call("PUT", stream, {"tags": ["within"]})).status_code == 200
    end = await later(world)
    assert (await world.call("PUT", stream, {"tags": ["behind"]})).status_code == 200
    within = await world.get("/sluice/v1/journal", **{"from": show_time(begin), "to": show_time(end)})
    assert {one["type"] for one in within["items"]} >= {"StreamUpdateStarted", "StreamUpdated"}
    assert all(begin <= one["at"] <= end for one in within["items"]) and within["searchedTo"] == begin


async def test_histories_of_containers_and_members_say_from_when_to_when(world: World) -> None:
    a, b = Host("a", 1), Host("b", 1)
    begin = await later(world)
    await world.system.append("cluster", ContainersAssigned({0: a, 1: a}, (a,), at=1))
    await world.system.append("cluster", MemberJoined("txn-manager", "x", {}, at=2))
    moved = await later(world)
    await world.system.append("cluster", ContainersAssigned({0: a, 1: b}, (a, b), at=3))
    await world.system.append("cluster", MemberLeft("x", at=4))
    containers = await world.get("/sluice/v1/containers/history", **{"from": show_time(begin)})
    TypeAdapter(ContainersHistory).validate_python(containers)
    ended, *held = containers["items"]
    assert (ended["container"], ended["store"]) == (1, "a:1") and begin < ended["from"] < moved < ended["to"]
    assert [(one["container"], one["store"], "to" in one) for one in held] == [(0, "a:1", False), (1, "b:1", False)]
    members = await world.get("/sluice/v1/members/history", **{"from": show_time(begin)})
    TypeAdapter(MembersHistory).validate_python(members)
    (member,) = members["items"]
    assert (member["instance"], member["from"], member["why"]) == ("x", 2, "its heartbeats were missed")
    assert members["complete"] and member["to"] > moved


async def test_a_request_is_followed_to_its_answer(world: World, stream: str) -> None:
    answer = await world.call("POST", f"{stream}/seal")
    found = await world.get(f"/sluice/v1/requests/{answer.headers['Sluice-Request']}")
    RequestHistory.model_validate(found)
    assert found["answer"]["status"] == "SUCCESS" and found["complete"]
    assert [step["types"][0] for step in found["steps"]][:2] == ["SealStream", "StreamSealStarted"]
    unknown = await world.get("/sluice/v1/requests/0123456789-1")
    assert (unknown["steps"], unknown["answer"]) == ([], None)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (HelperEndedError("the process ended with status -9"), "ended with status -9"),
        (TimeIsOverError("partition 3 is folded up to 10, it is wanted at 20", "repeat the call"), "repeat the call"),
    ],
)
async def test_what_keeps_the_past_from_being_read_is_503_with_the_reason(
    world: World, stream: str, error: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr(MemoryLookback, "run", refused)
    answer = await world.call("GET", stream, at="now")
    assert answer.status_code == 503 and words in answer.json()["detail"] and answer.headers["Retry-After"] == "1"
