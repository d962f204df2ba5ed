"""Every decision on one transaction, in every state that it may be in (controller-grpc-api 5.6)."""

from collections.abc import Callable

import pytest
from support.stream_log import STREAM
from support.txn_log import LEASE_MS, REACHED, TxnLog, answered, worked_example

from sluice.domain.config import StreamConfig
from sluice.domain.decision import Decision
from sluice.domain.encoding import encode_state
from sluice.domain.ids import TransactionId
from sluice.domain.restoring.adapt import adapted
from sluice.domain.restoring.events import AggregateRestored
from sluice.domain.segment import segment_id
from sluice.domain.stream import decide as stream_decide
from sluice.domain.stream.commands import CreateStream, SealStream
from sluice.domain.transaction import decide
from sluice.domain.transaction import events as ev
from sluice.domain.transaction.commands import AbortReason, OpenTransaction
from sluice.domain.transaction.decide import Limits
from sluice.domain.transaction.state import (
    LONGEST_CREATION_MS,
    EndedTransaction,
    Transaction,
    TransactionState,
    segment_names,
    segments_to_write,
)
from sluice.domain.transaction_ids import epoch_of, transaction_id
from sluice.domain.workflow import WorkflowKind

STATES = list(REACHED)
MIN_LEASE_MS, MAX_LEASE_MS = Limits().min_lease_ms, Limits().max_lease_ms
DAY_MS = 24 * 3600 * 1000
LONG_LEASES = Limits(min_lease_ms=5_000, max_lease_ms=30 * DAY_MS)


def opened(log: TxnLog, lease_ms: int = LEASE_MS, ready: bool = True) -> Transaction:
    found = log.transaction(log.open("t", lease_ms, ready))
    assert isinstance(found, Transaction)
    return found


@pytest.mark.parametrize(
    ("reached", "state", "ping", "commit", "abort"),
    [
        ("opened", TransactionState.OPEN, "OK", "FAILURE", "SUCCESS"),
        ("ready", TransactionState.OPEN, "OK", "SUCCESS", "SUCCESS"),
        ("committing", TransactionState.COMMITTING, "COMMITTED", "SUCCESS", "FAILURE"),
        ("committed", TransactionState.COMMITTED, "COMMITTED", "SUCCESS", "FAILURE"),
        ("aborting", TransactionState.ABORTING, "ABORTED", "FAILURE", "SUCCESS"),
        ("aborted", TransactionState.ABORTED, "ABORTED", "FAILURE", "SUCCESS"),
        ("unknown", TransactionState.UNKNOWN, "UNKNOWN", "FAILURE", "FAILURE"),
    ],
)
def test_replies_in_each_state(reached: str, state: TransactionState, ping: str, commit: str, abort: str) -> None:
    logs = [TxnLog() for _ in range(3)]
    [id] = {REACHED[reached](log, "t") for log in logs}
    assert {log.state(id) for log in logs} == {state}
    version, is_open = logs[0].version(f"txn:{STREAM}/{id}"), state is TransactionState.OPEN

    pinged = logs[0].ping(id)
    assert pinged.status == ping and bool(pinged.reason) == (ping in ("ABORTED", "UNKNOWN"))

    committed = logs[1].commit(id, "w", 7)
    assert committed.status == commit and bool(committed.reason) == (commit == "FAILURE")
    is_accepted = is_open and commit == "SUCCESS"
    assert logs[1].version(f"txn:{STREAM}/{id}") - version == is_accepted
    if is_accepted:
        found = logs[1].transaction(id)
        assert isinstance(found, Transaction)
        assert (found.state, found.writer, found.timestamp) == (TransactionState.COMMITTING, "w", 7)

    decision = logs[2].abort(id)
    aborted = answered(decision)
    assert aborted.status == abort and bool(aborted.reason) == (abort == "FAILURE")
    assert [type(event) for event in decision.events] == ([ev.TransactionAborting] if is_open else [])
    assert logs[2].state(id) is (TransactionState.ABORTING if is_open else state)


# Opening.


