"""How many transactions there are, counted some partitions at a time."""

import itertools
from typing import Any

import pytest
from prometheus_client import REGISTRY
from support.memory_journal import PARTITIONS, JournalWorld

from sluice.domain import events as ev
from sluice.domain.transaction.ids import transaction_id
from sluice.domain.transaction.state import Transaction
from txn_manager import tally as module
from txn_manager.tally import Tally

NOW_MS = 1_000_000
EVERYWHERE = set(range(PARTITIONS))
GAUGES = ("transactions_open", "commits_waiting", "leases_overdue", "lease_overdue_seconds")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "now_ms", lambda: NOW_MS)


def ends_at(transaction: Transaction) -> int:
    return transaction.lease_ends_at


def gauges() -> tuple[float | None, ...]:
    return tuple(REGISTRY.get_sample_value(f"sluice_{name}") for name in GAUGES)


def open_one(world: JournalWorld, stream: str, request: str, late_ms: int = -5_000, committing: bool = False) -> None:
    facts: dict[str, Any] = {"scope": "sc", "stream": stream, "transaction": transaction_id(0, request)}
    at = NOW_MS - 10_000 - late_ms
    world.seed(f"sc/{stream}", ev.TransactionOpened(**facts, lease_ms=10_000, at=at))
    world.seed(f"sc/{stream}", ev.TransactionReady(**facts, at=at))
    if committing:
        world.seed(f"sc/{stream}", ev.TransactionCommitting(**facts, at=at))


async def test_open_waiting_and_overdue_ones_are_told_apart() -> None:
    world = JournalWorld()
    open_one(world, "st", "a")
    open_one(world, "st", "b", late_ms=7_000)
    open_one(world, "other", "c", late_ms=3_000)
    open_one(world, "st", "d", late_ms=60_000, committing=True)
    Tally(world.first.journal, lambda: EVERYWHERE, lambda: EVERYWHERE, ends_at).publish()
    assert gauges() == (3, 1, 2, 7.0)


async def test_only_partitions_that_are_owned_count() -> None:
    world = JournalWorld()
    open_one(world, "st", "a", late_ms=7_000)
    open_one(world, "st", "b", committing=True)
    partition = world.first.journal.partition_of("sc/st")
    owned = {partition}
    tally = Tally(world.first.journal, lambda: owned, lambda: EVERYWHERE - {partition}, ends_at)
    tally.publish()
    assert gauges() == (1, 0, 1, 7.0)
    owned.clear()
    tally.publish()
    assert gauges() == (0, 0, 0, 0.0)


async def test_a_scrape_that_takes_long_goes_on_in_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = JournalWorld()
    streams = {world.first.journal.partition_of(f"sc/s{n}"): f"s{n}" for n in range(50)}
    assert set(streams) == EVERYWHERE
    for stream in streams.values():
        open_one(world, stream, "a")
    seconds = itertools.count()
    monkeypatch.setattr("txn_manager.tally.time.perf_counter", lambda: float(next(seconds)))
    tally = Tally(world.first.journal, lambda: EVERYWHERE, lambda: EVERYWHERE, ends_at)
    counted = []
    for _ in EVERYWHERE:
        tally.publish()
        counted.append(gauges()[0])
    assert counted == [1, 2, 3, 4]
