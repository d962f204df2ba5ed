"""What the conformance cases cannot ask of Pravega's REST interface."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from support.wait import SOON_S, eventually_async
from unit.gateway.rest.world import World
from unit.gateway.support import creation_started

from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.shares import Shares
from api_gateway.pravega.rest.convert import DAY_MS, UNBOUNDED, config_of, stream_property
from api_gateway.pravega.rest.models import CreateStreamRequest
from sluice.domain.cluster import events as ev
from sluice.domain.config import RetentionPolicy, RetentionType, StreamConfig
from sluice.domain.decision import Reply
from sluice.domain.host import Host
from sluice.domain.status import Status

FIXED = {"type": "FIXED_NUM_SEGMENTS", "minSegments": 1}


def converted(retention: Any) -> RetentionPolicy | None:
    sent = CreateStreamRequest.model_validate({"scalingPolicy": FIXED, "retentionPolicy": retention})
    return config_of(sent, with_maximum=True).retention


def test_a_maximum_of_no_days_gives_way_to_that_in_hours() -> None:
    maximum = {"maxValue": 0, "maxTimeBasedRetention": {"days": 3, "hours": 0, "minutes": 0}}
    stored = RetentionPolicy(RetentionType.TIME, 2 * DAY_MS, 3 * DAY_MS)
    assert converted({"type": "LIMITED_DAYS", "value": 2, **maximum}) == stored


def test_more_megabytes_than_can_be_counted_are_refused() -> None:
    with pytest.raises(BadRequestError):
        converted({"type": "LIMITED_SIZE_MB", "value": 2**63 - 1})


@pytest.mark.parametrize(("minimum", "days", "shown"), [(-DAY_MS, -1, -1), (DAY_MS + 1, 1, 0), (59_999, 0, 0)])
def test_times_are_shown_without_what_is_less_than_a_minute(minimum: int, days: int, shown: int) -> None:
    config = StreamConfig(retention=RetentionPolicy(RetentionType.TIME, minimum, UNBOUNDED))
    policy = stream_property("sc", "st", config).retention_policy
    assert policy is not None and policy.time_based_retention is not None
    assert (policy.value, policy.time_based_retention.days) == (shown, days)


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
    await world.system.stop_deciding()
    await world.system.append("sc/st", creation_started(config=StreamConfig(tags=("a",))))
    assert (await world.get("/v1/scopes/sc/streams"))["streams"] == []
    (found,) = (await world.get("/v1/scopes/sc/streams", filter_type="tag", filter_value="a"))["streams"]
    assert found["streamName"] == "st"


async def test_an_internal_stream_has_no_tags_to_be_found_by(world: World, stream: str) -> None:
    body: Any = {"tags": ["a"]}
    for name in ("_x", "y"):
        assert (await world.call("PUT", f"/sluice/v1/scopes/sc/streams/{name}", body)).status_code == 201
    found = (await world.get("/v1/scopes/sc/streams", filter_type="tag", filter_value="a"))["streams"]
    assert [one["streamName"] for one in found] == ["y"]


async def test_a_long_list_is_whole_though_it_yields_between_its_parts(
    world: World, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api_gateway.edge.reads.AT_A_TIME", 1)
    for name in ("a", "b", "c"):
        await world.call("PUT", f"/sluice/v1/scopes/sc/streams/{name}", {})
    assert [s["streamName"] for s in (await world.get("/v1/scopes/sc/streams"))["streams"]] == ["a", "b", "c"]
    assert await world.get("/v1/scopes/sc/readergroups") == {}


@pytest.fixture
async def group(world: World, stream: str) -> str:
    """The segment of a group's state, which no reader has written to."""
    body: Any = {"config": {"streams": {"sc/st": {}}}}
    assert (await world.call("PUT", "/sluice/v1/scopes/sc/readergroups/rg", body)).status_code == 201
    return "sc/_RGrg/0.#epoch.0"


async def test_health_is_up_while_no_one_decides_by_policies(world: World) -> None:
    others = ("api-gateway", "cluster-manager", "stream-workflows", "txn-manager", "retention-spark")
    joined = [ev.MemberJoined(service=name, instance=name, endpoints={}, at=3) for name in others]
    hosts = (Host("store", 1),)
    assigned = ev.ContainersAssigned(containers=dict.fromkeys(range(4), hosts[0]), hosts=hosts, at=5)
    await world.system.append("cluster", *joined, assigned, ev.MemberLeft(instance="retention-spark", at=9))
    assert await world.get("/v1/health/status/retention-spark") == "DOWN"
    assert await world.get("/v1/health/status") == "UP"


