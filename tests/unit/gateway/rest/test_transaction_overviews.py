"""Overviews of transactions: outcomes over time, streams whose commits wait, the queue of one stream."""

from unit.gateway.rest.test_sluice_segments import begin
from unit.gateway.rest.test_sluice_streams import ST, S, problem
from unit.gateway.rest.world import World

from api_gateway.console.transaction_overviews import AT_A_TIME, Outcomes, outcomes
from sluice.domain.ids import StreamId
from sluice.domain.model import DomainModel
from sluice.domain.stream.events import WorkflowQueued
from sluice.domain.transaction import events as ev
from sluice.domain.transaction.commands import AbortReason
from sluice.engine.fold import PartitionView
from sluice.engine.record import Entry, Record

MINUTE = 60_000
ORDERS = StreamId("demo", "orders")


def view_of(*events: ev.TransactionEvent) -> PartitionView:
    view = PartitionView(DomainModel())
    view.fold(Record(id="r", at=0, by="test", entries=(Entry(events=events),)), 0, 0)
    return view


def ended(number: int, at: int, reason: AbortReason | None) -> list[ev.TransactionEvent]:
    id = ORDERS.transaction(f"00000000-0000-0000-0000-{number:012x}")
    opened = ev.TransactionOpened(*id, lease_ms=1000, at=1, dies_at=10**15)
    if reason is None:
        return [opened, ev.TransactionCommitting(*id, at=at), ev.TransactionCommitted(*id, at=at)]
    return [opened, ev.TransactionAborting(*id, reason=reason, at=at), ev.TransactionAborted(*id, at=at)]


async def test_outcomes_are_counted_by_bucket_and_those_outside_are_left_out() -> None:
    reasons = [AbortReason.LEASE, AbortReason.USER, AbortReason.SEAL, AbortReason.RESTORE]
    events = [e for number, reason in enumerate(reasons) for e in ended(number, 5 * MINUTE + number, reason)]
    # More than are looked at before other tasks run.
    for number in range(AT_A_TIME):
        events += ended(100 + number, 7 * MINUTE, None)
    events += ended(50, 9 * MINUTE, None) + ended(51, MINUTE, AbortReason.LEASE)
    found = await outcomes(view_of(*events), ORDERS, 5 * MINUTE, 9 * MINUTE, 2 * MINUTE)
    first, second = found.buckets
    assert first == Outcomes(5 * MINUTE, aborted_by_user=1, aborted_by_lease=1, aborted_by_seal=1, aborted_by_restore=1)
    assert (second.at, second.committed) == (7 * MINUTE, AT_A_TIME)
    assert found.first_at == MINUTE


async def test_a_stream_of_which_some_ended_within_a_day_is_listed(world: World, stream: str) -> None:
    now, day = world.runtime.clock.now_ms(), 24 * 60 * MINUTE

    async def listed(*ends: int) -> list[tuple[int, int]]:
        for at in ends:
            id = await begin(world)
            await world.call("POST", f"{ST}/transactions/{id}/abort")
            await world.system.append("sc/st", ev.TransactionAborted("sc", "st", id, at=at))
        return [(one["ended"], one["endedAt"]) for one in (await world.get(f"{S}/transactions"))["items"]]

    assert await listed(now - 2 * day, now - day - MINUTE) == []
    assert await listed(now - day + MINUTE, now) == [(2, now)]


async def test_the_summary_of_a_day_has_what_just_ended(world: World, stream: str) -> None:
    now = world.runtime.clock.now_ms()
    for id in [await begin(world) for _ in range(2)]:
        await world.call("POST", f"{ST}/transactions/{id}/abort")
        await world.system.append("sc/st", ev.TransactionAborted("sc", "st", id, at=now))
    found = await world.get(f"{ST}/transactions/summary")
    assert found["bucketMs"] == 5 * MINUTE and found["from"] % (5 * MINUTE) == 0 and found["firstAt"] == now
    (bucket,) = found["items"]
    assert (bucket["abortedByUser"], bucket["committed"]) == (2, 0) and bucket["at"] <= now < bucket["at"] + 5 * MINUTE
    assert problem(await world.call("GET", f"{ST}/transactions/summary", to=MINUTE, **{"from": 9 * MINUTE})) == (
        400,
        None,
    )
    assert problem(await world.call("GET", f"{S}/scopes/sc/streams/no/commits")) == (404, "STREAM_NOT_FOUND")


async def test_commits_that_wait_show_their_batch_their_order_and_since_when(world: World, stream: str) -> None:
    before = world.runtime.clock.now_ms()
    ids = [await begin(world) for _ in range(4)]
    for id in ids[:3]:
        await world.call("POST", f"{ST}/transactions/{id}/commit")
    found = await world.get(f"{ST}/commits", limit=1)
    assert found["batch"]["ids"] == [ids[0]] and found["batch"]["workflow"]["kind"] == "commit-transactions"
    (first,) = found["queue"]
    assert (first["id"], first["position"], found["waiting"]) == (ids[1], 1, 2)
    assert before <= first["waitsSince"] <= world.runtime.clock.now_ms()
    (listed,) = (await world.get(f"{S}/transactions", sort="waiting"))["items"]
    assert (listed["stream"], listed["open"], listed["waiting"], listed["aborting"]) == ("sc/st", 1, 3, 0)
    assert before <= listed["oldestWaitingAt"] <= first["waitsSince"]


async def test_commits_that_a_workflow_holds_up_say_which(world: World, stream: str) -> None:
    now = world.runtime.clock.now_ms()
    await world.system.append("sc/st", WorkflowQueued("sc", "st", kind="scale-stream", at=now))
    await world.call("POST", f"{ST}/transactions/{await begin(world)}/commit")
    found = await world.get(f"{ST}/commits")
    assert "batch" not in found and found["waiting"] == 1
    assert found["waitsFor"] == "scale-stream is queued"
