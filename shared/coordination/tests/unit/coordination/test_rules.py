"""The pure rules: leases, shares, sources; and what a document can and cannot make a node do."""

import asyncio
import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.wait import eventually_async

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
    TaskBoardFullError,
    TaskContext,
    TaskFailedError,
    TaskVanishedError,
    UnknownFunctionError,
    Version,
    Window,
    WindowSource,
)
from sluice_coordination.functions import Json
from sluice_coordination.leading import restart_pause_s
from sluice_coordination.lease import Sightings
from sluice_coordination.memory import MemoryStore
from sluice_coordination.shares import shares
from sluice_coordination.task import entry_of, new_body

LEASE = LeaseSettings(lease_s=10, margin_s=2)
QUICK = NodeSettings(workers=2, look_s=0.2, keep_done_s=5, lease=LEASE)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at, self.wall = 100.0, 0

    def now(self) -> float:
        return self.at

    def wall_ms(self) -> int:
        return self.wall

    def loop_time(self, at: float) -> float:
        return at


_VERSIONS = st.one_of(
    st.builds(Version, st.integers(0, 2**19 - 1), st.integers(0, 2**44 - 1)),
    st.builds(Version, st.integers(0, 3), st.integers(0, 12)),
)


@given(_VERSIONS, _VERSIONS)
def test_fences_are_in_one_order_as_versions_as_numbers_and_as_texts(one: Version, other: Version) -> None:
    assert (one < other) == (int(one) < int(other)) == (str(one) < str(other))
    assert int(str(one)) == int(one) < 2**63


