"""What of Pravega's interface is ours alone to check: the rest is asked of both in the conformance tests."""

from typing import Any
from uuid import uuid4

import pytest
from support import group_state as written
from unit.gateway.rest.world import World

from api_gateway.errors import BadRequestError
from api_gateway.rest.pravega_v1.convert import DAY_MS, MEGABYTE, UNBOUNDED, config_of, stream_property
from api_gateway.rest.pravega_v1.models import CreateStreamRequest
from sluice.domain.cluster.commands import Host
from sluice.domain.cluster.events import ContainersAssigned, MemberJoined
from sluice.domain.config import RetentionPolicy, RetentionType, StreamConfig
from sluice.domain.decision import Reply
from sluice.domain.segment import Segment
from sluice.domain.status import Status
from sluice.domain.stream.events import StreamCreationStarted

FIXED = {"type": "FIXED_NUM_SEGMENTS", "minSegments": 1}


def converted(retention: Any, *, with_maximum: bool = True) -> RetentionPolicy | None:
    sent = CreateStreamRequest.model_validate({"scalingPolicy": FIXED, "retentionPolicy": retention})
    return config_of(sent, with_maximum=with_maximum).retention


@pytest.mark.parametrize(
    ("retention", "stored"),
    [
        (None, None),
        ({"type": "LIMITED_SIZE_MB", "value": 2}, (RetentionType.SIZE, 2 * MEGABYTE, UNBOUNDED)),
        ({"type": "LIMITED_SIZE_MB", "value": 2, "maxValue": 3}, (RetentionType.SIZE, 2 * MEGABYTE, 3 * MEGABYTE)),
        ({"type": "LIMITED_DAYS", "value": 2}, (RetentionType.TIME, 2 * DAY_MS, UNBOUNDED)),
        (
            {"type": "LIMITED_DAYS", "value": 0, "timeBasedRetention": {"days": 0, "hours": 1, "minutes": 1}},
            (RetentionType.TIME, 3_660_000, UNBOUNDED),
        ),
        ({"type": "LIMITED_DAYS", "value": 2, "maxValue": 0}, (RetentionType.TIME, 2 * DAY_MS, 0)),
        (
            {
                "type": "LIMITED_DAYS",
                "value": 2,
                "maxValue": 0,
                "maxTimeBasedRetention": {"days": 3, "hours": 0, "minutes": 0},
            },
            (RetentionType.TIME, 2 * DAY_MS, 3 * DAY_MS),
        ),
    ],
)
def test_retention(retention: Any, stored: tuple[RetentionType, int, int] | None) -> None:
    assert converted(retention) == (RetentionPolicy(*stored) if stored is not None else None)


@pytest.mark.parametrize(
    "retention",
    [
        {"value": 1},
        {"type": "LIMITED_DAYS"},
        {"type": "LIMITED_SIZE_MB", "value": 2**63 - 1},
        {"type": "LIMITED_DAYS", "value": 2**62},
        {"type": "LIMITED_DAYS", "value": 0, "timeBasedRetention": {"days": 1}},
    ],
)
def test_a_retention_that_cannot_be_meant(retention: Any) -> None:
    with pytest.raises(BadRequestError):
        converted(retention)


def test_an_update_ignores_the_maximum() -> None:
    sent = {"type": "LIMITED_SIZE_MB", "value": 2, "maxValue": 3}
    assert converted(sent, with_maximum=False) == RetentionPolicy(RetentionType.SIZE, 2 * MEGABYTE, UNBOUNDED)


@pytest.mark.parametrize(("minimum", "days", "shown"), [(-DAY_MS, -1, -1), (DAY_MS + 1, 1, 0), (59_999, 0, 0)])
def test_times_are_shown_without_what_is_less_than_a_minute(minimum: int, days: int, shown: int) -> None:
    config = StreamConfig(retention=RetentionPolicy(RetentionType.TIME, minimum, UNBOUNDED))
    told = stream_property("sc", "st", config).retention_policy
    assert told is not None and told.time_based_retention is not None
    assert (told.value, told.time_based_retention.days) == (shown, days)


async def test_a_limit_of_ours_is_a_wrong_request(world: World, scope: str) -> None:
    body = {"streamName": "st", "scalingPolicy": {**FIXED, "minSegments": 10_001}}
    assert (await world.call("POST", "/v1/scopes/sc/streams", body)).status_code == 400
    assert len(world.sent) == 1


async def test_a_tag_that_is_no_text_is_a_wrong_request(world: World, scope: str) -> None:
    body = (
        b'{"streamName": "st", "scalingPolicy": {"type": "FIXED_NUM_SEGMENTS", "minSegments": 1}, "streamTags": ["%s"]}'
    )
    answer = await world.call("POST", "/v1/scopes/sc/streams", body % b"\\ud800")
    assert (answer.status_code, answer.content) == (400, b"")
    whole = await world.call("POST", "/v1/scopes/sc/streams", body % b"\\ud83d\\ude00")
    assert (whole.status_code, whole.json()["tags"]) == (201, ["\U0001f600"])


async def test_a_refusal_has_no_body_and_a_change_the_id_of_its_request(world: World, stream: str) -> None:
    answer = await world.call("DELETE", "/v1/scopes/sc/streams/st")
    assert (answer.status_code, answer.content) == (412, b"")
    assert answer.headers["sluice-request"] == world.sent[-1][1].id
    await world.system.answer_all(Reply(Status.FAILURE, "kept as a dead letter"))
    assert (await world.call("PUT", "/v1/scopes/sc/streams/st/state", {"streamState": "SEALED"})).status_code == 500