def test_one_that_is_opened_is_answered_only_when_its_segments_exist() -> None:
    log = TxnLog()
    found = opened(log, ready=False)
    assert (found.state, found.ready) == (TransactionState.OPEN, False)
    workflow = found.workflow
    assert workflow is not None and (workflow.kind, workflow.request) == (WorkflowKind.OPEN_TRANSACTION, "t")
    assert found.opened_at == found.last_activity_at == 1000
    assert found.lease_ends_at == 1000 + LEASE_MS + LONGEST_CREATION_MS
    log.now = 1400
    reply = log.ready(found.uuid)
    assert reply is not None and (reply.status, reply.transaction) == ("OK", found.uuid)
    assert [(s.id, s.low, s.high) for s in reply.segments] == [(0, 0.0, 0.5), (1, 0.5, 1.0)]
    assert found.ready and found.workflow is None and found.last_activity_at == 1400
    assert found.lease_ends_at == 1400 + LEASE_MS, "the lease begins when the segments exist"
    assert decide.decide_ready(log, found.id, 1500) == Decision(), "recorded once"


def test_the_opener_of_one_aborted_while_opening_gets_its_reply_with_the_last_record() -> None:
    log = TxnLog()
    opening, opened = log.open("t", ready=False), log.open("u")
    for id in (opening, opened):
        aborting = log.abort(id)
        assert aborting.reply is not None and aborting.reply.status == "SUCCESS"
    reply = log.finish_abort(opening).reply
    assert reply is not None and reply.status == "ENDED" and reply.reason
    assert log.finish_abort(opened).reply is None, "its opener has its reply"


@pytest.mark.parametrize("reached", ["committing", "committed", "aborting", "aborted", "unknown"])
def test_one_that_ended_while_its_segments_were_created_is_not_made_ready(reached: str) -> None:
    log = TxnLog()
    id = STREAM.transaction(REACHED[reached](log, "t"))
    assert decide.decide_ready(log, id, 1500) == Decision()


@pytest.mark.parametrize(
    ("lease_ms", "opens"),
    [
        (MIN_LEASE_MS - 1, False),
        (MIN_LEASE_MS, True),
        (MAX_LEASE_MS, True),
        (MAX_LEASE_MS + 1, False),
        (0, False),
        (-(2**63), False),
        (2**63 - 1, False),
    ],
)
def test_a_lease_has_bounds(lease_ms: int, opens: bool) -> None:
    reply = TxnLog().ask_open("t", lease_ms)
    assert (reply is None) == opens
    bounds = "10000 to 600000 ms (SLUICE_MIN_LEASE_S, SLUICE_MAX_LEASE_S)"
    assert reply is None or reply.status == "LEASE_OUT_OF_BOUNDS"
    assert reply is None or reply.reason == f"a lease lasts {bounds}, not {lease_ms}"


@pytest.mark.parametrize(("lease_ms", "opens"), [(4_999, False), (5_000, True), (30 * DAY_MS, True)])
def test_the_bounds_of_a_lease_are_those_that_are_set(lease_ms: int, opens: bool) -> None:
    log = TxnLog(limits=LONG_LEASES)
    assert (log.ask_open("t", lease_ms) is None) == opens
    assert log.ping(log.open("other", 5_000), 30 * DAY_MS + 1).status == "LEASE_TOO_LARGE"


def test_none_is_opened_while_the_stream_is_being_restored() -> None:
    log = TxnLog()
    log.fold(AggregateRestored(STREAM.aggregate, encode_state(adapted(log.stream, (64,), 1, ()))))
    refused = log.ask_open("a")
    assert refused is not None and refused.status == "TOO_MANY_OPEN" and "is being restored" in refused.reason


def test_no_more_than_the_limit_may_be_open() -> None:
    log = TxnLog(limits=Limits(open=2, waiting_commits=9))
    first = log.open("a")
    log.open("b")
    refused = log.ask_open("c")
    assert refused is not None and refused.status == "TOO_MANY_OPEN" and "2" in refused.reason
    log.commit(first)
    assert log.ask_open("c") is None


def test_a_transaction_that_is_being_aborted_leaves_no_room_for_another() -> None:
    log = TxnLog(limits=Limits(open=2, waiting_commits=9))
    first = log.open("a")
    log.open("b")
    log.abort(first)
    refused = log.ask_open("c")
    assert refused is not None and refused.status == "TOO_MANY_OPEN" and "aborted" in refused.reason
    log.finish_abort(first)
    assert log.ask_open("c") is None


