"""What is done to a stream costs the same after ten epochs and after ten thousand, wherever its head is."""

import time
from collections.abc import Callable
from functools import partial
from itertools import count

import pytest
from support.txn_log import TxnLog

from sluice.domain.transaction import decide as transactions
from sluice.domain.transaction.decide import Limits

FEW, MANY = 10, 10_000
BATCHES, BATCH = 15, 20
"""Of so many batches of so many operations each the fastest counts: what else the machine does makes none faster."""

LIMITS = Limits(open=1_000_000, waiting_commits=1_000_000)


def replace_one(log: TxnLog) -> None:
    """Replace the first of the active segments by another one over the same keys."""
    first = log.stream.active_segments()[0]
    log.scale((first.id,), ((first.low, first.high),), log.now)


def truncate(log: TxnLog, epoch: int) -> None:
    """Move the head to where an epoch begins."""
    cut = dict.fromkeys(log.stream.history.epoch(epoch).segments, 0)
    log.truncate(cut)
    assert log.stream.cut == cut


def stream_with(epochs: int, is_truncated: bool) -> TxnLog:
    log = TxnLog(segments=4, limits=LIMITS)
    while log.stream.history.count < epochs:
        replace_one(log)
    if is_truncated:
        truncate(log, log.stream.active)
    return log


def commit(log: TxnLog, id: str) -> None:
    assert log.commit(id).status == "SUCCESS"
    log.finish_batch()


def times_as_long(short: Callable[[], float], long: Callable[[], float]) -> float:
    """How many times as long the second operation takes; each gives its seconds of CPU."""
    fastest = {short: float("inf"), long: float("inf")}
    for _ in range(BATCHES):
        for operation in fastest:
            fastest[operation] = min(fastest[operation], sum(operation() for _ in range(BATCH)))
    return fastest[long] / fastest[short]


def seconds(operation: Callable[[], object]) -> float:
    began = time.thread_time()
    operation()
    return time.thread_time() - began


def scaling(log: TxnLog) -> Callable[[], float]:
    return lambda: seconds(partial(replace_one, log))


def opening(log: TxnLog) -> Callable[[], float]:
    numbers = count()
    return lambda: seconds(lambda: log.open(f"request-{next(numbers)}"))


def committing(log: TxnLog) -> Callable[[], float]:
    """Of a transaction that was opened just before, so that nothing rolls."""
    numbers = count()

    def once() -> float:
        id = log.open(f"request-{next(numbers)}")
        return seconds(partial(commit, log, id))

    return once


def truncating(log: TxnLog) -> Callable[[], float]:
    """By one epoch at a time, on from where the head is."""
    epochs = count(log.stream.active + 1 if log.stream.cut else 1)

    def once() -> float:
        replace_one(log)
        return seconds(partial(truncate, log, next(epochs)))

    return once


@pytest.mark.parametrize("operation", [scaling, opening, committing, truncating])
@pytest.mark.parametrize("is_truncated", [True, False])
def test_an_operation_costs_the_same_after_10_000_epochs_as_after_10(
    operation: Callable[[TxnLog], Callable[[], float]], is_truncated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It seeks the transaction of a redelivered request in every epoch, which is not the cost of opening one.
    monkeypatch.setattr(transactions, "opened_by", lambda *_: None, raising=False)
    few, many = (operation(stream_with(epochs, is_truncated)) for epochs in (FEW, MANY))
    ratio = times_as_long(few, many)
    print(f"{operation.__name__}: {ratio:.2f}")
    assert ratio < 2