async def test_a_group_whose_state_cannot_be_decoded_is_a_failure(world: World, group: str) -> None:
    await world.store.append(group, uuid4(), b"nonsense")
    assert (await world.call("GET", "/v1/scopes/sc/readergroups/rg")).status_code == 500


async def test_a_group_whose_segment_is_gone_is_not_there(world: World, group: str) -> None:
    await world.store.delete_segment(group)
    assert (await world.call("GET", "/v1/scopes/sc/readergroups/rg")).status_code == 404


async def test_health_is_about_this_process_and_shows_the_others(world: World) -> None:
    world.runtime.checks["journal"] = lambda: None
    world.runtime.degraded["segment stores"] = lambda: "container 3 does not answer"
    host = Host("store", 1)
    await world.system.append(
        "cluster",
        ev.MemberJoined(service="txn-manager", instance="txn-1", endpoints={"rest": "h:1"}, at=3),
        ev.MemberJoined(service="retention-spark", instance="spark-1", endpoints={}, at=3),
        ev.ContainersAssigned(containers={0: host, 1: host}, hosts=(host, Host("spare", 2)), at=5),
    )
    whole = await world.get("/v1/health")
    assert (whole["name"], whole["status"], whole["readiness"], whole["liveness"]) == ("", "DOWN", False, True)
    assert {name: child["status"] for name, child in whole["children"].items()} == {
        "journal": "UP",
        "disk": "UP",
        "segment stores": "DOWN",
        "api-gateway": "DOWN",
        "cluster-manager": "DOWN",
        "stream-workflows": "DOWN",
        "txn-manager": "UP",
        "retention-spark": "UP",
        "segment-stores": "DOWN",
    }
    assert await world.get("/v1/health/details/txn-manager") == {"txn-1": "rest h:1"}
    assert await world.get("/v1/health/details/segment stores") == {"problem": "container 3 does not answer"}
    assert await world.get("/v1/health/details/segment-stores") == {
        "spare:2": "0 containers",
        "store:1": "2 containers",
        "container 2": "no segment store runs it",
        "container 3": "no segment store runs it",
    }
    assert await world.get("/v1/health/liveness/segment stores") is False
    world.runtime.checks["journal"] = lambda: "loading"
    assert await world.get("/v1/health/status") == "STARTING"
    assert await world.get("/v1/health/readiness") is False
    assert await world.get("/v1/health/liveness") is True


async def test_every_operation_of_the_description_has_an_id_and_tags(world: World) -> None:
    described = await world.get("/openapi.json")
    assert "/sluice/v1/scopes/{scope}" in described["paths"]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            assert operation["operationId"] and operation["tags"], f"{method} {path}"
            assert "422" not in operation["responses"]
    ids = [o["operationId"] for operations in described["paths"].values() for o in operations.values()]
    assert len(ids) == len(set(ids))


async def test_scale_events_are_sent_one_by_one_and_their_call_keeps_its_place(world: World, stream: str) -> None:
    assert (await world.call("POST", f"{stream}/scale", {"sealed": [0], "ranges": [[0.0, 0.5]]})).status_code == 202
    await world.until_idle("sc/st", "stream:sc/st")
    path, query = "/v1/scopes/sc/streams/st/scaling-events", "from=0&to=9999999999999"
    capacity, goes_on, parts = world.app.state.capacity, asyncio.Event(), list[Any]()
    capacity.calls = Shares(1, "calls")

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            parts.append(message["body"])
            await goes_on.wait()

    call = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "headers": [], "scheme": "http", "root_path": "", "client": ("127.0.0.1", 1), "server": ("gateway", 80),
    }  # fmt: skip
    answering = asyncio.create_task(world.app(call, receive, send))
    await eventually_async(lambda: bool(parts), SOON_S, "the answer begins")
    assert (await world.call("GET", path)).status_code == 503, "it has its place"
    goes_on.set()
    await asyncio.wait_for(answering, SOON_S)
    events = [part for part in parts if b"timestamp" in part]
    assert [part.count(b"timestamp") for part in events] == [1, 1]
    assert b"".join(parts) == (await world.call("GET", f"{path}?{query}")).content
