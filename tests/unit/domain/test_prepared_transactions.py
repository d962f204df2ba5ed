"""Prepared transactions: what an open takes, what keeps it from taking it twice or too late, and what is discarded."""

import pytest
from support.stream_log import STREAM
from support.txn_log import LEASE_MS, TxnLog

from sluice.domain.decision import Context, Decision
from sluice.domain.model import JournalEntry
from sluice.domain.stream.commands import SealStream
from sluice.domain.transaction import events as ev
from sluice.domain.transaction import index as index_module
from sluice.domain.transaction.commands import OpenTransaction
from sluice.domain.transaction.decide import Limits, decide_open
from sluice.domain.transaction.prepared import decide_prepared, decide_reserve, find_range, finish_discard
from sluice.domain.transaction.state import Transaction
from sluice.domain.transaction_ids import epoch_of, first_of_range, ids_of_range, transaction_id
from sluice.domain.workflow import WorkflowKind
from sluice.engine.fold import GuardedReader, Outcome
from sluice.engine.record import Entry, Record

LIMITS = Limits(open=1000, waiting_commits=1000)
OPEN = OpenTransaction(*STREAM, lease_ms=LEASE_MS)


def opened(log: TxnLog, request: str) -> str:
    """The id of one that is opened and ready at once."""
    reply = log.ask_open(request)
    assert reply is not None and reply.status == "OK"
    return reply.transaction


def entry_of(log: TxnLog, in_hand: frozenset[str] = frozenset()) -> tuple[JournalEntry, str]:
    """What an open comes to that is decided now and not appended yet, and the id that it takes."""
    reader = GuardedReader(log.view)
    decision = decide_open(reader, OPEN, Context(log.now, "late"), LIMITS, in_hand)
    for event in decision.events:
        reader.get(event.aggregate)
    return Entry(reader.seen, decision.events, "late", decision.reply), decision.events[0].transaction


def outcome_of(log: TxnLog, entry: JournalEntry) -> Outcome:
    [outcome] = log.view.fold(Record("late", 0, "test", (entry,)), log.view.next_offset, 0)
    return outcome


def test_an_open_of_a_prepared_one_is_ready_with_its_reply_in_one_entry() -> None:
    log = TxnLog()
    first = log.prepare(2)
    reply = log.ask_open("t")
    assert reply is not None and (reply.status, reply.transaction) == ("OK", first.transaction)
    assert [(s.id, s.low, s.high) for s in reply.segments] == [(0, 0.0, 0.5), (1, 0.5, 1.0)]
    found = log.transaction(first.transaction)
    assert isinstance(found, Transaction) and found.ready and found.workflow is None
    assert found.lease_ends_at == log.now + LEASE_MS, "the lease begins with the open"
    assert list(log.index_of_all.open) == [first.transaction] and len(log.index_of_all.prepared) == 1


def test_one_that_no_client_has_is_no_transaction_to_any_of_them() -> None:
    log = TxnLog(limits=Limits(open=1, waiting_commits=1))
    id = log.prepare(3).transaction
    assert (log.ping(id).status, log.commit(id).status, log.abort(id).reply.status) == ("UNKNOWN", "FAILURE", "FAILURE")
    assert log.index_of_all.live == 0 and not list(log.index_of_all.ended())
    assert opened(log, "t") == id, "none of them counts as open"
    refused = log.ask_open("u")
    assert refused is not None and refused.status == "TOO_MANY_OPEN"


def test_opens_that_are_decided_side_by_side_take_different_ids_and_do_not_compete() -> None:
    log = TxnLog()
    log.prepare(2)
    one, first = entry_of(log)
    other, second = entry_of(log, frozenset({first}))
    assert first != second
    assert [outcome_of(log, entry) for entry in (other, one)] == [Outcome.COUNTED] * 2


def test_an_open_that_finds_none_which_is_not_in_hand_opens_a_new_one() -> None:
    log = TxnLog()
    first = log.prepare(1).transaction
    assert entry_of(log, frozenset({first}))[1] == transaction_id(0, "late")
    assert opened(log, "t") == first
    assert log.ask_open("u") is None, "its segments have yet to be created"


def test_an_open_of_an_id_that_another_open_has_taken_is_void_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "MAX_KEPT", 1)
    log = TxnLog()
    taken = log.prepare(2).transaction
    late, id = entry_of(log)
    assert id == taken == opened(log, "t")
    assert outcome_of(log, late) is Outcome.STALE
    log.abort(taken)
    log.finish_abort(taken)
    for request in ("u", "v", "w"):
        log.finish_abort(_aborting(log, request))
    assert log.transaction(taken) is None, "its end is forgotten"
    assert outcome_of(log, late) is Outcome.STALE