def test_a_stream_that_is_not_there_yet_has_no_transactions() -> None:
    log = TxnLog()
    command = OpenTransaction("sc", "other", lease_ms=LEASE_MS)
    assert answered(decide.decide_open(log, command, log.context("t"), log.limits)).status == "STREAM_NOT_FOUND"
    log.decide(CreateStream("sc", "other", StreamConfig()), request="r2")
    assert answered(decide.decide_open(log, command, log.context("t"), log.limits)).status == "STREAM_NOT_FOUND"
    assert decide.decide_ready(log, TransactionId("sc", "none", transaction_id(0, "t")), 1) == Decision()


def test_a_stream_that_is_being_sealed_opens_no_more() -> None:
    log = TxnLog()
    log.decide(SealStream(*STREAM))
    replies = [log.ask_open("t"), log.ask_open("t", 1)]
    log.apply(stream_decide.finish_seal(log, STREAM))
    statuses = [reply.status for reply in (*replies, log.ask_open("t")) if reply is not None]
    assert statuses == ["STREAM_SEALED", "LEASE_OUT_OF_BOUNDS", "STREAM_SEALED"], "the lease is judged first"


def test_the_segments_to_write_are_generalized_and_in_the_order_of_keys() -> None:
    log, early = worked_example()
    late = log.open("late")
    assert epoch_of(late) == 1
    written = segments_to_write(log.stream, late)
    assert [s.id for s in written] == [segment_id(1, 0), segment_id(1, 2), segment_id(1, 3)]
    assert [(s.low, s.high) for s in written] == [(0.0, 0.5), (0.5, 0.75), (0.75, 1.0)]
    assert [s.id for s in segments_to_write(log.stream, early)] == [0, 1]
    assert list(segment_names(log.stream, late)) == [0, 2, 3]
    assert all(".#epoch.1#transaction.00000001" in name for name in segment_names(log.stream, late).values())
    assert segment_names(log.stream, transaction_id(9, "elsewhere")) == {}


# Pinging.


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (AbortReason.USER, "its client requested it"),
        (AbortReason.LEASE, "its lease ran out"),
        (AbortReason.SEAL, "its stream was sealed"),
    ],
)
def test_the_reply_to_a_ping_that_is_too_late_says_why(reason: AbortReason, said: str) -> None:
    log = TxnLog()
    id = log.open("t")
    log.abort(id, reason)
    assert log.ping(id).reason == f"the transaction is ABORTING: {said}"
    log.finish_abort(id)
    assert log.ping(id).reason == f"the transaction is ABORTED: {said}"
    assert log.transaction(id) == EndedTransaction(id, TransactionState.ABORTED, 1000, reason)


def test_a_ping_renews_the_lease_from_when_it_is_decided() -> None:
    log = TxnLog()
    found = opened(log)
    log.now = 3000
    assert log.ping(found.uuid, 20_000, appended_at=2500).status == "OK"
    assert (found.last_activity_at, found.lease_ms, found.lease_ends_at) == (3000, 20_000, 23_000)


def test_a_ping_decided_by_a_clock_that_is_behind_counts_and_takes_nothing_back() -> None:
    log = TxnLog()
    found = opened(log)
    log.now = 900
    assert log.ping(found.uuid, 600_000).status == "OK"
    assert (found.last_activity_at, found.lease_ms) == (1000, 600_000)
    log.fold(ev.TransactionPinged(*STREAM, found.uuid, lease_ms=LEASE_MS, at=900))
    assert (found.last_activity_at, found.lease_ms) == (1000, 600_000), "as earlier releases have decided it"


@pytest.mark.parametrize(("lease_ms", "status"), [(MAX_LEASE_MS, "OK"), (MAX_LEASE_MS + 1, "LEASE_TOO_LARGE")])
def test_a_ping_has_an_upper_bound(lease_ms: int, status: str) -> None:
    log = TxnLog()
    assert log.ping(log.open("t", 600_000), lease_ms).status == status
    assert "SLUICE_MAX_LEASE_S" in log.ping(log.open("other", 600_000), MAX_LEASE_MS + 1).reason


