"""Transactions that have ended, as rows: each is found as it was, however many there are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stream_log import STREAM
from support.txn_log import REACHED, TxnLog, ids_of_ended

from sluice.domain.model import DomainModel, JournalRecord
from sluice.domain.transaction.commands import AbortReason
from sluice.domain.transaction.ended import EndedTransactions
from sluice.domain.transaction.state import EndedTransaction, TransactionState
from sluice.domain.transaction_ids import text_of, transaction_id
from sluice.engine.fold import GuardedReader, Outcome, PartitionView
from sluice.engine.record import Entry, Record

OUTCOMES = [(TransactionState.COMMITTED, None), *((TransactionState.ABORTED, why) for why in (None, *AbortReason))]
TIMES = st.integers(0, 4_000_000_000_000)
ENDS = st.builds(
    lambda epoch, low, outcome, at: EndedTransaction(text_of(epoch << 32, low), outcome[0], at, outcome[1]),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1) | st.integers(0, 500),
    st.sampled_from(OUTCOMES),
    TIMES,
)
ROWS = st.lists(st.tuples(ENDS, st.integers(1, 2**32 - 1)), max_size=200, unique_by=lambda row: row[0].uuid)


def known(ended: EndedTransactions, uuid: str) -> tuple[int, EndedTransaction] | None:
    number = ended.number_of(uuid)
    return None if number is None else (ended.version(number), ended[number])


@given(ROWS, st.sets(st.integers(0, 199)))
def test_a_row_reads_as_the_aggregate_it_was_whenever_it_is_looked_for(
    rows: list[tuple[EndedTransaction, int]], looks: set[int]
) -> None:
    ended = EndedTransactions()
    for count, (one, version) in enumerate(rows):
        assert count not in looks or known(ended, one.uuid) is None
        ended.append(version, one)
        assert count not in looks or known(ended, one.uuid) == (version, one)
    restored = EndedTransactions(ended.rows)
    for one, version in rows:
        assert known(ended, one.uuid) == known(restored, one.uuid) == (version, one)
    assert list(restored) == list(ended) == [one for one, _ in rows]
    assert len(ended.rows) == 26 * len(rows), "what snapshots and memory are reckoned with"


ONE = transaction_id(7, "one")


@pytest.mark.parametrize("text", ["", "x", ONE.upper(), ONE.replace("-", ""), f"{ONE}00", f" {ONE}", ONE[:-2]])
def test_what_is_not_written_as_an_id_is_not_found(text: str) -> None:
    ended = EndedTransactions()
    ended.append(3, EndedTransaction(ONE, TransactionState.COMMITTED, 5))
    assert ended.number_of(ONE) == 0 and ended.number_of(text) is None


@pytest.mark.parametrize("how", ["committed", "aborted"])
def test_what_was_decided_on_a_transaction_before_it_ended_is_void(how: str) -> None:
    log = TxnLog()
    id = log.open("a")
    aggregate = STREAM.transaction(id).aggregate
    before = GuardedReader(log.view)
    before.get(aggregate)
    if how == "committed":
        log.commit(id)
        log.finish_batch()
    else:
        log.abort(id)
        log.finish_abort(id)
    after = GuardedReader(log.view)
    assert after.get(aggregate) == log.view.peek(aggregate) == next(iter(log.index_of_all.ended()))
    assert after.seen[aggregate] == log.view.version(aggregate) > before.seen[aggregate] > 0
    for seen, outcome in ((before.seen, Outcome.STALE), ({aggregate: 0}, Outcome.STALE), (after.seen, Outcome.COUNTED)):
        late: JournalRecord = Record("late", 0, "t", (Entry(seen),))
        assert log.view.fold(late, log.view.next_offset, 0) == [outcome]


def test_the_request_that_opened_an_ended_transaction_opens_nothing() -> None:
    log = TxnLog()
    ended = REACHED["committed"](log, "a")
    assert log.ask_open("a") is None
    assert not log.index_of_all.live and ids_of_ended(log.index_of_all) == [ended]


def test_a_restored_view_knows_the_ended_and_goes_on_alike() -> None:
    log = TxnLog()
    ids = [REACHED[how](log, f"{how}{number}") for number in range(9) for how in ("committed", "aborted")]
    restored = PartitionView(DomainModel())
    restored.restore(log.view.capture())
    for id in ids:
        aggregate = STREAM.transaction(id).aggregate
        assert restored.get(aggregate) == log.get(aggregate) is not None
        assert restored.version(aggregate) == log.version(aggregate)
    assert list(restored.capture()) == list(log.view.capture())
    assert not restored.names("txn:"), "no aggregate is left of them"


def test_a_listing_goes_on_behind_one_that_it_has_shown() -> None:
    log = TxnLog()
    ids = [REACHED["aborted"](log, f"r{number}") for number in range(5)][::-1]
    for count, id in enumerate(ids, 1):
        assert [one.uuid for one in log.index_of_all.ended(id)] == ids[count:]
    assert list(log.index_of_all.ended(transaction_id(0, "never"))) == []
