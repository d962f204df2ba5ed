"""The streams of all scopes in one list, and search."""

from typing import Any

import pytest
from unit.gateway.rest.test_sluice_streams import ST, S, problem
from unit.gateway.rest.world import World

from api_gateway.console.rest import stream_search
from sluice.domain.ids import StreamId
from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.events import DecisionRecorded, Replacement, StreamScaleStarted, WorkflowQueued
from sluice.domain.stream.state import StreamState
from sluice.security.caller import CALLER, Caller
from sluice.security.resources import Permission

TREE = {"a": ("x", "y"), "ab": ("one", "two"), "b": ("orders", "x")}
NAMES = [f"{scope}/{name}" for scope, names in TREE.items() for name in names]


@pytest.fixture
async def tree(world: World) -> World:
    """Scopes with streams; of all only `b/x` has more than one segment."""
    for scope, names in TREE.items():
        await world.call("PUT", f"{S}/scopes/{scope}")
        for name in names:
            many = {"scaling": {"minSegments": 3 if f"{scope}/{name}" == "b/x" else 1}, "tags": [f"tag-{scope}"]}
            assert (await world.call("PUT", f"{S}/scopes/{scope}/streams/{name}", many)).status_code == 201
    return world


def names_of(items: list[Any]) -> list[str]:
    return [f"{item['scope']}/{item['name']}" for item in items]


async def test_all_streams_come_in_pages_by_scope_and_name(tree: World) -> None:
    assert names_of(await tree.all_items(f"{S}/streams")) == NAMES
    assert names_of(await tree.all_items(f"{S}/streams", scope="ab")) == ["ab/one", "ab/two"]
    assert problem(await tree.call("GET", f"{S}/streams", scope="none")) == (404, "SCOPE_NOT_FOUND")
    with_marks = names_of(await tree.all_items(f"{S}/streams", internal=True, scope="a"))
    assert with_marks == ["a/_MARKx", "a/_MARKy", "a/x", "a/y"]


async def test_streams_are_found_by_text_tag_and_state(tree: World) -> None:
    for query, found in (
        ({"q": "O"}, ["ab/one", "ab/two", "b/orders"]),
        ({"q": "b/"}, ["ab/one", "ab/two", "b/orders", "b/x"]),
        ({"q": "TAG-A"}, ["a/x", "a/y", "ab/one", "ab/two"]),
        ({"tag": "tag-b", "q": "x"}, ["b/x"]),
        ({"state": "SEALED"}, []),
        ({"state": "ACTIVE", "scope": "a"}, ["a/x", "a/y"]),
    ):
        assert names_of(await tree.all_items(f"{S}/streams", **query)) == found, query
    assert problem(await tree.call("GET", f"{S}/streams", state="MOON")) == (400, None)


async def test_streams_that_are_named_are_looked_up_and_those_that_are_not_there_left_out(tree: World) -> None:
    named = {"name": ["b/x", "a/y", "a/none", "none/x", "odd", "a/_MARKx"]}
    found = await tree.get(f"{S}/streams", limit=1, **named)
    assert names_of(found["items"]) == ["b/x", "a/y"] and "next" not in found
    for query, names in (
        ({"scope": "a"}, ["a/y"]),
        ({"tag": "tag-b"}, ["b/x"]),
        ({"q": "y"}, ["a/y"]),
        ({"state": "SEALED"}, []),
        ({"internal": True}, ["b/x", "a/y", "a/_MARKx"]),
    ):
        assert names_of((await tree.get(f"{S}/streams", **named, **query))["items"]) == names, query
    assert problem(await tree.call("GET", f"{S}/streams", name=["a/x"] * 101)) == (400, None)


async def test_the_largest_come_first_and_those_alike_by_name(tree: World) -> None:
    largest = names_of(await tree.all_items(f"{S}/streams", sort="segments"))
    assert largest == ["b/x", *(name for name in NAMES if name != "b/x")]
    assert sorted(names_of(await tree.all_items(f"{S}/streams", sort="changed"))) == NAMES


async def test_too_many_streams_are_not_sorted_but_listed(tree: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_search, "MAX_EXAMINED", 4)
    assert problem(await tree.call("GET", f"{S}/streams", sort="epoch")) == (400, None)
    first = await tree.get(f"{S}/streams", q="b/x")
    assert first["items"] == [] and first["next"], "a page may be empty before the end"
    assert names_of((await tree.get(f"{S}/streams", q="b/x", after=first["next"]))["items"]) == ["b/x"]


