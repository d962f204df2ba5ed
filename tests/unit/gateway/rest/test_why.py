"""Decisions of a span, and what another policy would have done, over REST."""

import asyncio
from typing import Any

import msgspec
from support.decisions import hot, sampled
from unit.gateway.rest.test_sluice_streams import ST, S, problem
from unit.gateway.rest.world import World

from api_gateway.edge.reads import Reads
from sluice.domain.cluster.events import MemberJoined, MemberLeft
from sluice.domain.ids import StreamId
from sluice.domain.stream import events as ev
from sluice.domain.stream.commands import DecisionKind
from sluice.kafka.topics import RETENTION, SCALE
from sluice.policies.policy_parser import NO_TARGET

SCALED: dict[str, Any] = {"acts": True, "request": "scale-1", "numbers": {"segments": 1, "segmentsAfter": 2}}


async def decide(world: World, name: str, code: str, kind: DecisionKind = DecisionKind.SCALE, **more: Any) -> None:
    event = ev.DecisionRecorded("sc", name, kind=kind, code=code, reason="because", at=5, **more)
    await world.system.append(f"sc/{name}", event)


async def test_decisions_of_a_span_have_numbers_and_request(world: World, stream: str) -> None:
    assert (await world.call("PUT", f"{S}/scopes/sc/streams/other", {})).status_code == 201
    await decide(world, "st", "split", **SCALED)
    await decide(world, "other", "no-cut", DecisionKind.RETENTION)
    await decide(world, "st", "steady")
    found = await world.get(f"{ST}/decisions", **{"from": "-1h"})
    last, split = found["items"]
    assert (last["code"], found["complete"], "next" in found) == ("steady", True, False)
    assert {k: v for k, v in split.items() if k != "recordedAt"} == {
        "stream": "sc/st", "kind": "scale", "code": "split", "reason": "because", "at": 5, **SCALED,
    }  # fmt: skip
    everywhere = [one["stream"] for one in await world.all_items(f"{S}/decisions")]
    assert sorted(everywhere) == ["sc/other", "sc/st", "sc/st"]
    (one,) = (await world.get(f"{S}/decisions", kind="retention", code="no-cut"))["items"]
    assert one["stream"] == "sc/other"
    assert problem(await world.call("GET", f"{ST}/decisions", **{"from": "soon"})) == (400, None)


async def test_what_has_a_policy_says_since_when_no_one_decides_by_it(world: World, stream: str) -> None:
    fixed = f"{S}/scopes/sc/streams/fixed"
    scaled: Any = {"scaling": {"type": "events", "targetRate": 9, "scaleFactor": 2}}
    assert (await world.call("PUT", stream, scaled)).status_code == 200
    assert (await world.call("PUT", fixed, {})).status_code == 201
    assert (await world.get(stream))["undecidedSince"] == (await world.get(stream))["createdAt"], "never there"
    for instance in ("one", "two"):
        await world.system.append("cluster", MemberJoined("retention-spark", instance, {}, at=3))
    await world.system.append("cluster", MemberLeft("one", at=7))
    assert "undecidedSince" not in await world.get(stream)
    await world.system.append("cluster", MemberLeft("two", at=8))
    for path in (stream, f"{stream}/decisions"):
        assert (await world.get(path))["undecidedSince"] == 8
    assert "undecidedSince" not in await world.get(fixed)
    await world.system.append("cluster", MemberJoined("retention-spark", "two", {}, at=9))
    assert "undecidedSince" not in await world.get(stream)


async def test_without_a_span_nothing_is_looked_for_in_the_past(world: World, stream: str) -> None:
    await decide(world, "st", "split", **SCALED)
    found = await world.get(f"{ST}/decisions")
    assert found == {"items": [{"kind": "scale", "code": "split", "reason": "because", "at": 5}]}
    assert world.lookback.done == []


