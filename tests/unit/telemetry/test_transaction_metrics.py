"""How many transactions there are, counted some partitions at a time."""

import itertools
from typing import Any

import pytest
from prometheus_client import REGISTRY
from support.memory_world import PARTITIONS, ManualClock, MemoryWorld, Process

from sluice.domain.transaction import events as ev
from sluice.domain.transaction.state import Transaction
from sluice.domain.transaction_ids import transaction_id
from sluice.engine.journal import Journal
from txn_manager import transaction_metrics
from txn_manager.transaction_metrics import TransactionMetrics

NOW_MS = 1_000_000
EVERYWHERE = set(range(PARTITIONS))
GAUGES = ("transactions_open", "commits_waiting", "leases_overdue", "lease_overdue_seconds")


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape counts everything, also where the machine stands still in the middle of it."""
    monkeypatch.setattr(transaction_metrics, "BUDGET_S", 3600.0)


class World(MemoryWorld):
    """Seen by a process whose clock stands still."""

    def __init__(self) -> None:
        super().__init__("txn-manager")
        self.observer: Process = self.process(ManualClock(NOW_MS))

    @property
    def journal(self) -> Journal:
        return self.observer.journal


def ends_at(transaction: Transaction) -> int:
    return transaction.lease_ends_at


def gauges() -> tuple[float | None, ...]:
    return tuple(REGISTRY.get_sample_value(f"sluice_{name}") for name in GAUGES)


async def open_one(world: World, stream: str, request: str, late_ms: int = -5_000, committing: bool = False) -> None:
    facts: dict[str, Any] = {"scope": "sc", "stream": stream, "transaction": transaction_id(0, request)}
    at = NOW_MS - 10_000 - late_ms
    await world.seed(f"sc/{stream}", ev.TransactionOpened(**facts, lease_ms=10_000, at=at, dies_at=10**15))
    await world.seed(f"sc/{stream}", ev.TransactionReady(**facts, at=at))
    if committing:
        await world.seed(f"sc/{stream}", ev.TransactionCommitting(**facts, at=at))


@pytest.mark.usefixtures("unhurried")
async def test_open_waiting_and_overdue_ones_are_counted_apart() -> None:
    world = World()
    await open_one(world, "st", "a")
    await open_one(world, "st", "b", late_ms=7_000)
    await open_one(world, "other", "c", late_ms=3_000)
    await open_one(world, "st", "d", late_ms=60_000, committing=True)
    TransactionMetrics(world.journal, lambda: EVERYWHERE, lambda: EVERYWHERE, ends_at).publish()
    assert gauges() == (3, 1, 2, 7.0)


@pytest.mark.usefixtures("unhurried")
async def test_only_partitions_that_are_owned_count() -> None:
    world = World()
    await open_one(world, "st", "a", late_ms=7_000)
    await open_one(world, "st", "b", committing=True)
    partition = world.journal.partition_of("sc/st")
    owned = {partition}
    found = TransactionMetrics(world.journal, lambda: owned, lambda: EVERYWHERE - {partition}, ends_at)
    found.publish()
    assert gauges() == (1, 0, 1, 7.0)
    owned.clear()
    found.publish()
    assert gauges() == (0, 0, 0, 0.0)


async def test_a_scrape_that_takes_long_goes_on_in_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    streams = {world.journal.partition_of(f"sc/s{n}"): f"s{n}" for n in range(50)}
    assert set(streams) == EVERYWHERE
    for stream in streams.values():
        await open_one(world, stream, "a")
    seconds = itertools.count()
    monkeypatch.setattr("txn_manager.transaction_metrics.time.perf_counter", lambda: float(next(seconds)))
    found = TransactionMetrics(world.journal, lambda: EVERYWHERE, lambda: EVERYWHERE, ends_at)
    counted = []
    for _ in EVERYWHERE:
        found.publish()
        counted.append(gauges()[0])
    assert counted == [1, 2, 3, 4]
