"""A lock in its holder's hands when answers are lost and waiting is cancelled: nothing is set back or left behind."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from support.wait import eventually_async
from unit.coordination.clocks import LEASE, QUICK, LoopClock

from sluice_coordination import (
    Functions,
    Leader,
    Leases,
    Lock,
    Node,
    Semaphore,
    Status,
    StoreUnavailableError,
    Task,
    TaskContext,
    Version,
    WindowSource,
    statuses,
)
from sluice_coordination.document import Body
from sluice_coordination.functions import Json
from sluice_coordination.memory import MemoryStore
from sluice_coordination.shielded import shielded
from sluice_coordination.sources import Window

PART = "t/part/w/000000000000"


class Faulty(MemoryStore):
    """`lost` answers to writes do not come, though those are done; writes to which `slow` says yes take a second.

    A deletion is a write of an empty body. `twice`: what is written is sent a second time, which is what is answered.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lost = 0
        self.twice = False
        self.slow: Callable[[str, Body], bool] = lambda _id, _body: False
        self.putting = asyncio.Event()

    async def put(self, id: str, body: Body, expected: Version | None) -> Version:
        async with self._pace(id, body):
            version = await super().put(id, body, expected)
        if self.twice:
            return await super().put(id, body, expected)
        if self.lost:
            self.lost -= 1
            raise StoreUnavailableError("the answer is lost")
        return version

    async def delete(self, id: str, expected: Version) -> None:
        async with self._pace(id, {}):
            await super().delete(id, expected)
        if self.lost:
            self.lost -= 1
            raise StoreUnavailableError("the answer is lost")

    @asynccontextmanager
    async def _pace(self, id: str, body: Body) -> AsyncIterator[None]:
        slow_s = 0.5 if self.slow(id, body) else 0.0
        if slow_s:
            self.putting.set()
        await asyncio.sleep(slow_s)
        yield
        await asyncio.sleep(slow_s)


async def body_of(store: MemoryStore, id: str) -> Body:
    found = await store.get(id)
    assert found is not None
    return found.body


async def test_a_lost_answer_sets_nothing_back() -> None:
    store = Faulty()
    held_lock = await Leases(store, LEASE, LoopClock()).take("lock", None)
    assert held_lock is not None
    await held_lock.update({"reached": 1})
    store.lost = 1
    with pytest.raises(StoreUnavailableError):
        await held_lock.update({"reached": 2})
    await held_lock.update({})
    assert (await body_of(store, "lock"))["reached"] == 2


async def test_a_report_stands_in_the_document_with_the_next_renewal_and_goes_with_the_lock() -> None:
    store, now_ms = Faulty(), 1_000
    async with Lock(Leases(store, QUICK.lease, owner="feeder-1"), "status/feeder-1").held() as held_lock:
        held_lock.report({"left": 7})

        async def reported() -> bool:
            return (await body_of(store, "status/feeder-1")).get("status") == {"left": 7}

        await eventually_async(reported, 20, "it is written with a renewal")
        found = await store.under("status/")
        assert statuses(found, now_ms) == {"status/feeder-1": Status("feeder-1", True, {"left": 7})}
        late_ms = found["status/feeder-1"].body["expire"]
        assert statuses(found, late_ms) == {"status/feeder-1": Status("feeder-1", False, {"left": 7})}
    assert await store.under("status/") == {}
    await store.put("status/other", {"no": "lock"}, None)
    assert statuses(await store.under("status/"), now_ms) == {}


async def test_a_semaphore_lets_in_as_many_as_it_has_permits() -> None:
    store, inside, most = MemoryStore(), 0, 0
    semaphores = [Semaphore(Leases(store, LEASE, LoopClock()), "imports", 2) for _ in range(2)]

    async def use(number: int) -> None:
        nonlocal inside, most
        async with semaphores[number % 2].held() as permit:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(1)
            permit.check()
            inside -= 1

    await asyncio.gather(*(use(number) for number in range(8)))
    assert most == 2 and await store.under("imports") == {}
    with pytest.raises(ValueError, match="no semaphore: 0 permits"):
        Semaphore(Leases(store, LEASE), "none", 0)


async def test_who_is_cancelled_while_it_takes_a_lock_gives_it_back() -> None:
    """Also when cancelled more than once: the others need not wait for a lease."""
    store = Faulty()
    store.slow = lambda _id, body: bool(body)

    async def duty(_held_lock: object) -> None:
        raise AssertionError("it was cancelled before")

    leader = asyncio.create_task(Leader(Leases(store, LEASE, LoopClock()), "leader").campaign(duty))
    await store.putting.wait()
    for _ in range(3):
        leader.cancel()
        await asyncio.sleep(0.1)
    await asyncio.wait((leader,))
    assert leader.cancelled() and await store.get("leader") is None


