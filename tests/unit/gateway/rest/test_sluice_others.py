"""Reader groups, tables, workflows and the cluster in Sluice's own interface."""

from typing import Any

import pytest
from unit.gateway.rest.test_sluice_streams import S, problem
from unit.gateway.rest.world import World
from unit.gateway.support import creation_started

from api_gateway.console.container_load import MEASURED_S
from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.cluster.events import ContainersAssigned, ContainersUnresponsive, MemberJoined, MemberLeft
from sluice.domain.decision import Reply
from sluice.domain.host import Host
from sluice.domain.scope.commands import CreateScope
from sluice.domain.status import Status
from sluice.domain.workflow import CancelWorkflow, RetryWorkflow, WorkflowStepFailed
from sluice.kafka.requests import Request, encode_request
from sluice.kafka.topics import REQUESTS_CLUSTER
from sluice.memory.broker import MemoryMessage
from sluice.pravega.memory import Moment
from sluice.pravega.routing import container_of

RG = f"{S}/scopes/sc/readergroups/rg"
KV = f"{S}/scopes/sc/tables/kv"
BODY: dict[str, Any] = {"config": {"streams": {"sc/st": {"start": {"0": 0, "1": 0}}}, "retention": "manual"}}


async def test_the_life_of_a_reader_group(world: World, stream: str) -> None:
    created = await world.call("PUT", RG, BODY)
    assert created.status_code == 201
    shown = created.json()
    assert (shown["state"], shown["generation"]) == ("ACTIVE", 0)
    assert shown["config"] == {
        "streams": {"sc/st": {"start": {"0": 0, "1": 0}}},
        "retention": "manual",
        "refreshMs": 3000,
        "checkpointIntervalMs": 30000,
        "maxOutstandingCheckpoints": 3,
    }
    assert await world.get(RG) == shown
    (subscriber,) = (await world.get(stream))["subscribers"]
    assert (subscriber["name"], subscriber["groupId"], subscriber["cut"]) == ("sc/rg", shown["id"], {})
    updated = await world.call("PUT", RG, {"config": {"streams": {"sc/st": {}}}, "generation": 0})
    assert (updated.status_code, updated.json()["generation"], updated.json()["id"]) == (200, 1, shown["id"])
    assert (await world.get(stream))["subscribers"] == []
    late = await world.call("PUT", RG, {"config": {"streams": {"sc/st": {}}}, "generation": 0})
    assert problem(late) == (409, "INVALID_CONFIG")
    listed = await world.get(f"{S}/scopes/sc/readergroups")
    assert listed == {"items": [{"name": "rg", "state": "ACTIVE", "streams": ["sc/st"]}]}
    assert (await world.call("DELETE", RG)).status_code == 204
    assert problem(await world.call("GET", RG)) == (404, "RG_NOT_FOUND")
    assert problem(await world.call("DELETE", RG)) == (404, "RG_NOT_FOUND")


async def test_a_group_without_automatic_checkpoints_is_taken_as_it_is_shown(world: World, stream: str) -> None:
    created = await world.call("PUT", RG, BODY)
    config = {**created.json()["config"], "checkpointIntervalMs": -1}
    updated = await world.call("PUT", RG, {"config": config})
    assert (updated.status_code, updated.json()["config"]) == (200, config)


@pytest.mark.parametrize(
    "config",
    [
        {"streams": {}},
        {"streams": {"nonsense": {}}},
        {"streams": {"sc/st": {"start": {"0": 5}, "end": {"0": 3}}}},
        {"streams": {"sc/st": {}}, "retention": "moon"},
        {"streams": {"sc/st": {}}, "checkpointIntervalMs": -2},
    ],
)
async def test_a_wrong_reader_group_is_a_wrong_request(world: World, stream: str, config: Any) -> None:
    assert problem(await world.call("PUT", RG, {"config": config})) == (400, None)


async def test_a_reader_group_of_a_missing_stream_or_scope_is_refused(world: World, scope: str) -> None:
    for retention in ("none", "manual"):
        body: dict[str, Any] = {"config": {"streams": {"sc/st": {}}, "retention": retention}}
        assert problem(await world.call("PUT", RG, body)) == (409, "STREAM_NOT_FOUND")
    assert problem(await world.call("GET", RG)) == (404, "RG_NOT_FOUND")
    assert problem(await world.call("PUT", f"{S}/scopes/no/readergroups/rg", BODY)) == (404, "SCOPE_NOT_FOUND")