class LoopClock(Clock):
    """The event loop's clock."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()


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


# --- what documents can do


def test_functions_are_known_by_name_once() -> None:
    functions = Functions()
    functions.register("f")(asyncio.sleep)
    with pytest.raises(ValueError, match="'f'"):
        functions.register("f")(asyncio.sleep)
    with pytest.raises(UnknownFunctionError):
        functions.find("os.system")


def encoded(value: object) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "task",
    [
        "not base64!",
        encoded([1]),
        encoded({"function": 5}),
        encoded({"function": "f", "arguments": [1]}),
        base64.b64encode(b"\x80\x04\x8c\x05posix\x94.").decode(),
    ],
)
def test_what_is_no_task_is_refused(task: str) -> None:
    with pytest.raises(ValueError, match="not a task"):
        entry_of("a", Document({**new_body(Task("f")), "task": task}, Version(0, 1)))


async def test_a_node_leaves_alone_what_it_has_not_registered_and_what_is_no_task() -> None:
    store, called = MemoryStore(), asyncio.Event()
    functions = Functions()

    @functions.register("f")
    async def f(context: TaskContext) -> None:
        called.set()

    await store.put("t/task/0", new_body(Task("os.system", {"command": "true"})), None)
    await store.put("t/task/1", {**new_body(Task("f")), "task": "?"}, None)
    await store.put("t/task/2", new_body(Task("f")), None)
    before = [await store.get(f"t/task/{number}") for number in (0, 1)]
    async with Node(store, "t", functions, settings=QUICK, clock=LoopClock()):
        await called.wait()
        await asyncio.sleep(10 * QUICK.look_s)
    assert [await store.get(f"t/task/{number}") for number in (0, 1)] == before


async def test_a_node_that_leaves_hands_its_tasks_over_at_once() -> None:
    store, clock = MemoryStore(), LoopClock()
    running: list[str] = []
    runs = {"a": asyncio.Event(), "b": asyncio.Event()}

    def functions(name: str) -> Functions:
        own = Functions()

        @own.register("f")
        async def f(context: TaskContext) -> None:
            running.append(name)
            runs[name].set()
            await asyncio.Event().wait()

        return own

    async with Node(store, "t", functions("a"), settings=QUICK, clock=clock) as first:
        await first.submit("f")
        await runs["a"].wait()
    left_at = clock.now()
    async with Node(store, "t", functions("b"), settings=QUICK, clock=clock):
        await runs["b"].wait()
    assert running == ["a", "b"] and clock.now() - left_at < 5 * QUICK.look_s


async def test_a_cancelled_task_stops_and_has_failed() -> None:
    stopped, started = asyncio.Event(), asyncio.Event()
    functions = Functions()

    @functions.register("f")
    async def f(context: TaskContext) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with Node(MemoryStore(), "t", functions, settings=QUICK, clock=LoopClock()) as node:
        future = await node.submit("f")
        await started.wait()
        assert not future.done() and await future.cancel()
        await stopped.wait()
        assert future.failed() and not await future.cancel()


async def test_a_full_board_takes_no_more() -> None:
    settings = NodeSettings(workers=0, look_s=0.2, keep_done_s=5, max_tasks=3, lease=LEASE)
    async with Node(MemoryStore(), "t", Functions(), settings=settings, clock=LoopClock()) as node:
        for _ in range(3):
            await node.submit("f")
        with pytest.raises(TaskBoardFullError, match="3"):
            await node.submit("f")


async def test_all_who_submit_under_one_key_learn_its_end() -> None:
    store, clock, functions, go = MemoryStore(), LoopClock(), Functions(), asyncio.Event()

    @functions.register("f")
    async def f(context: TaskContext) -> int:
        await go.wait()
        return 5

    async with (
        Node(store, "t", functions, settings=QUICK, clock=clock) as one,
        Node(store, "t", functions, settings=QUICK, clock=clock) as two,
    ):
        futures = [await node.submit("f", key="k") for node in (one, one, two)]
        go.set()
        assert await asyncio.gather(*futures) == [5, 5, 5]
    late = await one.submit("f")
    with pytest.raises(TaskVanishedError, match="the node has ended"):
        await late


@pytest.mark.parametrize(("size", "error"), [(400_000, "ValueError"), (0, "CancelledError")])
async def test_a_task_that_ends_oddly_has_failed_and_is_not_begun_again(size: int, error: str) -> None:
    """With a result for which its document has no room, or by a cancellation that nobody asked for."""
    functions, runs = Functions(), 0

    @functions.register("f")
    async def f(context: TaskContext, text: str) -> str:
        nonlocal runs
        runs += 1
        if not size:
            raise asyncio.CancelledError
        return "y" * size

    async with Node(MemoryStore(), "t", functions, settings=QUICK, clock=LoopClock()) as node:
        with pytest.raises(TaskFailedError, match=error):
            await (await node.submit("f", {"text": "x" * 600_000}))
    assert runs == 1


async def test_a_single_task_with_other_arguments_begins_when_the_one_before_has_stopped() -> None:
    one, same, other = (SingleSource("s", Task("f", {"url": url})) for url in ("a", "a", "b"))
    state = await one.plan(SourceState(), Situation((), 0, frozenset()))
    board = frozenset(state.tasks)
    assert await same.plan(state, Situation((), 0, board)) == state
    former = SourceState(tasks={"main": one.task})
    assert await one.plan(former, Situation((), 0, frozenset({"main"}))) == former, "under whatever key it is there"
    withdrawn = await other.plan(state, Situation((), 0, board))
    assert withdrawn == SourceState() == await other.plan(withdrawn, Situation((), 0, board))
    assert await other.plan(withdrawn, Situation((), 0, frozenset())) == SourceState(tasks={other.key: other.task})


async def test_a_key_is_free_when_its_done_task_has_stood_for_keep_done_s() -> None:
    """Until then the end that is there counts for all who submit."""
    functions, runs = Functions(), 0

    @functions.register("f")
    async def f(context: TaskContext) -> int:
        nonlocal runs
        runs += 1
        return runs

    async with Node(MemoryStore(), "t", functions, settings=QUICK, clock=LoopClock()) as node:
        assert await (await node.submit("f", key="k")) == 1
        await asyncio.sleep(QUICK.keep_done_s / 2)
        late = await node.submit("f", key="k")
        assert late.done() and await late == 1
        await asyncio.sleep(QUICK.keep_done_s)
        assert await (await node.submit("f", key="k")) == 2


async def test_each_task_of_a_key_stands_for_keep_done_s_though_its_key_was_used_before() -> None:
    """Also if a look shows the next one done where the look before it showed the former one done."""
    store, clock, functions, runs = MemoryStore(), LoopClock(), Functions(), 0

    @functions.register("f")
    async def f(context: TaskContext) -> int:
        nonlocal runs
        runs += 1
        return runs

    async with Node(store, "t", functions, settings=QUICK, clock=clock) as node:
        assert await (await node.submit("f", key="k")) == 1
        await asyncio.sleep(QUICK.keep_done_s / 2)
        former = await store.get("t/task/k")
        assert former is not None
        # Its submitter's hands are free to take it away, as the leader's are.
        later = {**former.body, "creation_id": "later", "outcome": {"result": 2}}
        await store.put("t/task/k", later, former.version)
        await asyncio.sleep(QUICK.keep_done_s * 0.75)
        assert await store.get("t/task/k") is not None, "the later one has its own time"
        await asyncio.sleep(QUICK.keep_done_s)
        assert await store.get("t/task/k") is None


async def test_who_looks_seldom_learns_the_end_of_a_task_that_others_have_submitted_too() -> None:
    store, clock, functions = MemoryStore(), LoopClock(), Functions()
    seldom = NodeSettings(workers=0, leads=False, look_s=2, keep_done_s=8, lease=LEASE)

    @functions.register("f")
    async def f(context: TaskContext) -> int:
        return 5

    async with (
        Node(store, "t", functions, settings=seldom, clock=clock) as slow,
        Node(store, "t", functions, settings=QUICK, clock=clock) as quick,
    ):
        futures = [await node.submit("f", key="k") for node in (slow, quick)]
        assert await asyncio.gather(*futures) == [5, 5]


async def test_a_future_has_nothing_to_do_with_a_later_task_of_its_key() -> None:
    store, clock, functions, go = MemoryStore(), LoopClock(), Functions(), asyncio.Event()
    seldom = NodeSettings(workers=0, leads=False, look_s=60, keep_done_s=240, lease=LEASE)

    @functions.register("f")
    async def f(context: TaskContext, waits: bool) -> str:
        if waits:
            await go.wait()
        return context.task

    async with (
        Node(store, "t", functions, settings=seldom, clock=clock) as slow,
        Node(store, "t", functions, settings=QUICK, clock=clock) as quick,
    ):
        former = await slow.submit("f", {"waits": False}, key="k")
        await (await quick.submit("f", {"waits": False}, key="k"))
        await asyncio.sleep(2 * QUICK.keep_done_s)
        later = await quick.submit("f", {"waits": True}, key="k")
        assert not await former.cancel()
        with pytest.raises(TaskVanishedError):
            await former
        go.set()
        assert await later == "t/task/k"
