"""The pure rules: leases, shares, sources."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.wait import eventually_async
from unit.coordination.clocks import LEASE, QUICK, Clock, LoopClock

from sluice_coordination import (
    Document,
    Functions,
    HeldLock,
    Leader,
    Leases,
    LeaseSettings,
    Lock,
    LockLostError,
    Node,
    NodeEntry,
    NodeSettings,
    PartitionedSource,
    SingleSource,
    Situation,
    SourceState,
    Task,
    TaskContext,
    Version,
    Window,
    WindowSource,
)
from sluice_coordination.functions import Json
from sluice_coordination.lease import Sightings
from sluice_coordination.memory import MemoryStore
from sluice_coordination.shares import shares
from sluice_coordination.task import restart_pause_s

_VERSIONS = st.one_of(
    st.builds(Version, st.integers(0, 2**19 - 1), st.integers(0, 2**44 - 1)),
    st.builds(Version, st.integers(0, 3), st.integers(0, 12)),
)


@given(_VERSIONS, _VERSIONS)
def test_fences_are_in_one_order_as_versions_as_numbers_and_as_texts(one: Version, other: Version) -> None:
    assert (one < other) == (int(one) < int(other)) == (str(one) < str(other))
    assert int(str(one)) == int(one) < 2**63


def held(number: int, expire: int = 1, lease_ms: int = 10_000) -> Document:
    return Document({"holder": "x", "expire": expire, "lease_ms": lease_ms}, Version(0, number))


# --- leases


def test_a_lock_runs_out_a_lease_after_it_was_first_seen_whatever_it_says() -> None:
    clock = Clock()
    sightings = Sightings(LEASE, clock)
    assert not sightings.is_free("a", held(1)), "it was not seen yet"
    sightings.note("a", held(1, expire=1))
    assert not sightings.is_free("a", held(1))
    clock.at += 10.05
    sightings.note("a", held(1))
    assert not sightings.is_free("a", held(1))
    clock.at += 0.06
    assert sightings.is_free("a", held(1)) and not sightings.is_free("a", held(2))
    sightings.note("a", held(2))
    assert not sightings.is_free("a", held(2))


def test_the_lease_in_the_document_counts_and_without_one_the_own() -> None:
    clock = Clock()
    sightings = Sightings(LEASE, clock)
    sightings.note("a", held(1, lease_ms=60_000))
    sightings.note("b", Document({"holder": "x", "expire": 1}, Version(0, 1)))
    clock.at += 11
    assert not sightings.is_free("a", held(1)) and sightings.is_free("b", held(1))


@pytest.mark.parametrize("wrong", [{"margin_s": 0}, {"drift": 0.5}, {"margin_s": 6}, {"retry_s": 0}])
def test_settings_that_cannot_be_safe_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="lease"):
        LeaseSettings(**{"lease_s": 10, "margin_s": 2, **wrong})


def test_a_margin_shorter_than_the_stores_time_out_is_refused() -> None:
    with pytest.raises(ValueError, match="margin"):
        Leases(MemoryStore(timeout_s=3), LEASE)


async def test_the_block_under_a_lock_is_cancelled_when_the_lock_is_taken_away() -> None:
    store, clock = MemoryStore(), LoopClock()
    lock = Lock(Leases(store, LEASE, clock), "lock")

    async def hold() -> None:
        async with lock.held():
            found = await store.get("lock")
            assert found is not None
            await store.put("lock", {**found.body, "holder": "thief"}, found.version)
            await asyncio.Event().wait()

    with pytest.raises(LockLostError):
        await hold()
    assert clock.now() <= LEASE.renew_s + 0.1


async def test_a_time_out_of_the_block_itself_stays_one() -> None:
    lock = Lock(Leases(MemoryStore(), LEASE, LoopClock()), "lock")
    with pytest.raises(TimeoutError):
        async with lock.held():
            raise TimeoutError
    async with asyncio.timeout(0.1), lock.held() as held_lock:
        assert held_lock.left_s > 0


async def test_who_campaigns_goes_on_when_something_cancels_the_duty_from_inside() -> None:
    terms = 0

    async def duty(_held_lock: HeldLock) -> None:
        nonlocal terms
        terms += 1
        if terms == 1:
            raise asyncio.CancelledError

    await Leader(Leases(MemoryStore(), LEASE, LoopClock()), "leader").campaign(duty)
    assert terms == 2


# --- shares

node_lists = st.lists(st.integers(0, 5), min_size=1, max_size=6).map(
    lambda workers: [NodeEntry(f"n{number}", count) for number, count in enumerate(workers)]
)


@given(node_lists, st.integers(0, 60), st.integers(0, 2**32))
def test_every_task_is_in_the_share_of_one_node(nodes: list[NodeEntry], tasks: int, seed: int) -> None:
    dealt = [shares(nodes, node, tasks, seed) for node in nodes]
    assert all(sorted(own + others) == list(range(tasks)) for own, others in dealt)
    total = sum(node.workers for node in nodes)
    assert sorted(number for own, _ in dealt for number in own) == (list(range(tasks)) if total else [])
    for node, (own, _) in zip(nodes, dealt, strict=True):
        assert not total or abs(len(own) - tasks * node.workers / total) < 1


def test_single_tasks_fall_to_all_nodes_in_turn() -> None:
    nodes = [NodeEntry("a", 1), NodeEntry("b", 3)]
    to_a = sum(len(shares(nodes, nodes[0], 1, seed)[0]) for seed in range(400))
    assert to_a == 100


def test_a_node_that_is_not_listed_counts_as_the_last() -> None:
    assert shares([NodeEntry("a", 1)], NodeEntry("b", 1), 4, 0) == ([2, 3], [0, 1])


# --- sources


async def test_partitions_are_cut_anew_only_when_all_old_ones_are_gone() -> None:
    source = PartitionedSource("p", lambda nodes: [Task("f", {"n": node.token}) for node in nodes], settle_s=2)
    one, two = (NodeEntry("a", 1),), (NodeEntry("a", 1), NodeEntry("b", 1))
    none: frozenset[str] = frozenset()
    first = await source.plan(SourceState(), Situation(one, 9, none))
    assert list(first.tasks) == ["1-0"]
    assert await source.plan(first, Situation(one, 9, frozenset(first.tasks))) == first
    assert await source.plan(first, Situation(two, 1, frozenset(first.tasks))) == first
    stopping = await source.plan(first, Situation(two, 9, frozenset(first.tasks)))
    assert stopping.tasks == {}
    assert await source.plan(stopping, Situation(two, 9, frozenset(first.tasks))) == stopping
    second = await source.plan(stopping, Situation(two, 9, none))
    assert list(second.tasks) == ["2-0", "2-1"]
    ended = source.ended(source.ended(second, "2-0"), "2-1")
    assert ended.complete and await source.plan(ended, Situation(one, 9, none)) == ended


async def test_nodes_without_workers_come_and_go_and_nothing_is_cut_anew() -> None:
    store, clock, functions, begun = MemoryStore(), LoopClock(), Functions(), list[str]()

    @functions.register("f")
    async def f(context: TaskContext) -> None:
        begun.append(context.task)
        await asyncio.Event().wait()

    source = PartitionedSource("p", lambda nodes: [Task("f")] * len(nodes), settle_s=1)
    idle = NodeSettings(workers=0, look_s=0.2, keep_done_s=5, lease=LEASE)
    async with Node(store, "t", functions, settings=QUICK, sources=[source], clock=clock):
        for _ in range(10):
            async with Node(store, "t", functions, settings=idle, sources=[source], clock=clock):
                await asyncio.sleep(0.5)
            await asyncio.sleep(0.3)
        assert begun == ["t/part/p/1-0"]
        async with Node(store, "t", functions, settings=idle, sources=[source], clock=clock):
            await asyncio.sleep(10 * source.settle_s)
        assert begun == ["t/part/p/1-0"]


async def test_windows_follow_each_other_and_wait_for_room() -> None:
    async def next_window(position: Json) -> Window | None:
        number = position or 0
        return Window(Task("f", {"n": number}), number + 1) if number < 4 else None

    source, nowhere = WindowSource("w", next_window, ahead=3), Situation((), 0, frozenset())
    state = await source.plan(SourceState(), nowhere)
    assert [task.arguments["n"] for task in state.tasks.values()] == [0, 1, 2]
    assert await source.plan(state, nowhere) == state
    state = await source.plan(source.ended(state, "000000000001"), nowhere)
    assert sorted(state.tasks) == ["000000000000", "000000000002", "000000000003"]
    state = await source.plan(source.ended(state, "000000000000"), nowhere)
    assert sorted(state.tasks) == ["000000000002", "000000000003"]


async def test_a_single_task_is_over_when_it_has_returned() -> None:
    source, nowhere = SingleSource("s", Task("f")), Situation((), 0, frozenset())
    state = await source.plan(SourceState(), nowhere)
    (key,) = state.tasks
    assert state.tasks == {key: Task("f")}
    ended = source.ended(state, key)
    assert ended.tasks == {} and await source.plan(ended, nowhere) == ended


async def test_a_single_task_with_other_arguments_begins_after_one_that_has_returned() -> None:
    one, other, nowhere = SingleSource("s", Task("f")), SingleSource("s", Task("g")), Situation((), 0, frozenset())
    ended = one.ended(await one.plan(SourceState(), nowhere), one.key)
    assert (await other.plan(ended, nowhere)).tasks == {other.key: other.task}


async def test_windows_go_on_though_the_next_one_cannot_be_cut() -> None:
    """Those before it are run, and what has failed of them is begun anew."""
    store, functions, runs = MemoryStore(), Functions(), list[int]()

    @functions.register("f")
    async def f(context: TaskContext, n: int) -> None:
        runs.append(n)
        if runs.count(n) == 1:
            raise OSError("the first time it fails")

    async def next_window(position: Json) -> Window | None:
        number = position or 0
        if number == 2:
            raise OSError("the file is damaged")
        return Window(Task("f", {"n": number}), number + 1)

    async def all_are_through() -> bool:
        return sorted(runs) == [0, 0, 1, 1] and not await store.under("t/part/")

    async with Node(store, "t", functions, settings=QUICK, sources=[WindowSource("w", next_window)], clock=LoopClock()):
        await eventually_async(all_are_through, 60, "both windows have been run, and are off the board")


def test_a_task_that_fails_rests_longer_each_time() -> None:
    assert [restart_pause_s(failures) for failures in (0, 1, 3, 100)] == [1, 2, 8, 60]
