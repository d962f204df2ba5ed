"""What is under way: how it gets on, what keeps it, and many retried at once."""

from typing import Any

from unit.gateway.rest.test_sluice_others import under_way
from unit.gateway.rest.test_sluice_streams import ST, S, problem
from unit.gateway.rest.world import World
from unit.gateway.support import creation_started

from sluice.domain.cluster.events import ContainersAssigned
from sluice.domain.decision import Reply
from sluice.domain.host import Host
from sluice.domain.ids import StreamId
from sluice.domain.names import mark_stream
from sluice.domain.scope.events import ScopeDeletionStarted
from sluice.domain.segment import Segment, segment_id
from sluice.domain.status import Status
from sluice.domain.stream.events import (
    Replacement,
    StreamEpochAdded,
    StreamScaleStarted,
    StreamSealStarted,
    WorkflowQueued,
)
from sluice.domain.transaction.events import CommitBatchStarted, TransactionCommitting, TransactionOpened
from sluice.domain.workflow import RetryWorkflow, WorkflowStepFailed

ID = StreamId("sc", "st")
TXN = "00000000-0000-0000-0000-000000000001"


async def board(world: World, **query: Any) -> dict[str, Any]:
    return {item["aggregate"]: item for item in (await world.get(f"{S}/workflows", **query))["items"]}


async def assign(world: World) -> None:
    """All containers have a segment store."""
    host = Host("store", 12345)
    await world.system.append("cluster", ContainersAssigned(dict.fromkeys(range(4), host), (host,), at=1))


async def begin_batch(world: World) -> None:
    """A batch of commits that no service carries out."""
    await world.system.append(
        "sc/st",
        TransactionOpened(*ID, TXN, lease_ms=10_000, at=1, dies_at=10**15),
        TransactionCommitting(*ID, TXN, at=2),
        CommitBatchStarted(*ID, transactions=(TXN,), at=3),
    )


async def test_what_waits_names_what_it_waits_for_link_by_link(world: World, stream: str) -> None:
    await world.system.stop_deciding()
    await begin_batch(world)
    failed = WorkflowStepFailed(aggregate=ID.commits, step="merge", attempts=2, error="ContainerNotFound")
    waits = WorkflowStepFailed(aggregate=ID.aggregate, step="end-transactions", attempts=0, error="waits: of it")
    await world.system.append("sc/st", failed, StreamSealStarted(*ID, request=None, at=4), waits)
    deletion = ScopeDeletionStarted(scope="sc", recursive=True, at=5)
    waits = WorkflowStepFailed(aggregate="scope:sc", step="delete-resources", attempts=0, error="waits: of that")
    await world.system.append("sc", deletion, waits)
    found = await board(world)
    assert {name: item["state"] for name, item in found.items()} == {
        "commits:sc/st": "failing",
        "stream:sc/st": "waiting",
        "scope:sc": "waiting",
    }
    chain, link = [], found["scope:sc"]["waitsFor"]
    while link is not None:
        chain.append((link.get("aggregate"), link.get("container") is not None))
        link = link.get("then")
    # Of what is under way in the scope, the stream or its batch comes first.
    assert chain[-2:] == [("commits:sc/st", False), (None, True)]
    assert found["stream:sc/st"]["waitsFor"]["kind"] == "commit-transactions"
    await assign(world)
    assert "waitsFor" not in (await board(world))["commits:sc/st"]


async def test_what_is_queued_waits_for_the_batch_of_its_stream(world: World, stream: str) -> None:
    await world.system.stop_deciding()
    await begin_batch(world)
    await world.system.append("sc/st", WorkflowQueued(*ID, kind="ScaleStream", at=9))
    found = (await board(world, state="queued"))["stream:sc/st"]
    assert (found["id"], found["kind"], found["since"]) == ("", "scale-stream", 9)
    assert found["waitsFor"]["aggregate"] == "commits:sc/st"
    assert [action["allowed"] for action in found["allowed"]] == [False, False]