def _aborting(log: TxnLog, request: str) -> str:
    reply = log.ask_open(request)
    id = reply.transaction if reply is not None else transaction_id(0, request)
    log.abort(id)
    return id


def test_an_open_of_an_id_that_was_discarded_is_void() -> None:
    log = TxnLog()
    first = log.prepare(2)
    late, _ = entry_of(log)
    log.discard(first)
    assert outcome_of(log, late) is Outcome.STALE
    log.apply(finish_discard(log, first))
    assert outcome_of(log, late) is Outcome.STALE


def test_a_scale_makes_what_is_prepared_unopenable_and_a_roll_does_not() -> None:
    log = TxnLog()
    early = log.open("early")
    before = log.prepare(1, "before")
    late, _ = entry_of(log)
    log.split(1)
    assert outcome_of(log, late) is Outcome.STALE
    assert log.ask_open("t") is None, "none of this epoch is prepared"
    after = log.prepare(1, "after")
    log.commit(early)
    log.record_rolled()
    log.end_roll()
    assert log.stream.active > epoch_of(after.transaction) == log.stream.active_epoch.reference
    assert opened(log, "u") == after.transaction
    assert log.discard(before).events


@pytest.mark.parametrize("change", ["scale", "seal"])
def test_a_range_that_is_of_no_use_when_its_segments_exist_is_discarded(change: str) -> None:
    log = TxnLog()
    first = log.reserve(2)
    if change == "scale":
        log.split(1)
    else:
        log.decide(SealStream(*STREAM))
    decision = log.apply(decide_prepared(log, first, log.now))
    assert [type(event) for event in decision.events] == [ev.TransactionRangeDiscarded]
    assert log.index_of_all.prepared == {}


def test_nothing_is_reserved_while_the_stream_is_about_to_change() -> None:
    log = TxnLog()
    log.start_split()
    assert decide_reserve(log, STREAM, "token", 4, log.now) == Decision()


def test_a_range_that_is_discarded_while_it_is_created_is_never_prepared() -> None:
    log = TxnLog()
    first = log.reserve(2)
    late = decide_prepared(log, first, log.now)
    expect = {first.range: log.version(first.range)}
    [discarded] = log.discard(first).events
    assert discarded.transactions == tuple(ids_of_range(first.transaction, 2))
    assert decide_prepared(log, first, log.now) == log.discard(first) == Decision()
    log.apply(finish_discard(log, first))
    assert find_range(log, first) is None and log.index_of_all.ranges == {}
    assert outcome_of(log, Entry(expect, late.events)) is Outcome.STALE
    assert decide_prepared(log, first, log.now) == finish_discard(log, first) == Decision()


def test_what_is_not_opened_of_a_range_is_discarded_by_events_that_touch_each_id() -> None:
    log = TxnLog()
    first = log.prepare(3)
    log.ask_open("t")
    decision = log.discard(first)
    unused = ids_of_range(first.transaction, 3)[1:]
    assert [e.transaction for e in decision.events if isinstance(e, ev.TransactionDiscarded)] == unused
    found = find_range(log, first)
    assert found is not None and found.discarded == tuple(unused)
    assert found.workflow is not None and found.workflow.kind is WorkflowKind.DISCARD_TRANSACTIONS
    assert log.index_of_all.prepared == {} and log.index_of_all.ranges, "a deletion of the stream waits for this"
    log.apply(finish_discard(log, first))
    assert log.index_of_all.ranges == {}
    assert not [name for name, _ in log.view.aggregates() if name.startswith("prepared:")]


def test_a_range_is_forgotten_when_its_last_transaction_is_opened() -> None:
    log = TxnLog()
    first = log.prepare(2)
    log.ask_open("t")
    assert find_range(log, first) is not None
    log.ask_open("u")
    assert find_range(log, first) is None and log.version(first.range) == 0 and log.index_of_all.ranges == {}
    assert log.discard(first) == decide_prepared(log, first, log.now) == Decision()


@pytest.mark.parametrize("count", [0, 257])
def test_a_range_has_so_many_ids_that_they_differ_in_two_digits(count: int) -> None:
    assert len(set(ids_of_range(first_of_range(3, "token"), 256))) == 256
    with pytest.raises(ValueError, match="1 to 256"):
        ids_of_range(first_of_range(3, "token"), count)