async def test_the_life_of_a_table(world: World, scope: str) -> None:
    await world.cover_containers()
    config = {"partitionCount": 2, "primaryKeyLength": 8}
    assert (await world.call("PUT", KV, config)).status_code == 201
    assert (await world.call("PUT", KV, config)).json() == {"status": "TABLE_EXISTS"}
    assert problem(await world.call("PUT", KV, {**config, "partitionCount": 3})) == (409, "TABLE_EXISTS")
    shown = await world.get(KV)
    assert shown["config"] == {**config, "secondaryKeyLength": 0, "rolloverSizeBytes": 0}
    assert [(s["low"], s["high"]) for s in shown["segments"]] == [(0.0, 0.5), (0.5, 1.0)]
    listed = await world.get(f"{S}/scopes/sc/tables")
    assert listed == {"items": [{"name": "kv", "state": "ACTIVE", "partitionCount": 2}]}
    assert (await world.call("DELETE", KV)).status_code == 204
    assert problem(await world.call("DELETE", KV)) == (404, "TABLE_NOT_FOUND")
    assert problem(await world.call("GET", KV)) == (404, "TABLE_NOT_FOUND")
    assert problem(await world.call("PUT", KV, {**config, "primaryKeyLength": 0})) == (400, None)


async def under_way(world: World, *streams: str) -> None:
    """Have creations of streams begin that are not finished."""
    await world.system.stop_deciding()
    for name in streams:
        failed = WorkflowStepFailed(aggregate=f"stream:sc/{name}", step="create", attempts=4, error="away")
        await world.system.append(f"sc/{name}", creation_started(name), failed)


async def test_running_workflows(world: World, scope: str) -> None:
    await under_way(world, "a", "b", "c")
    workflows = await world.all_items(f"{S}/workflows")
    assert [w["aggregate"] for w in workflows] == [f"stream:sc/{n}" for n in "abc"]
    tried_by = workflows[0].pop("nextAttemptAt") - world.runtime.clock.now_ms()
    assert 0 <= tried_by <= 6_250
    assert (workflows[0].pop("state"), workflows[0].pop("waitsFor")["why"][:16]) == ("failing", "no segment store")
    actions = [{"action": action, "allowed": True} for action in ("retry", "cancel")]
    assert workflows[0].pop("allowed") == actions
    assert workflows[0] == {
        "aggregate": "stream:sc/a",
        "id": "create-stream-r",
        "kind": "create-stream",
        "step": "create",
        "since": 1,
        "attempts": 4,
        "lastError": "away",
        "retryRequests": 0,
        "cancelled": False,
        "canCancel": True,
    }
    assert (await world.get(f"{S}/workflows", kind="seal-stream"))["items"] == []
    assert len((await world.get(f"{S}/workflows", scope="sc", kind="create-stream"))["items"]) == 3
    assert (await world.get(f"{S}/workflows", scope="s"))["items"] == []
    assert problem(await world.call("GET", f"{S}/workflows", kind="moon")) == (400, None)
    workflow = (await world.get(f"{S}/scopes/sc/streams/a"))["workflow"]
    assert (workflow["kind"], workflow["lastError"]) == ("create-stream", "away")


async def test_where_nothing_is_under_way_there_is_nothing_to_retry_or_cancel(world: World, stream: str) -> None:
    for what in ("retry", "cancel"):
        idle = await world.call("POST", f"{S}/workflows/{what}", {"aggregate": "stream:sc/st"})
        assert problem(idle) == (409, "NOT_RUNNING")
        assert idle.json()["detail"] == "stream:sc/st: nothing is under way there"
        for nonsense in ("", "stream:sc", "moon:sc/st", "txn:sc/st/x"):
            wrong = await world.call("POST", f"{S}/workflows/{what}", {"aggregate": nonsense})
            assert problem(wrong) == (400, None)


