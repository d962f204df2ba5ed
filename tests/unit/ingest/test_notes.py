"""What is kept in the store: positions that never go back, sums over nodes, what a job is; and effects that end."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.wait import SOON_S

from distributed_ingest.job import Definition, Job, checked_name, register
from distributed_ingest.ledger import Ledger, positions
from distributed_ingest.run import Timing
from distributed_ingest.settle import settled, together
from distributed_ingest.stores import is_new_file, opened
from distributed_ingest.tally import AGAIN_S, MAX_ORIGINS, OTHERS, Counts, Tally, Totals
from sluice_cli.errors import RefusedError, UsageError
from sluice_coordination import (
    Document,
    Leases,
    LeaseSettings,
    LockLostError,
    StoreUnavailableError,
    TaskContext,
    Version,
)
from sluice_coordination.document import Body
from sluice_coordination.memory import MemoryStore

ID = "ingest/job/progress/part"


class Shaky(MemoryStore):
    """Says of the next writes that it does not know whether they were done; `done` says whether they were."""

    def __init__(self) -> None:
        super().__init__(0.4)
        self.silent = 0
        self.done = True

    async def put(self, id: str, body: Body, expected: Version | None) -> Version:
        if self.silent and id == ID:
            self.silent -= 1
            if self.done:
                await super().put(id, body, expected)
            raise StoreUnavailableError("no answer")
        return await super().put(id, body, expected)


@pytest.fixture
def store() -> Shaky:
    return Shaky()


async def context_of(store: MemoryStore, lock: str) -> TaskContext:
    leases = Leases(store, LeaseSettings(lease_s=5, margin_s=1))
    found = await store.get(lock)
    held_lock = await leases.take(lock, found)
    assert held_lock is not None
    return TaskContext(lock, held_lock)


async def test_a_position_is_taken_over_and_the_former_holder_notes_nothing_more(store: Shaky) -> None:
    one = await Ledger.begin(store, ID, await context_of(store, "locks/1"))
    assert one.position == {}
    await one.note({"next": 5})
    # Under another lock, whose fences say nothing about those of the first.
    two = await Ledger.begin(store, ID, await context_of(store, "locks/2"))
    assert two.position == {"next": 5}
    with pytest.raises(LockLostError):
        await one.note({"next": 6})
    await two.note({"next": 7})
    assert await positions(store, "ingest/job/progress/") == {"part": {"next": 7}}


@pytest.mark.parametrize("done", [True, False])
async def test_a_write_without_an_answer_is_done_once_more(
    store: Shaky, done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distributed_ingest.patience.ASK_AGAIN_S", 0.001)
    store.done, store.silent = done, 1
    ledger = await Ledger.begin(store, ID, await context_of(store, "locks/1"))
    store.silent = 1
    await ledger.note({"next": 1})
    await ledger.note({"next": 2})
    assert await positions(store, "ingest/job/progress/") == {"part": {"next": 2}}


async def test_without_its_lock_a_holder_notes_nothing(store: Shaky) -> None:
    context = await context_of(store, "locks/1")
    ledger = await Ledger.begin(store, ID, context)
    await context.held_lock.release()
    with pytest.raises(LockLostError):
        await ledger.note({"next": 1})
    assert await positions(store, "ingest/job/progress/") == {"part": {}}


async def test_the_sum_over_nodes(store: Shaky) -> None:
    tallies = [Tally(), Tally()]
    totals = [Totals(store, "ingest/job/totals") for _ in tallies]
    tallies[0].add("a", Counts(2, 20))
    tallies[1].add("b", Counts(3, 30, skipped=1))
    await asyncio.gather(*(total.tell(tally) for total, tally in zip(totals, tallies, strict=True)))
    await totals[0].tell(tallies[0])
    assert totals[0].known == Counts(5, 50, 1)
    tallies[0].add("a", Counts(1, 1))
    await totals[0].tell(tallies[0])
    await totals[1].tell(tallies[1])
    assert totals[1].known == Counts(6, 51, 1)


async def test_the_sum_is_added_once_although_its_report_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that ends cancels what keeps telling, and tells itself: what was on its way then is not added twice."""

    class Slow(MemoryStore):
        async def put(self, id: str, body: Body, expected: Version | None) -> Version:
            version = await super().put(id, body, expected)
            written.set()
            await answered.wait()
            return version

    written, answered, tally = asyncio.Event(), asyncio.Event(), Tally()
    totals = Totals(Slow(), "ingest/job/totals")
    tally.add("a", Counts(2, 20))
    telling = asyncio.create_task(totals.keep_telling(tally, 0.001))
    await asyncio.wait_for(written.wait(), SOON_S)
    telling.cancel()
    asyncio.get_running_loop().call_later(0.05, answered.set)
    await asyncio.wait((telling,))
    await totals.tell(tally)
    assert telling.cancelled() and totals.known == Counts(2, 20)


