"""The state of partitions as bytes, over the journals of runs under faults: restored anywhere, all goes on alike.

These journals hold what the services make of everything they do: scales, truncations, commits that roll, deletions of
scopes, void entries and duplicates.
"""

from collections.abc import Sequence
from random import Random

import pytest
from simulation.processes import System
from simulation.scopes.run import run_seed as run_scopes
from simulation.txn.run import run_seed as run_transactions

from sluice.domain.model import DomainModel
from sluice.engine.fold import Outcome, PartitionView
from sluice.engine.ports import Message
from sluice.kafka.topics import JOURNAL

MODEL = DomainModel()
POINTS = 4
"""Of each journal so many are captured, and the end."""


def fold(view: PartitionView, message: Message) -> list[Outcome]:
    return view.fold(MODEL.decode(message.value()), message.offset(), message.timestamp()[1])


def settle(view: PartitionView) -> None:
    while view.settle(64):
        pass


def check(log: Sequence[Message], random: Random) -> None:
    """A view that stays decoded, one at rest, and those that are restored on the way judge and capture alike."""
    points = {random.randrange(len(log)) for _ in range(POINTS)} if log else set()
    warm, views = PartitionView(MODEL, warm=1 << 30), [PartitionView(MODEL, warm=0)]
    for message in log:
        outcomes = fold(warm, message)
        for view in views:
            assert fold(view, message) == outcomes
            settle(view)
        if message.offset() in points:
            captured = list(warm.capture())
            restored = PartitionView(MODEL, warm=random.choice((0, 3, 1 << 30)))
            restored.restore(captured)
            views.append(restored)
            assert all(list(view.capture()) == captured for view in views)
    captured = list(warm.capture())
    for view in views:
        assert list(view.capture()) == captured and dict(view.aggregates()) == dict(warm.aggregates())
        assert view.outcome_hash == warm.outcome_hash and view.under_way() == warm.under_way()


def check_all(system: System, seed: int) -> None:
    for log in system.broker.logs(JOURNAL.name):
        check(log, Random(seed))


@pytest.mark.parametrize("seed", range(6))
def test_a_journal_of_scopes_restored_at_any_record_goes_on_alike(seed: int) -> None:
    check_all(run_scopes(seed), seed)


@pytest.mark.parametrize("seed", range(6))
def test_a_journal_of_transactions_restored_at_any_record_goes_on_alike(seed: int) -> None:
    check_all(run_transactions(seed).plant, seed)