async def test_a_scale_says_why_it_cannot_be_cancelled(world: World, stream: str) -> None:
    await world.system.stop_deciding()
    replacement = Replacement((0,), (Segment(segment_id(1, 2), 0.0, 0.5),), 5)
    await world.system.append("sc/st", StreamScaleStarted(*ID, replacement=replacement, at=5))
    found = (await board(world))["stream:sc/st"]
    assert (found["state"], found["canCancel"], "cancelWhyNot" in found) == ("running", True, False)
    await world.system.append("sc/st", StreamEpochAdded(*ID, created_at=2**41))
    found = (await board(world))["stream:sc/st"]
    assert (found["canCancel"], found["cancelWhyNot"].partition(":")[0]) == (False, "its epoch is named")
    assert found["allowed"][1] == {"action": "cancel", "allowed": False, "why": found["cancelWhyNot"]}
    assert (await world.get(f"{ST}/topology"))["segments"]["id"] == [0, 1, segment_id(1, 2)]


async def test_a_mark_stream_that_is_being_created_offers_neither_retry_nor_cancel(world: World, scope: str) -> None:
    await world.system.stop_deciding()
    await world.system.append("sc/a", creation_started("a"), creation_started(mark_stream("a"), request=None))
    found, mark = await board(world), f"stream:sc/{mark_stream('a')}"
    offered = {name: [action["allowed"] for action in item["allowed"]] for name, item in found.items()}
    assert offered == {"stream:sc/a": [True, True], mark: [False, False]}
    assert found[mark]["cancelWhyNot"] == "it is created along with another resource"


async def test_workflows_are_filtered_and_sorted(world: World, scope: str) -> None:
    await under_way(world, "b", "c")
    await world.system.append("sc/a", creation_started("a"))
    assert list(await board(world, state="running")) == ["stream:sc/a"]
    assert list(await board(world, q="AWAY", state="failing")) == ["stream:sc/b", "stream:sc/c"]
    assert list(await board(world, q="no such text")) == []
    by_age = await world.all_items(f"{S}/workflows", sort="since")
    assert [w["since"] for w in by_age] == sorted(w["since"] for w in by_age) and len(by_age) == 3
    assert problem(await world.call("GET", f"{S}/workflows", state="moon")) == (400, None)


async def test_many_are_retried_each_with_its_own_answer(world: World, stream: str) -> None:
    names = ["stream:sc/st", "stream:sc/none", "stream:sc/st"]
    found = (await world.call("POST", f"{S}/workflows/retry-each", {"aggregates": names})).json()["items"]
    assert [(item["aggregate"], item["status"]) for item in found] == [(n, "NOT_RUNNING") for n in names[:2]]
    await world.system.answer_all(Reply(Status.SUCCESS))
    (found,) = (await world.call("POST", f"{S}/workflows/retry-each", {"aggregates": names[:1]})).json()["items"]
    assert world.sent[-1][1].command == RetryWorkflow("stream:sc/st")
    assert found == {"aggregate": "stream:sc/st", "status": "SUCCESS", "request": world.sent[-1][1].id}
    for wrong in ([], ["moon:x"], [f"stream:sc/{n}" for n in range(201)]):
        assert problem(await world.call("POST", f"{S}/workflows/retry-each", {"aggregates": wrong})) == (400, None)


async def test_one_that_cannot_be_requested_fails_alone(world: World, stream: str) -> None:
    await world.system.stop_partition_of("sc/st")
    other = next(n for n in "abcdefgh" if world.system.journal.partition_of(f"sc/{n}") != _partition(world))
    names = ["stream:sc/st", f"stream:sc/{other}"]
    found = (await world.call("POST", f"{S}/workflows/retry-each", {"aggregates": names})).json()["items"]
    assert [item["status"] for item in found] == ["FAILURE", "NOT_RUNNING"]
    assert "journal partition" in found[0]["detail"]


def _partition(world: World) -> int:
    return world.system.journal.partition_of("sc/st")
