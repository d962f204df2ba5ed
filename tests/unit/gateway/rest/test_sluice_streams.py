"""Scopes and streams of Sluice's own interface."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import httpx
import pytest
from support.wait import SOON_S, eventually_async
from unit.gateway.rest.world import World

from api_gateway.edge.reads import Reads
from sluice.domain.config import RetentionPolicy, RetentionType, ScalingPolicy, StreamConfig
from sluice.domain.decision import Reply
from sluice.domain.ids import StreamId
from sluice.domain.scope.commands import DeleteScopeRecursive
from sluice.domain.status import Status
from sluice.domain.stream import events as ev
from sluice.domain.stream.commands import CreateStream, DecisionKind, UpdateStream
from sluice.kafka.topics import REQUESTS_STREAMS

S = "/sluice/v1"
ST = f"{S}/scopes/sc/streams/st"


def problem(answer: Any) -> tuple[int, str | None]:
    """Status and reason of a refusal, whose form must be that of RFC 9457."""
    body = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (body["type"], body["status"]) == ("about:blank", answer.status_code)
    assert body["title"] and body["detail"]
    return answer.status_code, body.get("reason")


async def test_before_the_journal_is_loaded_only_health_answers() -> None:
    world = World()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(world.app), base_url="http://gateway") as client:
        assert (await client.get("/livez")).status_code == 200
        assert (await client.get("/ping")).status_code == 200
        assert (await client.get("/v1/health")).status_code == 200
        answer = await client.get(f"{S}/scopes")
        assert problem(answer) == (503, None)
        assert answer.headers["retry-after"] == "1"
        empty = await client.get("/v1/scopes")
        assert (empty.status_code, empty.content) == (503, b"")


async def test_a_scope_is_put_once_and_again(world: World) -> None:
    first = await world.call("PUT", f"{S}/scopes/sc")
    assert (first.status_code, first.json()) == (201, {"status": "SUCCESS"})
    again = await world.call("PUT", f"{S}/scopes/sc")
    assert (again.status_code, again.json()) == (200, {"status": "SCOPE_EXISTS"})
    assert problem(await world.call("PUT", f"{S}/scopes/a_b")) == (400, "INVALID_SCOPE_NAME")


async def test_a_change_is_answered_with_the_id_of_its_request(world: World) -> None:
    answer = await world.call("PUT", f"{S}/scopes/sc")
    ((_, request),) = world.sent
    assert answer.headers["sluice-request"] == request.id
    refused = await world.call("DELETE", f"{S}/scopes/missing")
    assert problem(refused) == (404, "SCOPE_NOT_FOUND")
    assert refused.headers["sluice-request"] == world.sent[-1][1].id
    assert "sluice-request" not in (await world.call("GET", f"{S}/scopes")).headers


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 1001}, {"limit": "x"}, {"after": "!"}, {"after": "0w"}])
async def test_a_wrong_page_is_a_wrong_request(world: World, query: dict[str, Any]) -> None:
    assert problem(await world.call("GET", f"{S}/scopes", **query)) == (400, None)


async def test_a_scope_says_how_much_is_in_it(world: World, stream: str) -> None:
    await world.call("PUT", f"{S}/scopes/sc/tables/kv", {"partitionCount": 1, "primaryKeyLength": 8})
    shown = await world.get(f"{S}/scopes/sc")
    counts = {"streams": 1, "internalStreams": 1, "readerGroups": 0, "tables": 1}
    assert {**shown, "createdAt": 0} == {"name": "sc", "createdAt": 0, **counts}
    assert problem(await world.call("DELETE", f"{S}/scopes/sc")) == (409, "SCOPE_NOT_EMPTY")
    assert problem(await world.call("GET", f"{S}/scopes/no")) == (404, "SCOPE_NOT_FOUND")


async def test_a_scope_is_deleted_with_all_in_it(world: World, stream: str) -> None:
    answer = await world.call("DELETE", f"{S}/scopes/sc", recursive="true")
    assert (answer.status_code, answer.content) == (204, b"")
    assert isinstance(world.sent[-1][1].command, DeleteScopeRecursive)


async def side_by_side(world: World, *calls: Coroutine[Any, Any, httpx.Response]) -> list[int]:
    """The statuses of calls each of which sends its request while those before it are held up by segment stores."""
    go, before = asyncio.Event(), len(world.sent)

    async def held() -> None:
        await go.wait()

    async def until_sent(count: int) -> None:
        await eventually_async(lambda: len(world.sent) == before + count, SOON_S, "it is requested")

    world.store.fault = lambda moment, kind, _: held() if moment == "before" and kind.startswith("Delete") else None
    answers = []
    for count, call in enumerate(calls, start=1):
        answers.append(asyncio.create_task(call))
        await until_sent(count)
    go.set()
    return [answer.status_code for answer in await asyncio.gather(*answers)]


async def test_a_deletion_that_is_repeated_spares_the_scope_created_behind_the_first(world: World, stream: str) -> None:
    path = f"{S}/scopes/sc"
    deletions = [world.call("DELETE", path, recursive="true") for _ in range(2)]
    assert await side_by_side(world, deletions[0], world.call("PUT", path), deletions[1]) == [204, 201, 204]
    assert (await world.get(path))["streams"] == 0
    await world.call("DELETE", path)
    assert problem(await world.call("DELETE", path)) == (404, "SCOPE_NOT_FOUND")


@pytest.mark.parametrize(
    "resource",
    [f"{base}/scopes/sc/{kind}" for base in ("/v1", S) for kind in ("streams/st", "readergroups/rg")]
    + [f"{S}/scopes/sc/tables/kv"],
)
async def test_a_deletion_that_is_repeated_while_it_runs_succeeds(world: World, stream: str, resource: str) -> None:
    await world.call("PUT", f"{S}/scopes/sc/tables/kv", {"partitionCount": 1, "primaryKeyLength": 8})
    await world.call("PUT", f"{S}/scopes/sc/readergroups/rg", {"config": {"streams": {"sc/st": {}}}})
    await world.call("POST", f"{ST}/seal")
    deletions = (world.call("DELETE", resource) for _ in range(2))
    assert await side_by_side(world, *deletions) == [204, 204]
    assert (await world.call("DELETE", resource)).status_code == 404


FULL: dict[str, Any] = {
    "scaling": {"type": "events", "targetRate": 100, "scaleFactor": 2, "minSegments": 3},
    "retention": {"type": "size", "min": 1000, "max": 2000},
    "tags": ["b", "a"],
    "rolloverSizeBytes": 4096,
    "timestampAggregationTimeout": 30,
}


async def test_a_stream_is_created_described_and_updated(world: World, scope: str) -> None:
    assert (await world.call("PUT", ST, FULL)).status_code == 201
    shown = await world.get(ST)
    assert shown["config"] == FULL, "tags in the order in which they were given, too"
    assert (await world.get(f"{S}/scopes/sc/streams"))["items"][0]["tags"] == ["b", "a"]
    assert (shown["state"], shown["epoch"], shown["markStream"]) == ("ACTIVE", 0, "_MARKst")
    assert [(s["id"], s["low"], s["container"] in range(4)) for s in shown["segments"]] == [
        (0, 0.0, True),
        (1, 1 / 3, True),
        (2, 2 / 3, True),
    ]
    assert shown["headCut"] == {"0": 0, "1": 0, "2": 0}
    assert shown["transactions"] == {"open": 0, "waiting": 0, "aborting": 0, "ended": 0, "endedKeptMs": 172_800_000}
    assert {"workflow", "waiting", "watermark"}.isdisjoint(shown)
    assert (await world.call("PUT", ST, {"scaling": {"minSegments": 3}})).status_code == 200
    assert (await world.get(ST))["config"]["tags"] == []
    assert "retention" not in (await world.get(ST))["config"]


async def test_a_stream_created_meanwhile_is_updated(world: World, stream: str) -> None:
    reads: Any = world.parts[Reads]

    async def sees_none(_id: StreamId) -> None:
        return None

    reads.stream_or_none = sees_none
    answer = await world.call("PUT", ST, FULL)
    assert answer.status_code == 200
    assert [type(request.command) for _, request in world.sent[-2:]] == [CreateStream, UpdateStream]


async def test_a_stored_maximum_below_the_minimum_is_shown_as_the_minimum(world: World, stream: str) -> None:
    """So it counts, and so it can be sent back."""
    retention = RetentionPolicy(RetentionType.SIZE, minimum=1000, maximum=0)
    config = StreamConfig(ScalingPolicy(min_segments=2), retention)
    await world.system.append("sc/st", ev.StreamUpdated("sc", "st", config=config))
    shown = (await world.get(ST))["config"]
    assert shown["retention"] == {"type": "size", "min": 1000, "max": 1000}
    assert (await world.call("PUT", ST, {**shown, "tags": ["new"]})).status_code == 200
    assert (await world.get(ST))["config"] == {**shown, "tags": ["new"]}


@pytest.mark.parametrize(
    "body",
    [
        {"scaling": {"minSegments": 0}},
        {"scaling": {"minSegments": "1"}},
        {"scaling": {"type": "moon"}},
        {"scaling": {"minSegments": 10_001}},
        {"retention": {"type": "size"}},
        {"retention": {"type": "size", "min": 2**63}},
        {"retention": {"type": "size", "min": 1001, "max": 1000}},
        {"tags": ["t" * 256]},
        {"tags": ["😀" * 200]},
        {"tags": [f"t{i}" for i in range(128)]},
        {"rolloverSizeBytes": -1},
        {"colour": "red"},
        [],
        b"{nothing",
        b"",
        b'{"tags": ["\\ud800"]}',
    ],
)
async def test_a_wrong_configuration_is_a_wrong_request(world: World, scope: str, body: Any) -> None:
    sent = len(world.sent)
    assert problem(await world.call("PUT", ST, body)) == (400, None)
    assert len(world.sent) == sent


async def test_a_body_of_another_type_is_not_read(world: World, scope: str) -> None:
    answer = await world.client.put(ST, content=b"{}", headers={"Content-Type": "text/plain"})
    assert problem(answer) == (415, None)


async def test_streams_are_listed_by_tag_and_in_pages(world: World, scope: str) -> None:
    await world.cover_containers()
    for name, tags in (("a", ["x"]), ("b", []), ("c", ["x", "y"])):
        assert (await world.call("PUT", f"{S}/scopes/sc/streams/{name}", {"tags": tags})).status_code == 201
    whole = await world.get(f"{S}/scopes/sc/streams")
    assert whole == {
        "items": [
            {"name": "a", "state": "ACTIVE", "epoch": 0, "segments": 1, "tags": ["x"]},
            {"name": "b", "state": "ACTIVE", "epoch": 0, "segments": 1, "tags": []},
            {"name": "c", "state": "ACTIVE", "epoch": 0, "segments": 1, "tags": ["x", "y"]},
        ]
    }
    tagged = await world.get(f"{S}/scopes/sc/streams", tag="x", limit=1)
    assert [item["name"] for item in tagged["items"]] == ["a"]
    rest = await world.get(f"{S}/scopes/sc/streams", tag="x", limit=1, after=tagged["next"])
    assert [item["name"] for item in rest["items"]] == ["c"]
    inside = await world.get(f"{S}/scopes/sc/streams", internal="true")
    assert [item["name"] for item in inside["items"]] == ["_MARKa", "_MARKb", "_MARKc", "a", "b", "c"]


async def test_seal_and_delete(world: World, stream: str) -> None:
    assert problem(await world.call("DELETE", ST)) == (409, "STREAM_NOT_SEALED")
    assert (await world.call("POST", f"{ST}/seal")).json() == {"status": "SUCCESS"}
    shown = await world.get(ST)
    assert (shown["state"], shown["segments"]) == ("SEALED", [])
    assert (await world.get(f"{ST}/segments"))["items"] == []
    assert problem(await world.call("PUT", ST, {})) == (409, "STREAM_SEALED")
    assert (await world.call("DELETE", ST)).status_code == 204
    assert problem(await world.call("GET", ST)) == (404, "STREAM_NOT_FOUND")
    assert problem(await world.call("POST", f"{ST}/seal")) == (404, "STREAM_NOT_FOUND")


async def test_truncate(world: World, stream: str) -> None:
    for segment, length in ((0, 10), (1, 20)):
        world.system.store.segments[f"sc/st/{segment}.#epoch.0"].data = bytes(length)
    assert (await world.call("POST", f"{ST}/truncate", {"cut": {"0": 10, "1": 20}})).status_code == 200
    assert (await world.get(ST))["headCut"] == {"0": 10, "1": 20}
    behind = await world.call("POST", f"{ST}/truncate", {"cut": {"0": 0, "1": 0}})
    assert problem(behind) == (409, "FAILURE")
    assert "behind the present head" in behind.json()["detail"]
    beyond = await world.call("POST", f"{ST}/truncate", {"cut": {"0": 10, "1": 999}})
    assert problem(beyond) == (409, "FAILURE")
    assert "offset 999 of segment sc/st/1.#epoch.0, which has 20 bytes" in beyond.json()["detail"]
    assert problem(await world.call("POST", f"{ST}/truncate", {"cut": {"x": 0}})) == (400, None)
    assert problem(await world.call("POST", f"{ST}/truncate", {"cut": {"0": -2}})) == (400, None)


async def test_decisions_are_shown_the_latest_first(world: World, stream: str) -> None:
    for kind, at in ((DecisionKind.SCALE, 5), (DecisionKind.RETENTION, 7)):
        recorded = ev.DecisionRecorded(scope="sc", stream="st", kind=kind, code="calm", reason=f"because {at}", at=at)
        await world.system.append("sc/st", recorded)
    expected = [
        {"kind": "retention", "code": "calm", "reason": "because 7", "at": 7},
        {"kind": "scale", "code": "calm", "reason": "because 5", "at": 5},
    ]
    assert (await world.get(f"{ST}/decisions"))["items"] == expected
    assert (await world.get(ST))["decisions"] == expected
    split = ev.DecisionRecorded("sc", "st", kind=DecisionKind.SCALE, code="split", reason="hot", at=8, acts=True)
    steady = ev.DecisionRecorded("sc", "st", kind=DecisionKind.SCALE, code="steady", reason="not scaled", at=17)
    await world.system.append("sc/st", split, steady)
    shown = (await world.get(f"{ST}/decisions"))["items"]
    assert [(d["code"], d["at"]) for d in shown] == [("steady", 17), ("split", 8), ("calm", 7)]


async def test_each_failure_of_a_request_has_its_status(world: World, scope: str) -> None:
    world.system.broker.faulty_topic, world.system.broker.refusals = REQUESTS_STREAMS.name, 1
    assert problem(await world.call("PUT", f"{S}/scopes/other")) == (504, None)
    await world.system.answer_all(Reply(Status.FAILURE, "kept as a dead letter"))
    assert problem(await world.call("PUT", f"{S}/scopes/other")) == (409, "FAILURE")
    await world.system.answer_all(Reply(Status.INVALID_TIME))
    assert problem(await world.call("PUT", f"{S}/scopes/other")) == (500, None)
    await world.system.stop_partition_of("sc")
    assert problem(await world.call("GET", f"{S}/scopes")) == (503, None)


async def test_where_no_route_is_the_answer_has_the_form_of_its_interface(world: World) -> None:
    assert problem(await world.call("GET", f"{S}/nothing")) == (404, None)
    wrong = await world.call("PATCH", f"{S}/scopes/sc")
    assert problem(wrong) == (405, None)
    assert wrong.headers["allow"] == "DELETE, GET, PUT"
    empty = await world.call("PATCH", "/v1/scopes")
    assert (empty.status_code, empty.content, empty.headers["allow"]) == (405, b"", "GET, POST")


async def test_an_existing_stream_is_not_updated_with_if_none_match(world: World, stream: str) -> None:
    before = (await world.get(stream))["config"]
    sent = len(world.sent)
    only_new = {"If-None-Match": "*"}
    refused = await world.client.put(stream, json={}, headers=only_new)
    assert problem(refused) == (412, "STREAM_EXISTS") and len(world.sent) == sent
    assert (await world.get(stream))["config"] == before
    assert (await world.client.put(f"{stream}2", json={}, headers=only_new)).status_code == 201
    await world.system.answer_all(Reply(Status.STREAM_EXISTS))
    late = await world.client.put(f"{stream}3", json={}, headers=only_new)
    assert problem(late) == (412, "STREAM_EXISTS"), "another caller was quicker"
    assert problem(await world.client.put(stream, json={}, headers={"If-None-Match": '"tag"'})) == (400, None)