@pytest.mark.parametrize("lease_ms", [0, 1, -5, -(2**63)])
def test_a_ping_has_no_lower_bound(lease_ms: int) -> None:
    log = TxnLog()
    found = opened(log)
    assert log.ping(found.uuid, lease_ms).status == "OK"
    assert found.lease_ends_at == 1000 + lease_ms


def test_no_ping_makes_it_live_longer_than_its_first_lease_allows() -> None:
    log = TxnLog()
    found = opened(log)
    dies_at = 1000 + 1000 * LEASE_MS
    assert found.dies_at == dies_at
    log.now = dies_at
    assert log.ping(found.uuid, appended_at=dies_at - LEASE_MS).status == "OK", "what counts is when it was appended"
    refused = log.ping(found.uuid, appended_at=dies_at - LEASE_MS + 1)
    assert refused.status == "MAX_EXECUTION_TIME_EXCEEDED" and str(1000 * LEASE_MS) in refused.reason
    assert found.state is TransactionState.OPEN, "it dies when its lease runs out"


@pytest.mark.parametrize(
    ("lease_ms", "limits", "life_ms"),
    [
        (MAX_LEASE_MS, Limits(), DAY_MS),
        (MAX_LEASE_MS, Limits(max_life_ms=3 * DAY_MS), 3 * DAY_MS),
        (30 * DAY_MS, LONG_LEASES, 30 * DAY_MS),
    ],
)
def test_a_life_is_as_long_as_is_set_and_never_shorter_than_the_first_lease(
    lease_ms: int, limits: Limits, life_ms: int
) -> None:
    assert opened(TxnLog(limits=limits), lease_ms).dies_at == 1000 + life_ms


# Committing and aborting.


def test_a_commit_that_is_requested_twice_keeps_its_position_and_its_time() -> None:
    log = TxnLog()
    first, second = log.waiting("a", "b")
    assert log.commit(first, "other", 99).status == "SUCCESS"
    assert list(log.index_of_all.committing) == [first, second]
    found = log.transaction(first)
    assert isinstance(found, Transaction)
    assert (found.writer, found.timestamp) == ("", 0)


def test_no_more_than_the_limit_may_wait_for_their_commit() -> None:
    log = TxnLog(limits=Limits(open=9, waiting_commits=2))
    first, _ = log.waiting("a", "b")
    third = log.open("c")
    refused = log.commit(third)
    assert refused.status == "TOO_MANY_WAITING" and "2" in refused.reason
    assert log.state(third) is TransactionState.OPEN
    assert log.commit(first).status == "SUCCESS", "what waits already is accepted"
    log.begin()
    log.finish_batch()
    assert log.commit(third).status == "SUCCESS"


def test_an_abort_of_what_was_aborted_otherwise_keeps_the_first_reason() -> None:
    log = TxnLog()
    id = log.open("t")
    log.abort(id, AbortReason.LEASE)
    log.abort(id, AbortReason.USER)
    found = log.transaction(id)
    assert isinstance(found, Transaction) and found.reason is AbortReason.LEASE


@pytest.mark.parametrize("act", [TxnLog.ping, TxnLog.commit, TxnLog.abort], ids=["ping", "commit", "abort"])
def test_an_abort_counts_only_with_the_version_that_it_was_decided_on(act: Callable[[TxnLog, str], object]) -> None:
    log = TxnLog()
    id, other = log.open("t"), log.open("u")
    seen = log.version(f"txn:{STREAM}/{id}")
    act(log, id)
    before = log.state(id)
    assert log.abort(id, AbortReason.LEASE, seen) == Decision()
    assert log.state(id) is before
    assert answered(log.abort(other, AbortReason.LEASE, seen)).status == "SUCCESS"
    assert log.state(other) is TransactionState.ABORTING


@pytest.mark.parametrize("reached", STATES)
def test_only_what_is_being_aborted_can_have_been(reached: str) -> None:
    log = TxnLog()
    ended = [ev.TransactionAborted] if reached == "aborting" else []
    assert [type(event) for event in log.finish_abort(REACHED[reached](log, "t")).events] == ended
