"""Tasks: what a document can and cannot make a node do, and what becomes of one and of its key."""

import asyncio
import base64
import json

import pytest
from unit.coordination.clocks import LEASE, QUICK, LoopClock

from sluice_coordination import (
    Document,
    Functions,
    Node,
    NodeSettings,
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
)
from sluice_coordination.memory import MemoryStore
from sluice_coordination.task import entry_of, new_body


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


async def test_a_task_that_ran_for_long_is_begun_anew_soon_however_often_it_failed() -> None:
    clock, functions, enough = LoopClock(), Functions(), asyncio.Event()
    begun_at: list[float] = []
    failed_at: list[float] = []

    @functions.register("f")
    async def f(context: TaskContext) -> None:
        begun_at.append(clock.now())
        if len(begun_at) == 10:
            enough.set()
        await asyncio.sleep(300.0 if len(begun_at) == 8 else 0.0)
        failed_at.append(clock.now())
        raise ConnectionError("away")

    source = SingleSource("s", Task("f"))
    async with Node(MemoryStore(), "t", functions, settings=QUICK, sources=[source], clock=clock):
        await enough.wait()
    pauses_s = [begun - failed for failed, begun in zip(failed_at, begun_at[1:], strict=False)]
    assert pauses_s[6] >= 60 and pauses_s[7] < 5 and pauses_s[8] < 5


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