async def test_streams_that_are_being_created_are_not_listed(world: World, stream: str) -> None:
    segments = (Segment(0, 0.0, 1.0),)
    started = StreamCreationStarted(
        scope="sc", stream="st", creation_id="i", config=StreamConfig(tags=("a",)), created_at=1, segments=segments
    )
    await world.system.stop_deciding()
    await world.system.append("sc/st", started)
    assert (await world.get("/v1/scopes/sc/streams"))["streams"] == []
    (found,) = (await world.get("/v1/scopes/sc/streams", filter_type="tag", filter_value="a"))["streams"]
    assert found["streamName"] == "st"


async def test_a_long_list_lets_others_have_their_turn(
    world: World, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api_gateway.reads.AT_A_TIME", 1)
    for name in ("a", "b", "c"):
        await world.call("PUT", f"/sluice/v1/scopes/sc/streams/{name}", {})
    assert [s["streamName"] for s in (await world.get("/v1/scopes/sc/streams"))["streams"]] == ["a", "b", "c"]
    assert await world.get("/v1/scopes/sc/readergroups") == {}


async def test_a_group_is_deleted_by_the_id_its_readers_know(world: World, stream: str) -> None:
    body: Any = {"config": {"streams": {"sc/st": {}}}}
    created = await world.call("PUT", "/sluice/v1/scopes/sc/readergroups/rg", body)
    segment = "sc/_RGrg/0.#epoch.0"
    path = "/v1/scopes/sc/readergroups/rg"
    assert (await world.call("GET", path)).status_code == 500
    other = written.config(["sc/st"], str(uuid4()), 0)
    await world.store.append(segment, uuid4(), written.initial(other, ["sc/st/0.#epoch.0"]))
    told = await world.get(path)
    assert (told["streamList"], told["onlineReaderIds"]) == (["sc/st"], [])
    assert (await world.call("DELETE", path)).status_code == 404
    known = written.config(["sc/st"], created.json()["id"], 0)
    await world.store.append(segment, uuid4(), written.initial(known, ["sc/st/0.#epoch.0"]))
    assert (await world.call("DELETE", path)).status_code == 204


async def test_a_state_that_cannot_be_made_out_is_a_failure(world: World, stream: str) -> None:
    await world.call("PUT", "/sluice/v1/scopes/sc/readergroups/rg", {"config": {"streams": {"sc/st": {}}}})
    await world.store.append("sc/_RGrg/0.#epoch.0", uuid4(), b"nonsense")
    assert (await world.call("GET", "/v1/scopes/sc/readergroups/rg")).status_code == 500


async def test_a_group_whose_segment_is_gone_is_not_there(world: World, stream: str) -> None:
    await world.call("PUT", "/sluice/v1/scopes/sc/readergroups/rg", {"config": {"streams": {"sc/st": {}}}})
    await world.store.delete_segment("sc/_RGrg/0.#epoch.0")
    assert (await world.call("GET", "/v1/scopes/sc/readergroups/rg")).status_code == 404


async def test_health_is_about_this_process_and_shows_the_others(world: World) -> None:
    world.runtime.checks["journal"] = lambda: None
    world.runtime.degraded["segment stores"] = lambda: "container 3 does not answer"
    host = Host("store", 1)
    await world.system.append(
        "cluster",
        MemberJoined(service="txn-manager", instance="txn-1", endpoints={"rest": "h:1"}, at=3),
        ContainersAssigned(containers={0: host, 1: host}, hosts=(host, Host("spare", 2)), at=5),
    )
    whole = await world.get("/v1/health")
    assert (whole["name"], whole["status"], whole["readiness"], whole["liveness"]) == ("", "UP", True, True)
    assert {name: child["status"] for name, child in whole["children"].items()} == {
        "journal": "UP",
        "segment stores": "DOWN",
        "api-gateway": "DOWN",
        "cluster-manager": "DOWN",
        "stream-workflows": "DOWN",
        "txn-manager": "UP",
        "segment-stores": "UP",
    }
    assert await world.get("/v1/health/details/txn-manager") == {"txn-1": "rest h:1"}
    assert await world.get("/v1/health/details/segment stores") == {"problem": "container 3 does not answer"}
    assert await world.get("/v1/health/details/segment-stores") == {
        "spare:2": "0 containers",
        "store:1": "2 containers",
    }
    assert await world.get("/v1/health/liveness/segment stores") is False
    world.runtime.checks["journal"] = lambda: "loading"
    assert await world.get("/v1/health/status") == "STARTING"
    assert await world.get("/v1/health/readiness") is False
    assert await world.get("/v1/health/liveness") is True


async def test_metrics_and_their_other_path(world: World) -> None:
    for path in ("/metrics", "/prometheus"):
        answer = await world.call("GET", path)
        assert answer.headers["content-type"].startswith("text/plain")
        assert "sluice_http_seconds" in answer.text


async def test_the_description_and_its_page(world: World) -> None:
    described = await world.get("/openapi.json")
    assert "/sluice/v1/scopes/{scope}" in described["paths"]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            assert operation["operationId"] and operation["tags"], f"{method} {path}"
            assert "422" not in operation["responses"]
    ids = [o["operationId"] for operations in described["paths"].values() for o in operations.values()]
    assert len(ids) == len(set(ids))
    assert "openapi.json" in (await world.call("GET", "/docs")).text