async def test_the_columns_show_work_and_decisions(world: World, stream: str) -> None:
    await world.cover_containers()
    id = StreamId("sc", "st")
    (found,) = (await world.get(f"{S}/streams"))["items"]
    created = (await world.get(ST))["createdAt"]
    assert found == {
        "scope": "sc", "name": "st", "state": "ACTIVE", "epoch": 0, "segments": 2, "tags": [], "transactions": 0,
        "changedAt": created,
    }  # fmt: skip
    await world.call("POST", f"{ST}/transactions", {"leaseMs": 30_000})
    await world.system.stop_deciding()
    decided = DecisionRecorded(*id, kind=DecisionKind.SCALE, code="split", reason="hot", at=created + 5, acts=True)
    await world.system.append("sc/st", decided, WorkflowQueued(*id, kind="TruncateStream", at=1))
    (found,) = (await world.get(f"{S}/streams"))["items"]
    assert (found["workflow"], found["transactions"], found["changedAt"]) == ("truncate-stream", 1, created + 5)
    assert found["lastDecision"] == {"kind": "scale", "code": "split", "at": created + 5}
    await world.system.append("sc/st", StreamScaleStarted(*id, replacement=Replacement((), (), 5), at=created + 9))
    (found,) = (await world.get(f"{S}/streams", state=StreamState.SCALING.value))["items"]
    assert (found["workflow"], found["changedAt"], "failing" in found) == ("scale-stream", created + 9, False)


async def test_search_puts_what_begins_with_the_text_first(tree: World) -> None:
    hits = (await tree.get(f"{S}/search", q="O"))["items"]
    assert [(hit["type"], hit["name"]) for hit in hits] == [
        ("stream", "ab/one"), ("stream", "b/orders"), ("stream", "ab/two"),
    ]  # fmt: skip
    hits = (await tree.get(f"{S}/search", q="a"))["items"]
    assert [hit["name"] for hit in hits[:2]] == ["a", "ab"]
    assert hits[0]["address"] == "#/scopes/a"
    assert [hit["name"] for hit in (await tree.get(f"{S}/search", q="ab/t"))["items"]] == ["ab/two"]
    assert problem(await tree.call("GET", f"{S}/search", q="")) == (400, None)


async def test_search_finds_by_id(world: World, stream: str) -> None:
    txn = (await world.call("POST", f"{ST}/transactions", {"leaseMs": 30_000})).json()["id"]
    (hit,) = (await world.get(f"{S}/search", q=txn))["items"]
    assert (hit["type"], hit["detail"]) == ("transaction", "open, of sc/st")
    assert hit["address"] == f"#/streams/sc/st?tab=transactions&transaction={txn}"
    for text in ("1.#epoch.0", "sc/st/1.#epoch.0"):
        (hit,) = (await world.get(f"{S}/search", q=text))["items"]
        assert (hit["type"], hit["name"]) == ("segment", "sc/st/1.#epoch.0")
    for text in ("7.#epoch.0", "sc/none/1.#epoch.0", "st/1.#epoch.0"):
        assert (await world.get(f"{S}/search", q=text))["items"] == []
    (hit,) = (await world.get(f"{S}/search", q="3/118"))["items"]
    assert hit["address"] == "#/dead-letters?letter=3%2F118"
    (hit,) = (await world.get(f"{S}/search", q="0123456789-1f"))["items"]
    assert hit["address"] == "#/requests/0123456789-1f"


async def test_what_may_not_be_read_is_in_no_list(tree: World) -> None:
    readable = {"prn::/", "prn::/scope:b", "prn::/scope:b/stream:x"}
    may = lambda name: Permission.READ if name in readable else Permission.NONE  # noqa: E731
    token = CALLER.set(Caller("u", may))
    try:
        for sort in ("name", "segments"):
            assert names_of((await tree.get(f"{S}/streams", sort=sort))["items"]) == ["b/x"]
        assert [hit["name"] for hit in (await tree.get(f"{S}/search", q="x"))["items"]] == ["b/x"]
        assert (await tree.get(f"{S}/search", q="3/118"))["items"] == []
    finally:
        CALLER.reset(token)
