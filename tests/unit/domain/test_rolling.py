"""A batch of an epoch that the stream has left: its segments come between two epochs, as in the worked example of
stream-and-transaction-semantics 5.2.
"""

from support.histories import epochs_of, sealed_in, segments_of
from support.txn_log import TxnLog, worked_example

from sluice.domain.segment import segment_id
from sluice.domain.stream import queries
from sluice.domain.stream.history import Epoch
from sluice.domain.stream.state import Stream
from sluice.domain.transaction import batch
from sluice.domain.transaction.state import TransactionState, segments_to_write
from sluice.domain.transaction_ids import epoch_of
from sluice.domain.workflow import WorkflowKind

T = 5000
TWO, THREE = segment_id(1, 2), segment_id(1, 3)
ZERO_2, ONE_2 = 8589934592, 8589934593
ZERO_3, TWO_3, THREE_3 = 12884901888, 12884901890, 12884901891


def rolling() -> tuple[TxnLog, str]:
    """The worked example with its batch begun."""
    log, early = worked_example()
    log.now = T
    log.commit(early)
    assert log.batch.kind is WorkflowKind.ROLL_TRANSACTIONS
    return log, early


def successors(stream: Stream, segment: int) -> dict[int, list[int]]:
    return {s.id: before for s, before in queries.successors_with_predecessors(stream, segment)}


def assert_example(stream: Stream) -> None:
    """The two tables of 5.2."""
    assert epochs_of(stream) == [
        Epoch(0, 0, 1000, (0, 1)),
        Epoch(1, 1, 2000, (0, TWO, THREE)),
        Epoch(2, 0, T, (ZERO_2, ONE_2)),
        Epoch(3, 1, T + 1, (ZERO_3, TWO_3, THREE_3)),
    ]
    ranges = {s.id: (s.low, s.high) for s in segments_of(stream).values()}
    assert ranges[ZERO_2] == (0.0, 0.5) and ranges[ONE_2] == (0.5, 1.0)
    assert [ranges[s] for s in (ZERO_3, TWO_3, THREE_3)] == [(0.0, 0.5), (0.5, 0.75), (0.75, 1.0)]
    assert sealed_in(stream) == {1: 1, 0: 2, TWO: 2, THREE: 2, ZERO_2: 3, ONE_2: 3}
    assert successors(stream, 0) == {ZERO_2: [0]}
    assert successors(stream, TWO) == successors(stream, THREE) == {ONE_2: [TWO, THREE]}
    assert successors(stream, ZERO_2) == {ZERO_3: [ZERO_2]}
    assert successors(stream, ONE_2) == {TWO_3: [ONE_2], THREE_3: [ONE_2]}
    assert successors(stream, 1) == {TWO: [1], THREE: [1]}


def test_the_worked_example() -> None:
    log, early = rolling()
    log.record_rolled({ZERO_2: 70, ONE_2: 80})
    assert_example(log.stream)
    log.now = T + 500
    log.end_roll({0: 10, TWO: 20, THREE: 30})
    stream = log.stream
    assert_example(stream)
    assert stream.history.sealed_sizes == {1: 100, 0: 10, TWO: 20, THREE: 30, ZERO_2: 70, ONE_2: 80}
    assert stream.active_epoch.number == 3
    assert [s.id for s in queries.current_segments(stream)] == [ZERO_3, TWO_3, THREE_3]
    assert all(successors(stream, s) == {} for s in (ZERO_3, TWO_3, THREE_3))
    assert log.state(early) is TransactionState.COMMITTED
    assert log.commits is not None and log.commits.workflow is None


def test_writers_keep_to_the_old_segments_until_these_are_sealed() -> None:
    log, early = rolling()
    log.record_rolled()
    stream = log.stream
    assert batch.has_rolled(stream)
    assert stream.active_epoch.number == 1
    assert [s.id for s in queries.current_segments(stream)] == [0, TWO, THREE]
    assert log.state(early) is TransactionState.COMMITTING
    assert {0, TWO, THREE}.isdisjoint(stream.history.sealed_sizes)


def test_times_of_epochs_grow_even_if_the_clock_does_not() -> None:
    log, _ = rolling()
    log.now = 3
    log.record_rolled()
    assert [e.created_at for e in epochs_of(log.stream)] == [1000, 2000, 2001, 2002]


def test_after_a_roll_transactions_belong_to_the_epoch_that_it_refers_to() -> None:
    log, _ = rolling()
    log.record_rolled()
    log.end_roll()
    late = log.open("late")
    assert epoch_of(late) == 1
    assert [s.id for s in segments_to_write(log.stream, late)] == [segment_id(1, 0), TWO, THREE]
    log.commit(late)
    assert log.batch.kind is WorkflowKind.COMMIT_TRANSACTIONS, "its epoch is the active one, twice over"
    assert batch.targets(log.stream, (late,), rolls=False) == {0: ZERO_3, 2: TWO_3, 3: THREE_3}


def test_a_second_roll_comes_after_the_first_and_refers_to_the_same_epochs() -> None:
    log = TxnLog()
    first, second = log.open("first"), log.open("second")
    log.split(1, at=2000)
    log.now = T
    for id in (first, second):
        log.commit(id)
        assert log.batch.kind is WorkflowKind.ROLL_TRANSACTIONS
        log.record_rolled()
        log.end_roll()
    stream = log.stream
    assert [(e.number, e.reference) for e in epochs_of(stream)] == [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0), (5, 1)]
    four, five = stream.history.epoch(4).segments, stream.history.epoch(5).segments
    assert four == (segment_id(4, 0), segment_id(4, 1))
    assert five == (segment_id(5, 0), segment_id(5, 2), segment_id(5, 3))
    assert successors(stream, ZERO_3) == {four[0]: [ZERO_3]}
    assert successors(stream, TWO_3) == {four[1]: [TWO_3, THREE_3]}
    assert successors(stream, four[1]) == {five[1]: [four[1]], five[2]: [four[1]]}
    assert stream.active == 5 and log.index_of_all.live == 0


def test_a_scale_after_a_roll_goes_on_from_the_newest_epoch() -> None:
    log, _ = rolling()
    log.record_rolled()
    log.end_roll()
    log.split(0, at=9000)
    stream = log.stream
    four, five = segment_id(4, 4), segment_id(4, 5)
    assert stream.active_epoch == Epoch(4, 4, 9000, (TWO_3, THREE_3, four, five))
    assert successors(stream, ZERO_3) == {four: [ZERO_3], five: [ZERO_3]}
    assert epoch_of(log.open("later")) == 4