async def test_a_lock_is_given_back_however_often_its_holder_is_cancelled() -> None:
    store = Faulty()
    store.slow = lambda _id, body: not body
    inside = asyncio.Event()

    async def hold() -> None:
        async with Lock(Leases(store, LEASE, LoopClock()), "lock").held():
            inside.set()
            await asyncio.Event().wait()

    holder = asyncio.create_task(hold())
    await inside.wait()
    for _ in range(3):
        holder.cancel()
        await asyncio.sleep(0.1)
    await asyncio.wait((holder,))
    assert holder.cancelled() and await store.get("lock") is None


async def test_a_lock_that_was_released_leaves_nothing_behind_and_fences_rise() -> None:
    store, clock = MemoryStore(), LoopClock()
    leases = Leases(store, LEASE, clock)
    async with Lock(leases, "lock").held() as first:
        held = await store.get("lock")
    assert held is not None and await store.get("lock") is None
    await asyncio.sleep(1)
    assert leases.sightings.unchanged_s("lock") == 0
    leases.sightings.note("lock", held)
    assert not leases.sightings.is_free("lock", held), "its name is no longer known as this process's own"
    async with Lock(Leases(store, LEASE, clock), "lock").held() as second:
        assert second.fence > first.fence


async def test_who_waits_for_a_lock_that_its_own_process_releases_has_it_at_once() -> None:
    clock = LoopClock()
    lock = Lock(Leases(MemoryStore(), LEASE, clock), "lock")
    first = await lock.acquire()
    waiting = asyncio.create_task(lock.acquire())
    await asyncio.sleep(1)
    released = clock.now()
    await first.release()
    assert await waiting is not first and clock.now() == released


async def test_a_release_whose_answer_is_lost_was_done() -> None:
    store, clock = Faulty(), LoopClock()
    held = await Lock(Leases(store, LEASE, clock), "lock").try_acquire()
    assert held is not None
    store.lost, began = 1, clock.now()
    await held.release()
    assert await store.get("lock") is None and clock.now() - began < 2 * LEASE.retry_s


async def test_what_was_abandoned_is_ours_after_a_conflict() -> None:
    """The client has sent a write twice and met itself: the lock that it took that way need not run out first."""
    store, clock = Faulty(), LoopClock()
    lock, began = Lock(Leases(store, LEASE, clock), "lock"), clock.now()
    store.twice = True
    assert await lock.try_acquire() is None
    store.twice = False
    assert await lock.try_acquire() is not None and clock.now() == began


async def test_a_task_that_has_ended_when_its_node_stops_counts_as_done() -> None:
    store, functions = Faulty(), Functions()
    store.slow = lambda _id, body: body.get("state") == "done"

    @functions.register("f")
    async def f(context: TaskContext) -> int:
        return 5

    async with Node(store, "t", functions, settings=QUICK, clock=LoopClock()) as node:
        await node.submit("f", key="one")
        await store.putting.wait()
    body = await body_of(store, "t/task/one")
    assert body["state"] == "done" and body["outcome"]["result"] == 5


async def test_a_withdrawn_task_is_free_at_once_though_the_store_is_slower_than_a_look() -> None:
    store, functions, running = Faulty(), Functions(), asyncio.Event()
    store.slow = lambda which, body: which == PART and body.get("expire") == 0 and running.is_set()

    @functions.register("f")
    async def f(context: TaskContext) -> None:
        running.set()
        await asyncio.Event().wait()

    async def next_window(position: Json) -> Window | None:
        return Window(Task("f"), 1) if position is None else None

    source, clock = WindowSource("w", next_window), LoopClock()
    async with Node(store, "t", functions, settings=QUICK, sources=[source], clock=clock):
        await running.wait()
        found = await store.get("t/source/w")
        assert found is not None
        await store.put("t/source/w", {**found.body, "tasks": {}}, found.version)

        async def gone() -> bool:
            return await store.get(PART) is None

        withdrawn_at = clock.now()
        await eventually_async(gone, 60, "its document is gone")
        assert clock.now() - withdrawn_at < LEASE.lease_s / 2, "no one waits for its lock to run out"


async def test_a_task_that_failed_goes_on_where_it_noted_that_it_is() -> None:
    store, functions, done = Faulty(), Functions(), asyncio.Event()
    found: list[Json] = []

    @functions.register("f")
    async def f(context: TaskContext) -> None:
        found.append((await body_of(store, context.task)).get("reached"))
        if len(found) == 2:
            done.set()
            return
        await context.held_lock.update({"reached": 7})
        raise OSError("the first time it fails")

    async def next_window(position: Json) -> Window | None:
        return Window(Task("f"), 1) if position is None else None

    source = WindowSource("w", next_window)
    async with Node(store, "t", functions, settings=QUICK, sources=[source], clock=LoopClock()):
        await done.wait()
        body = await body_of(store, PART)
        assert "outcome" not in body and body["failures"] == 1
    assert found == [None, 7]


async def test_work_that_is_carried_through_ends_with_its_own_result_or_error() -> None:
    async def work(result: int) -> int:
        await asyncio.sleep(0)
        return 1 // result

    assert await shielded(lambda: work(1)) == 1
    with pytest.raises(ZeroDivisionError):
        await shielded(lambda: work(0))
