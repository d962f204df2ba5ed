"""Transactions under faults: the production services on a broker, a Redis and segment stores in memory, run by seeds.

`SIM_SEED` runs one seed; else the first `SIM_SEEDS` (500) are run, for no longer than `SIM_SECONDS` (55 s). Where
changes are judged it is 150, however long they take. `make soak` runs as many as one likes.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from simulation import lives
from simulation.seeds import run_for, run_seeds
from simulation.txn.run import run_seed
from simulation.violation import Violation
from support.effort import effort

from sluice.domain.model import JournalEntry
from sluice.domain.transaction import batch, index, stream_deletion
from sluice.engine.fold import PartitionView
from sluice.engine.journal import Journal
from sluice.engine.sources import DecidedSources
from sluice.pravega.store import SegmentInfo
from txn_manager import commit_steps, merging, range_creator
from txn_manager.early_answers import unless_missing
from txn_manager.leases import Leases
from txn_manager.outage_tracker import OutageTracker
from txn_manager.preparer import TransactionPreparer
from txn_manager.range_creator import RangeCreator
from txn_manager.skipped_segments import SkippedSegments
from txn_manager.transaction_completion import TransactionCompletion
from txn_manager.wheel import wheel
from txn_manager.wheel.errors import WheelLostError
from txn_manager.wheel.timer_redis import TimerRedis, Turn

SECONDS = float(os.environ.get("SIM_SECONDS", "55"))
SEEDS = int(os.environ.get("SIM_SEEDS", effort(500, 150)))
SEED = os.environ.get("SIM_SEED")
BROKEN_SEEDS = 400


def test_whatever_fails_transactions_keep_their_promises(capsys: pytest.CaptureFixture[str]) -> None:
    seeds = [int(SEED)] if SEED else range(SEEDS)
    done = run_for(run_seed, seeds, SECONDS)
    with capsys.disabled():
        print(f" {done} seeds", end="")


# The auditor can fail: each of these is a product that breaks one promise. `first` is a seed soon before it shows.


def merge_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    merge = merging.merge_into

    async def twice(store: Any, *batch: Any) -> Any:
        before = {name: segment.data for name, segment in store.segments.items()}
        merged = len(store.merges)
        result = await merge(store, *batch)
        for target, source, _ in store.merges[merged:]:
            store.segments[target].data += before[source]
        return result

    monkeypatch.setattr(commit_steps, "merge_into", twice)


async def info(store: Any, name: str) -> SegmentInfo | None:
    return await unless_missing(store.segment_info, name)


def trust_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_store: Any, _name: str) -> None:
        pass

    monkeypatch.setattr(merging, "_sealed", info)
    monkeypatch.setattr(merging, "_seal", nothing)


def merge_data_first(monkeypatch: pytest.MonkeyPatch) -> None:
    skip_and_merge = merging._skip_and_merge

    async def data_first(store: Any, merge: Any, target: str, sources: Any, *rest: Any) -> Any:
        infos = [await info(store, source) for source in sources]
        await merge(target, [s for s, info in zip(sources, infos, strict=True) if info is not None and info.length])
        return await skip_and_merge(store, merge, target, sources, *rest)

    monkeypatch.setattr(merging, "_skip_and_merge", data_first)


def leave_what_was_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> None:
        pass

    monkeypatch.setattr(SkippedSegments, "_delete", nothing)


def record_no_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SkippedSegments, "_record_later", lambda *_: None)


def forget_skipped_of_deleted_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_deletion, "record_deleted", lambda *_: ())


def lose_order(monkeypatch: pytest.MonkeyPatch) -> None:
    transactions_of = index.transactions_of

    def backwards(*names: Any) -> Any:
        found = transactions_of(*names)
        return type(found)(found.open, dict(reversed(found.committing.items())))

    monkeypatch.setattr(batch, "transactions_of", backwards)


def abort_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leases, "ends_at", lambda _self, transaction: transaction.lease_ends_at)


def ignore_outages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OutageTracker, "open_since", lambda *_: 0)


def forget_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leases, "open_leases", lambda *_: {})


def trust_a_lost_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    turn = TimerRedis.turn

    async def never_lost(redis: TimerRedis, wheel: str, former: str, run: str, delays_ms: Any) -> Turn:
        try:
            return await turn(redis, wheel, former, run, delays_ms)
        except WheelLostError:
            return await turn(redis, wheel, former, "", delays_ms)

    monkeypatch.setattr(TimerRedis, "turn", never_lost)


def trust_the_clock_of_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "CLOCK_STEP_MS", 10**9)


def forget_what_others_left(monkeypatch: pytest.MonkeyPatch) -> None:
    take_over = TransactionCompletion.take_over

    def seeing_nothing(completion: TransactionCompletion, partition: int) -> None:
        with monkeypatch.context() as blind:
            for what in ("aggregates", "projections", "under_way"):
                blind.setattr(PartitionView, what, lambda *_: ())
            take_over(completion, partition)

    monkeypatch.setattr(TransactionCompletion, "take_over", seeing_nothing)


def guard_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Journal.append

    def unguarded(journal: Journal, key: str, entries: tuple[JournalEntry, ...], **floors: Any) -> Any:
        return append(journal, key, tuple(msgspec.structs.replace(entry, expect={}) for entry in entries), **floors)

    monkeypatch.setattr(Journal, "append", unguarded)


def decide_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DecidedSources, "is_decided", lambda *_: False)


def prepare_without_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    async def create_nothing(*_: Any) -> None:
        pass

    monkeypatch.setattr(range_creator, "create_named", create_nothing)


def discard_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TransactionPreparer, "_discard", lambda *_: None)


def leave_what_was_created_late(monkeypatch: pytest.MonkeyPatch) -> None:
    async def delete_nothing(*_: Any) -> None:
        pass

    monkeypatch.setattr(RangeCreator, "_delete", delete_nothing)


@pytest.mark.parametrize(
    ("break_it", "seen", "first"),
    [
        (merge_twice, "has written", 0),
        (trust_lengths, "has written", 0),
        (merge_data_first, "behind a later commit", 70),
        (leave_what_was_skipped, "is left over", 0),
        (record_no_deletions, "never recorded as deleted", 0),
        (forget_skipped_of_deleted_streams, "skipped and not deleted", 30),
        (lose_order, "in the order", 9),
        (abort_early, "before its lease and grace were over", 0),
        (ignore_outages, "pings could be received from", 20),
        (forget_leases, "is open at", 0),
        (trust_a_lost_wheel, "is open at", 0),
        (trust_the_clock_of_redis, "is open at", 0),
        (forget_what_others_left, "never ended", 10),
        (guard_nothing, "Violation", 0),
        (prepare_without_segments, "are missing", 0),
        (discard_nothing, "still has", 0),
        (leave_what_was_created_late, "is left over, it was reserved", 110),
        (decide_twice, "is duplicate, but was folded as", 0),
    ],
)
def test_a_broken_product_is_found(
    break_it: Callable[[pytest.MonkeyPatch], None], seen: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    with pytest.raises(Violation, match=seen):
        run_seeds(run_seed, range(first, first + BROKEN_SEEDS))


def test_a_frozen_process_does_nothing_and_a_dead_one_not_even_its_end() -> None:
    loop = lives.SimulationLoop()
    done: list[str] = []

    async def work(name: str) -> None:
        try:
            await asyncio.sleep(1)
            done.append(name)
        finally:
            await asyncio.sleep(1)
            done.append(f"{name} ended")

    async def scenario() -> None:
        frozen, dead = (lives.Life(name, lambda _what: None) for name in ("frozen", "dead"))
        for life in (frozen, dead):
            loop.call_soon(lambda name: loop.create_task(work(name)), life.name, context=life.context)
        await asyncio.sleep(0.5)
        loop.freeze(frozen)
        loop.kill(dead)
        await asyncio.sleep(10)
        assert done == []
        loop.thaw(frozen)
        await asyncio.sleep(10)
        assert done == ["frozen", "frozen ended"]

    try:
        loop.run_until_complete(scenario())
    finally:
        loop.end()