async def test_a_workflow_is_retried(world: World, scope: str) -> None:
    await under_way(world, "a")
    await world.system.answer_all(Reply(Status.SUCCESS))
    assert (await world.call("POST", f"{S}/workflows/retry", {"aggregate": "stream:sc/a"})).status_code == 200
    assert world.sent[-1][1].command == RetryWorkflow("stream:sc/a")


async def test_a_cancellation_names_the_workflow_that_runs_now(world: World, scope: str) -> None:
    idle = await world.call("POST", f"{S}/workflows/cancel", {"aggregate": "stream:sc/a"})
    assert problem(idle) == (409, "NOT_RUNNING")
    assert "CancelWorkflow" not in (type(request.command).__name__ for _, request in world.sent)
    await under_way(world, "a")
    await world.system.answer_all(Reply(Status.SUCCESS))
    assert (await world.call("POST", f"{S}/workflows/cancel", {"aggregate": "stream:sc/a"})).status_code == 200
    assert world.sent[-1][1].command == CancelWorkflow("stream:sc/a", "create-stream-r")


async def test_the_workflow_to_be_cancelled_can_be_named(world: World, scope: str) -> None:
    await under_way(world, "a")
    (seen,) = (await world.get(f"{S}/workflows"))["items"]
    for id, answer in (
        (seen["id"], Reply(Status.SUCCESS)),
        ("scale-stream-1", Reply(Status.NOT_RUNNING, "another one is")),
    ):
        await world.system.answer_all(answer)
        body = {"aggregate": seen["aggregate"], "workflow": id}
        shown = await world.call("POST", f"{S}/workflows/cancel", body)
        assert shown.json().get("reason", "SUCCESS") == answer.status
        assert world.sent[-1][1].command == CancelWorkflow("stream:sc/a", id)


async def test_nothing_is_cancelled_blindly_while_the_journal_is_away(world: World, scope: str) -> None:
    await under_way(world, "a")
    await world.system.stop_partition_of("sc/a")
    away = await world.call("POST", f"{S}/workflows/cancel", {"aggregate": "stream:sc/a"})
    assert (away.status_code, world.sent[-1][1].command) == (503, CreateScope("sc"))


async def test_the_container_map(world: World) -> None:
    empty = await world.get(f"{S}/containers")
    nowhere = {"problem": "no segment store runs it", "unresponsiveSince": 0}
    assert empty == {"items": [{"container": n, **nowhere} for n in range(4)], "stores": [], "assignedAt": 0}
    host = Host("store", 1)
    assigned = ContainersAssigned(containers={0: host, 2: host}, hosts=(host,), at=5)
    await world.system.append("cluster", assigned)
    shown = await world.get(f"{S}/containers")
    assert [item.get("store") for item in shown["items"]] == ["store:1", None, "store:1", None]
    assert (shown["stores"], shown["assignedAt"]) == (["store:1"], 5)


async def test_stores_are_drained_and_containers_spread_by_what_is_written(world: World, stream: str) -> None:
    host = await world.cover_containers()
    spare = Host("spare", 2)
    both = ContainersAssigned(containers=dict.fromkeys(range(4), host), hosts=(spare, host), at=5)
    await world.system.append("cluster", both)
    path = f"{S}/containers"
    assert problem(await world.call("POST", f"{path}/drain", {"store": "nowhere:1"})) == (409, "PRECONDITION_FAILED")
    assert problem(await world.call("POST", f"{path}/drain", {"store": "nowhere"})) == (400, None)
    assert (await world.call("POST", f"{path}/drain", {"store": "store:1"})).json() == {"status": "SUCCESS"}
    assert (await world.get(path))["drained"] == ["store:1"]
    assert (await world.call("POST", f"{path}/undrain", {"store": "store:1"})).json() == {"status": "SUCCESS"}
    assert "drained" not in await world.get(path)

    name = "sc/st/0.#epoch.0"

    def grow(moment: Moment, _request: str, segment: str) -> None:
        if moment == "after" and segment == name:
            world.store.segments[name].data += bytes(3_000)

    world.store.fault = grow
    assert (await world.call("POST", f"{path}/rebalance")).json() == {"status": "SUCCESS"}
    ((container, load),) = (await world.get(path))["load"].items()
    assert container == str(container_of(name, 4))
    assert 0 < load <= 3_000 / MEASURED_S