def test_origins_are_bounded_and_problems_logged_now_and_then(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("distributed_ingest.tally.time.monotonic", lambda: now)
    tally = Tally()
    for number in range(MAX_ORIGINS + 10):
        tally.add(str(number), Counts(1))
    assert len(tally.by_origin) == MAX_ORIGINS + 1 and tally.by_origin[OTHERS].records == 10
    for text in ("a", "b", "a"):
        tally.problem(text)
    now += AGAIN_S
    tally.problem("a")
    assert list(tally.problems) == ["a", "b"]
    assert [record.getMessage() for record in caplog.records] == ["a", "b", "a"]


def definition(**changed: Any) -> Definition:
    return Definition(
        **{"kind": "folder", "origins": ("/data",), "stream": "demo/x", "records": "lines", "key": "none", **changed}
    )


async def test_a_name_means_one_job(store: Shaky) -> None:
    job = Job("one", definition())
    await register(store, job, {})
    await register(store, job, {})
    with pytest.raises(RefusedError, match=r'it has origins \["/data"\]; this command has origins \["/other"\]'):
        await register(store, Job("one", definition(origins=("/other",))), {})
    with pytest.raises(RefusedError, match="key"):
        await register(store, Job("one", definition(key="source")), {})


async def test_a_store_that_is_not_ready_is_called_again(store: Shaky, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distributed_ingest.job.PAUSES_S", (0.001, 0.001))
    calls = 0

    async def get(id: str) -> Document | None:
        nonlocal calls
        calls += 1
        if calls <= unready:
            raise StoreUnavailableError("the index is not ready")
        return await MemoryStore.get(store, id)

    monkeypatch.setattr(store, "get", get)
    unready = 2
    await register(store, Job("one", definition()), {})
    assert calls == 3 and await store.get("ingest/one/job") is not None
    calls, unready = 0, 3
    with pytest.raises(StoreUnavailableError):
        await register(store, Job("one", definition()), {})


def test_names() -> None:
    name = definition().name()
    assert name == definition(key="source").name() != definition(origins=("/other",)).name()
    assert name.startswith("folder-demo-x-") and checked_name(name) == name
    with pytest.raises(UsageError):
        checked_name("a/b")


@pytest.mark.parametrize(("lease_s", "retry_s"), [(1.0, 1 / 30), (6.0, 0.2), (15.0, 0.5), (60.0, 0.5)])
def test_a_failed_renewal_is_followed_by_others_before_the_lock_runs_out(lease_s: float, retry_s: float) -> None:
    lease = Timing(lease_s).node(workers=1).lease
    assert lease.retry_s == pytest.approx(retry_s) and lease.usable_s - lease.renew_s > 5 * lease.retry_s


async def test_a_file_url_with_a_host_is_refused_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two slashes the first folder would be the host, and the rest a path from the root."""
    monkeypatch.setattr(Path, "mkdir", lambda *_args, **_options: pytest.fail("a folder is made"))
    url = "file://state/jobs/x.json"
    assert not is_new_file(url) and is_new_file(f"file:{tmp_path}/none.json")
    with pytest.raises(UsageError, match="no document store is known for URLs of 'file' as this one"):
        async with opened(url, 2.0):
            pass


async def test_work_is_finished_although_its_task_is_cancelled() -> None:
    going, end, recorded = asyncio.Event(), asyncio.Event(), []

    async def work() -> None:
        going.set()
        await end.wait()
        recorded.append(True)

    task = asyncio.create_task(settled(work(), lambda: 5.0))
    await going.wait()
    for _ in range(3):
        # The library says it with each look.
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert recorded == [True]


@pytest.mark.parametrize("left_s", [lambda: 0.0, lambda: 0.01])
async def test_work_is_not_waited_for_longer_than_the_lock_lasts(left_s: Callable[[], float]) -> None:
    going, cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        going.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    task = asyncio.create_task(settled(work(), left_s))
    await going.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, SOON_S)
    await asyncio.wait_for(cancelled.wait(), SOON_S)


async def test_a_group_fails_with_the_error_itself() -> None:
    async def fail() -> None:
        raise LockLostError("x")

    async def run() -> None:
        async with together() as group:
            group.create_task(fail())
            await asyncio.Event().wait()

    with pytest.raises(LockLostError):
        await run()
