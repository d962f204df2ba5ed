"""Statistics: what counts in the journal, how reports become windows, what is bounded."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.domain.events import Event
from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.model import DomainModel
from sluice.domain.scope.events import ScopeCreated
from sluice.domain.stream.events import (
    StreamCreated,
    StreamDeleted,
    StreamEvent,
    StreamScaled,
    StreamSealed,
    StreamSealStarted,
    StreamTruncated,
    StreamUpdated,
)
from sluice.domain.transaction.commands import AbortReason
from sluice.domain.transaction.events import (
    TransactionAborted,
    TransactionAborting,
    TransactionCommitted,
    TransactionCommitting,
    TransactionOpened,
    TransactionReady,
)
from sluice.domain.transaction.state import EndedTransaction, Transaction, TransactionState
from sluice.engine.fold import PartitionView
from sluice.insight.statistics import (
    MINUTE_MS,
    Figures,
    Operation,
    OperationCounter,
    PendingFigures,
    StreamStatistics,
    TransactionCounter,
    WindowKind,
    WindowStatistics,
    fold_report,
)

ID = "00000000-0000-0000-0102-030405060708"
TXN: dict[str, Any] = {"scope": "sc", "stream": "st", "transaction": ID}
AGGREGATE = f"txn:sc/st/{ID}"
OPENED_AT = 1_000
DAY_MS = 24 * 60 * MINUTE_MS

counts = st.integers(0, 10**6)
figures = st.builds(
    Figures,
    opened=counts,
    committed=counts,
    aborted=st.dictionaries(st.sampled_from(AbortReason), counts),
    timed=counts,
    total_ms=counts,
    longest_ms=counts,
    operations=st.dictionaries(st.sampled_from(Operation), counts),
)


class View(PartitionView):
    """A view of these aggregates."""

    def __init__(self, states: dict[str, Any] | None = None) -> None:
        super().__init__(DomainModel())
        self._states = states or {}

    def get(self, aggregate: str) -> Any | None:
        return self._states.get(aggregate)


def being(state: TransactionState) -> View:
    return View({AGGREGATE: Transaction(TransactionId("sc", "st", ID), OPENED_AT, 10_000, OPENED_AT, 10**9, state)})


def ended(state: TransactionState, reason: AbortReason | None = None) -> View:
    return View({AGGREGATE: EndedTransaction(ID, state, 5_000, reason)})


def report(minute: int, of: Figures, at: int = 0) -> StreamStatistics:
    return StreamStatistics(id=f"r-{at}", by="t/1", at=at, scope="sc", stream="st", minute=minute, figures=of)


def test_a_committed_transaction_counts_with_the_time_since_its_opening() -> None:
    counter = TransactionCounter()
    opened = counter.figures(
        TransactionOpened(**TXN, lease_ms=10_000, at=OPENED_AT, dies_at=10**15), being(TransactionState.OPEN)
    )
    assert opened == Figures(opened=1)
    assert counter.figures(TransactionReady(**TXN, at=1_100), being(TransactionState.OPEN)) is None
    committing = TransactionCommitting(**TXN, at=4_000)
    assert counter.figures(committing, being(TransactionState.COMMITTING)) is None
    committed = counter.figures(TransactionCommitted(**TXN, at=5_000), ended(TransactionState.COMMITTED))
    assert committed == Figures(committed=1, timed=1, total_ms=4_000, longest_ms=4_000)


@pytest.mark.parametrize("reason", AbortReason)
def test_an_aborted_transaction_counts_under_its_reason(reason: AbortReason) -> None:
    counter = TransactionCounter()
    aborting = TransactionAborting(**TXN, reason=reason, at=2_000)
    assert counter.figures(aborting, being(TransactionState.ABORTING)) is None
    aborted = counter.figures(TransactionAborted(**TXN, at=2_500), ended(TransactionState.ABORTED, reason))
    assert aborted == Figures(aborted={reason: 1}, timed=1, total_ms=1_500, longest_ms=1_500)


@pytest.mark.parametrize(("most", "forgets"), [(0, False), (1, True)], ids=["too many end", "partitions went"])
def test_without_a_known_opening_an_end_counts_untimed(most: int, forgets: bool) -> None:
    counter = TransactionCounter(most)
    counter.figures(TransactionCommitting(**TXN, at=4_000), being(TransactionState.COMMITTING))
    if forgets:
        counter.forget()
    committed = counter.figures(TransactionCommitted(**TXN, at=5_000), ended(TransactionState.COMMITTED))
    assert committed == Figures(committed=1)


@pytest.mark.parametrize(
    ("event", "operation"),
    [
        (StreamCreated("sc", "st"), Operation.CREATE),
        (StreamUpdated("sc", "st"), Operation.UPDATE),
        (StreamScaled("sc", "st", {}), Operation.SCALE),
        (StreamTruncated("sc", "st"), Operation.TRUNCATE),
        (StreamSealed("sc", "st"), Operation.SEAL),
        (StreamDeleted("sc", "st", 3), Operation.DELETE),
        (StreamCreated("sc", "_MARKst"), None),
        (StreamSealStarted("sc", "st"), None),
        (ScopeCreated("sc", "c", 1), None),
        (TransactionCommitted(**TXN, at=1), None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, StreamEvent) else None,
)
def test_an_operation_counts_when_it_is_done(event: Event, operation: Operation | None) -> None:
    wanted = Figures(operations={operation: 1}) if operation else None
    assert OperationCounter().figures(event, View()) == wanted


@given(figures, figures, figures)
def test_the_order_in_which_figures_are_added_does_not_matter(a: Figures, b: Figures, c: Figures) -> None:
    assert a.plus(b).plus(c) == c.plus(b.plus(a))
    assert a.plus(Figures()) == a


@given(st.lists(st.tuples(st.integers(0, 3 * DAY_MS), figures), min_size=1), st.sampled_from(WindowKind))
def test_windows_hold_together_what_was_reported(reported: list[tuple[int, Figures]], kind: WindowKind) -> None:
    windows: dict[int, WindowStatistics] = {}
    total = Figures()
    for offset, (at, of) in enumerate(reported):
        begin = kind.begin(at)
        assert begin <= at < begin + kind.length_ms and begin % kind.length_ms == 0
        minute = WindowKind.MINUTE.begin(at)
        windows[begin] = fold_report(windows.get(begin), kind, report(minute, of, at), offset, "t/2")
        assert (windows[begin].begin, windows[begin].offset, windows[begin].at) == (begin, offset, at)
        total = total.plus(of)
    found = Figures()
    for window in windows.values():
        found = found.plus(window.figures)
    assert found == total


def test_a_redelivered_report_does_not_change_its_window() -> None:
    first = fold_report(None, WindowKind.HOUR, report(0, Figures(opened=1)), 7, "t/2")
    second = fold_report(first, WindowKind.HOUR, report(MINUTE_MS, Figures(opened=2), 9), 8, "t/2")
    assert fold_report(second, WindowKind.HOUR, report(0, Figures(opened=1)), 7, "t/2") == second
    assert fold_report(second, WindowKind.HOUR, report(MINUTE_MS, Figures(opened=2), 9), 8, "t/2") == second
    assert second.figures == Figures(opened=3)


def test_pending_figures_are_bounded_and_taken_once() -> None:
    pending = PendingFigures(most=2)
    for stream in ("a", "b", "c", "a"):
        pending.add((StreamId("sc", stream), 0), Figures(opened=1))
    assert pending.dropped == 1
    assert pending.take() == {(StreamId("sc", "a"), 0): Figures(opened=2), (StreamId("sc", "b"), 0): Figures(opened=1)}
    assert pending.take() == {}