async def test_a_container_that_does_not_answer_shows_wherever_it_matters(world: World, stream: str) -> None:
    await world.cover_containers()
    table = {"partitionCount": 8, "primaryKeyLength": 16}
    assert (await world.call("PUT", KV, table)).status_code == 201
    await world.system.append("cluster", MemberJoined(service="txn-manager", instance="a", endpoints={}, at=3))
    assert "unreachable" not in await world.get(stream) and "unreachable" not in await world.get(KV)
    silent: int = (await world.get(stream))["segments"][0]["container"]
    problems = {"segment stores": f"containers {silent} do not answer: closed"}
    world.last_heartbeats.observe([heartbeat("a", 7, problems=problems)])
    await world.system.append("cluster", ContainersUnresponsive(instance="a", containers=(silent,), at=7_000))
    says = "has not answered a since 1970-01-01T00:00:07Z"

    items = {item["container"]: item for item in (await world.get(f"{S}/containers"))["items"]}
    since = {"unresponsiveSince": 7_000, "unresponsiveStore": "store:1"}
    assert items.pop(silent) == {"container": silent, "store": "store:1", "problem": says, **since}
    assert not any("problem" in item for item in items.values())
    assert (await world.all_items(f"{S}/members"))[0]["problems"] == problems
    shown = await world.get(stream)
    for segment in shown["segments"]:
        assert segment.get("problem") == (says if segment["container"] == silent else None)
    many = sum("problem" in segment for segment in shown["segments"])
    assert shown["unreachable"] == {"segments": many, "since": 7_000, "stores": ["store:1"], "gone": []}
    assert [one["unreachable"] for one in await world.all_items(f"{S}/streams")] == [many]
    assert [one["unreachable"] for one in await world.all_items(f"{S}/scopes/sc/streams")] == [many]
    of_table = (await world.get(KV))["unreachable"]["segments"]
    assert [one["unreachable"] for one in await world.all_items(f"{S}/scopes/sc/tables")] == [of_table]
    assert (await world.get("/v1/health/details/segment-stores"))[f"container {silent}"] == says
    assert "closed" in (await world.get("/v1/health/details/txn-manager"))["a"]

    spare = Host("spare", 2)
    moved = ContainersAssigned(containers=dict.fromkeys(range(4), spare), hosts=(spare,), at=8_000)
    await world.system.append("cluster", moved)
    assert (await world.get(stream))["unreachable"]["gone"] == ["store:1"], "it is recovering on another one"
    await world.system.append("cluster", MemberLeft(instance="a", at=9_000))
    assert "unreachable" not in await world.get(stream), "no other member misses it"


def heartbeat(instance: str, at: int, **more: Any) -> MemoryMessage:
    beat = Heartbeat(service="txn-manager", instance=instance, endpoints={}, **more)
    return in_cluster_topic(encode_request(Request(id="i", at=0, by="x", command=beat)), at)


def in_cluster_topic(value: bytes, at: int) -> MemoryMessage:
    return MemoryMessage(REQUESTS_CLUSTER.name, 0, 0, "cluster", value, at)


async def test_members_and_their_last_signs_of_life(world: World) -> None:
    for instance in ("c", "b", "a"):
        joined = MemberJoined(service="txn-manager", instance=instance, endpoints={"rest": "h:1"}, at=3)
        await world.system.append("cluster", joined)
    nonsense = in_cluster_topic(b"nonsense", 9)
    world.last_heartbeats.observe([heartbeat("a", 7), nonsense, heartbeat("stranger", 8), heartbeat("a", 9)])
    plain = {"service": "txn-manager", "endpoints": {"rest": "h:1"}, "since": 3}
    expected = [{**plain, "instance": name} for name in ("a", "b", "c")]
    expected[0]["lastSeen"] = 9
    assert await world.all_items(f"{S}/members") == expected


async def test_signs_of_life_are_forgotten_in_time(world: World) -> None:
    hour = 3_600_000
    world.last_heartbeats.observe([heartbeat("old", 1), heartbeat("new", hour), heartbeat("new", 2 * hour + 1)])
    assert world.last_heartbeats.last("old") is None
    assert world.last_heartbeats.last("new") == 2 * hour + 1