async def test_what_another_scaling_or_retention_would_have_done(world: World, stream: str) -> None:
    now = world.runtime.clock.now_ms()
    for report, topic in (
        (hot("st", now, scope="sc", splits=8, epoch_since=-10_000_000), SCALE),
        (sampled("st", now, 5000, scope="sc"), RETENTION),
    ):
        world.system.broker.land(topic.name, "sc/st", msgspec.json.encode(report))
    scaled = (await world.call("POST", f"{ST}/what-if", {"scaling": {"scaleFactor": 4}, "since": "-1h"})).json()
    (split,) = scaled["would"]
    assert (split["code"], split["segments"], split["acts"]) == ("split", 4, True)
    assert (scaled["kind"], scaled["happened"], scaled["firstDifference"]) == ("scale", [], split["at"])
    assert NO_TARGET in scaled["notes"] and "kept" not in scaled
    body = {"retention": {"type": "size", "min": 100}, "since": now - 1000}
    kept = (await world.call("POST", f"{ST}/what-if", body)).json()["kept"]
    assert (kept["happened"], kept["would"]) == ([5000], [5000])


async def test_a_what_if_that_cannot_be_answered_is_refused(world: World, stream: str) -> None:
    retention = {"type": "size", "min": 100}
    for body in (
        {},
        {"scaling": {}, "retention": retention},
        {"retention": {**retention, "max": 7}},
        {"retention": retention, "since": "-8d"},
        {"retention": retention, "since": "soon"},
        {"retention": retention, "since": 2**70},
    ):
        assert problem(await world.call("POST", f"{ST}/what-if", body)) == (400, None), body
    target = await world.call("POST", f"{ST}/what-if", {"scaling": {"targetRate": 7}})
    assert problem(target) == (400, None) and NO_TARGET in target.json()["detail"]
    elsewhere = await world.call("POST", f"{S}/scopes/sc/streams/no/what-if", {"retention": retention})
    assert problem(elsewhere) == (404, "STREAM_NOT_FOUND")
    assert world.lookback.done == ["what-if"]


async def test_what_was_reported_of_a_stream_is_shown_of_segments_that_it_has(world: World, stream: str) -> None:
    now = world.runtime.clock.now_ms()
    found = world.parts[Reads].known_stream(StreamId("sc", "st"))
    assert found is not None
    same = {"scope": "sc", "creation_id": found.creation_id}
    for report, topic in (
        (hot("st", now - 1000, **same), SCALE),
        (hot("st", now, **same), SCALE),
        (hot("st", now, segment=77, **same), SCALE),
        (sampled("st", now, 5000, **same), RETENTION),
    ):
        world.system.broker.land(topic.name, "sc/st", msgspec.json.encode(report))
    reports = await world.get(f"{ST}/reports")
    assert now - 7 * 24 * 3600 * 1000 <= reports.pop("searchedTo") <= now and reports.pop("complete")
    assert reports == {
        "loads": [{"segment": 0, "load": "hot", "since": now - 1000, "reportedAt": now}],
        "loadReportedAt": now,
        "retentionReportedAt": now,
        "retentionSet": {"at": [now], "bytes": [5000]},
    }
    assert (await world.call("POST", f"{ST}/seal")).status_code == 200
    assert (await world.get(f"{ST}/reports"))["loads"] == []
    assert problem(await world.call("GET", f"{S}/scopes/sc/streams/no/reports")) == (404, "STREAM_NOT_FOUND")


async def test_of_two_what_ifs_at_once_one_is_answered(world: World, stream: str) -> None:
    body = {"scaling": {"minSegments": 2}}
    answers = await asyncio.gather(*(world.call("POST", f"{ST}/what-if", body) for _ in range(2)))
    assert sorted(answer.status_code for answer in answers) == [200, 503]
    assert {answer.headers.get("retry-after") for answer in answers} == {None, "1"}
    assert (await world.call("POST", f"{ST}/what-if", body)).status_code == 200
