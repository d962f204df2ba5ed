"""The index of a stream's transactions: what it forgets, when, and what goes with that."""

from collections.abc import Iterator

import pytest
from support.domain_log import Log
from support.stream_log import STREAM
from support.txn_log import TxnLog, ids_of_ended

from sluice.domain.events import Event
from sluice.domain.ids import StreamId
from sluice.domain.model import JournalRecord
from sluice.domain.scope.events import ScopeCreated
from sluice.domain.stream.events import StreamDeleted
from sluice.domain.transaction import index as module
from sluice.domain.transaction.commands import AbortReason
from sluice.domain.transaction.events import TransactionAborted, TransactionAborting, TransactionOpened
from sluice.domain.transaction.index import KEPT_MS, NOTHING, transactions_of
from sluice.domain.transaction_ids import transaction_id
from sluice.engine.fold import FORGET_EVERY_MS, GuardedReader, Outcome
from sluice.engine.record import Entry, Record


class Ends(Log):
    """Transactions that end one after the other, at times of their own."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = iter(range(100_000))

    def one(self, at: int, stream: str = STREAM.name) -> str:
        id = transaction_id(0, f"r{next(self._numbers)}")
        for event in _life(id, at, stream):
            self.fold(event)
        return id

    def ended(self) -> list[str]:
        return ids_of_ended(transactions_of(self, STREAM))

    def is_known(self, id: str) -> bool:
        return self.get(STREAM.transaction(id).aggregate) is not None


def _life(id: str, at: int, stream: str) -> Iterator[Event]:
    yield TransactionOpened("sc", stream, id, lease_ms=10_000, at=at, dies_at=10**15)
    yield TransactionAborting("sc", stream, id, reason=AbortReason.USER, at=at)
    yield TransactionAborted("sc", stream, id, at=at)


def test_the_empty_index_that_all_share_is_never_written_to() -> None:
    ends = Ends()
    assert transactions_of(ends, STREAM) is NOTHING
    assert (NOTHING.live, list(NOTHING.ended())) == (0, [])
    ends.one(5)
    TxnLog().open("a")
    assert type(NOTHING)() == NOTHING


def test_they_are_remembered_for_a_day_and_forgotten_after_two() -> None:
    ends = Ends()
    start = 1_700_000_000_000
    first = ends.one(start)
    second = ends.one(start + KEPT_MS - 1)
    third = ends.one(start + KEPT_MS)
    assert ends.ended() == [third, second, first]
    fourth = ends.one(start + 2 * KEPT_MS - 1)
    assert ends.is_known(first) and ends.is_known(second), "second ended a day ago"
    fifth = ends.one(start + 2 * KEPT_MS)
    assert ends.ended() == [fifth, fourth, third]
    assert not ends.is_known(first) and not ends.is_known(second)


def test_no_more_are_remembered_than_twice_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEPT", 3)
    ends = Ends()
    ids = []
    for i in range(20):
        ids.append(ends.one(1000 + i))
        kept = ends.ended()
        assert kept == ids[::-1][: len(kept)], "the last ones, without a gap"
        assert min(len(ids), 3) <= len(kept) <= 6
        assert [id for id in ids if ends.is_known(id)] == kept[::-1]


def test_what_is_forgotten_goes_with_its_aggregate_and_its_version() -> None:
    ends = Ends()
    gone = ends.one(1_000_000_000_000)
    aggregate = STREAM.transaction(gone).aggregate
    assert ends.version(aggregate) == 3
    before = GuardedReader(ends.view)
    before.get(aggregate)
    ends.one(1_000_000_000_000 + KEPT_MS)
    ends.one(1_000_000_000_000 + 2 * KEPT_MS)
    assert (ends.get(aggregate), ends.version(aggregate)) == (None, 0)
    assert aggregate not in dict(ends.view.aggregates())
    late: JournalRecord = Record("late", 0, "t", (Entry(before.seen),))
    assert ends.view.fold(late, ends.view.next_offset, 0) == [Outcome.STALE], "who saw it then decides nothing now"


def test_streams_forget_each_for_itself() -> None:
    ends = Ends()
    mine = ends.one(1_000_000_000_000)
    for day in range(4):
        ends.one(1_000_000_000_000 + day * KEPT_MS, stream="other")
    assert ends.is_known(mine) and ends.ended() == [mine]
    assert len(ids_of_ended(transactions_of(ends, StreamId("sc", "other")))) == 2


def test_a_stream_created_anew_lists_only_its_own_and_the_others_are_remembered() -> None:
    ends = Ends()
    start = 1_700_000_000_000
    old = [ends.one(start), ends.one(start + KEPT_MS)]
    ends.fold(StreamDeleted(*STREAM, next_number=1))
    assert ends.ended() == [] and all(map(ends.is_known, old))
    own = [ends.one(start + KEPT_MS + i) for i in range(2)]
    assert ends.ended() == own[::-1] and all(map(ends.is_known, old))
    latest = ends.one(start + 2 * KEPT_MS)
    assert ends.ended() == [latest, *own[::-1]], "the first of the deleted stream is forgotten"
    ends.fold(StreamDeleted(*STREAM, next_number=2))
    assert ends.ended() == [] and ends.is_known(latest)


def test_an_idle_stream_forgets_as_the_time_of_its_partition_goes_by() -> None:
    ends = Ends()
    start = 1_700_000_000_000
    ids = [ends.one(start + i) for i in range(3)]
    open_still = transaction_id(0, "open")
    ends.fold(TransactionOpened(*STREAM, open_still, lease_ms=1, at=start, dies_at=10**15))

    def goes_by(ms: int) -> None:
        for turn in range(10):
            ends.fold(ScopeCreated(scope=f"s{ms}-{turn}", creation_id="c", at=1), timestamp_ms=start + ms)

    goes_by(KEPT_MS - 1)
    goes_by(KEPT_MS + FORGET_EVERY_MS)
    assert ends.ended() == ids[::-1], "the last one ended a day ago"
    goes_by(2 * KEPT_MS + FORGET_EVERY_MS - 1)
    assert ends.ended() == ids[::-1]
    goes_by(2 * KEPT_MS + 2 * FORGET_EVERY_MS)
    assert ends.ended() == [] and not any(map(ends.is_known, ids))
    assert list(transactions_of(ends, STREAM).open) == [open_still]
    for ending in list(_life(open_still, start + 2 * KEPT_MS, STREAM.name))[1:]:
        ends.fold(ending)
    for days in (4, 5, 6):
        goes_by(days * KEPT_MS)
        goes_by(days * KEPT_MS + 2 * FORGET_EVERY_MS)
    assert STREAM.transactions not in dict(ends.view.projections()), "nothing is left of it"


def test_a_record_of_several_ends_forgets_and_remembers_alike() -> None:
    ends = Ends()
    start = 1_000_000_000_000
    old = ends.one(start)
    ends.one(start + KEPT_MS)
    ids = [transaction_id(0, f"batch-{i}") for i in range(3)]
    for id in ids:
        for event in list(_life(id, start, STREAM.name))[:2]:
            ends.fold(event)
    at = start + 2 * KEPT_MS
    ends.fold(*(TransactionAborted(*STREAM, id, at=at) for id in ids))
    assert not ends.is_known(old)
    assert ends.ended()[:3] == ids[::-1]
    assert all(ends.is_known(id) for id in ids)
