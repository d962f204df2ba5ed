"""Batches of commits: their order and bounds, what they say of writers' times, and how they exclude workflows."""

from collections.abc import Callable

import pytest
from support.stream_log import STREAM
from support.txn_log import TxnLog, worked_example

from sluice.domain.commands import Command
from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.errors import BusyError
from sluice.domain.ids import StreamId
from sluice.domain.model import JournalRecord
from sluice.domain.registry import DECIDE
from sluice.domain.segment import segment_id
from sluice.domain.stream import decide as stream_decide
from sluice.domain.stream.commands import DeleteStream, NoteWriterTime, ScaleStream, SealStream, UpdateStream
from sluice.domain.stream.events import StreamEpochsRolled, WorkflowQueued, WriterTimeNoted
from sluice.domain.stream.state import YIELD_MS
from sluice.domain.transaction import batch, stream_deletion
from sluice.domain.transaction.batch import CommitBatch, Merged, why_not_now
from sluice.domain.transaction.commands import OpenTransaction
from sluice.domain.transaction.decide import decide_open
from sluice.domain.transaction.events import (
    CommitBatchEnded,
    CommitBatchStarted,
    EmptySegmentsDeleted,
    TransactionOpened,
)
from sluice.domain.transaction.state import NO_TIME, TransactionState
from sluice.domain.transaction_ids import transaction_id
from sluice.domain.workflow import WorkflowKind
from sluice.engine.fold import GuardedReader, Outcome
from sluice.engine.record import Entry

COMMITTED = TransactionState.COMMITTED


def merging() -> TxnLog:
    """A batch of one transaction runs."""
    log = TxnLog()
    log.commit(log.open("a"))
    return log


def why_not(log: TxnLog) -> str | None:
    return why_not_now(log, STREAM, log.now)


# Which transactions, in which order.


def test_two_batches_that_began_in_one_moment_are_told_apart() -> None:
    one, other = (CommitBatch(WorkflowKind.COMMIT_TRANSACTIONS, None, 5, transactions=(t,)) for t in "ab")
    assert one.id != other.id


def test_without_a_stream_or_anything_that_waits_there_is_no_batch() -> None:
    log = TxnLog()
    log.open("a")
    assert log.begin() == Decision() and log.commits is None
    assert batch.begin_batch(log, StreamId("sc", "none"), log.context(), 9) == Decision()
    assert why_not_now(log, StreamId("sc", "none"), 0) is None


def test_a_batch_is_bounded_and_the_next_one_begins_in_the_record_that_ends_it() -> None:
    log = TxnLog(most=2)
    ids = log.waiting(*"abcde")
    log.begin()
    seen = []
    while (commits := log.commits) is not None and commits.workflow is not None:
        seen.append(commits.workflow.transactions)
        events = log.end().events
        started = [e for e in events if isinstance(e, CommitBatchStarted)]
        assert len(started) == (1 if len(seen) < 3 else 0)
        assert [type(e) for e in events][-2:].count(CommitBatchEnded) == 1, "ended before the next one starts"
    assert seen == [tuple(ids[0:2]), tuple(ids[2:4]), tuple(ids[4:5])]
    assert commits is not None and commits.batches == 3
    assert all(log.state(id) is COMMITTED for id in ids)


def sizes_of_batches(log: TxnLog) -> list[int]:
    """See all batches through; none may end in a record that has more than the most positions."""
    sizes = []
    log.begin()
    while (commits := log.commits) is not None and commits.workflow is not None:
        transactions = commits.workflow.transactions
        sizes.append(len(transactions))
        positions = {id: dict.fromkeys(log.stream.active_epoch.segments, 1) for id in transactions}
        recorded = [e for e in log.end(positions).events if isinstance(e, WriterTimeNoted)]
        assert len(recorded) <= 1 or sum(len(e.position) for e in recorded) <= batch.MAX_POSITIONS
    return sizes


def test_a_batch_is_bounded_by_the_positions_that_the_record_which_ends_it_can_have() -> None:
    segments = 5000
    assert batch.MAX_POSITIONS // segments == 30
    log = TxnLog(segments=segments)
    for number in range(70):
        log.queue(log.open(f"{number}"), writer=f"w{number}")
    assert sizes_of_batches(log) == [30, 30, 10]
    for number in range(70):
        log.queue(log.open(f"again-{number}"), writer=f"w{number % 3}")
    assert sizes_of_batches(log) == [30, 30, 10], "whoever their writers are"


def test_a_batch_has_one_transaction_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MAX_POSITIONS", 1)
    log = TxnLog()
    for number in range(3):
        log.queue(log.open(f"{number}"), writer=f"w{number}")
    assert sizes_of_batches(log) == [1, 1, 1]


def test_a_batch_never_mixes_epochs_and_keeps_the_order_of_commits() -> None:
    log, early = worked_example()
    late, later = log.open("late"), log.open("later")
    other = transaction_id(0, "early-too")
    log.fold(TransactionOpened(*STREAM, transaction=other, lease_ms=10_000, at=1, dies_at=10**15))
    for id in (late, early, other, later):
        log.queue(id)
    log.begin()
    assert (log.batch.transactions, log.batch.kind) == ((late,), WorkflowKind.COMMIT_TRANSACTIONS)
    log.end()
    assert (log.batch.transactions, log.batch.kind) == ((early, other), WorkflowKind.ROLL_TRANSACTIONS)
    log.record_rolled()
    assert not any(isinstance(e, CommitBatchStarted) for e in log.end_roll().events)
    log.begin()
    assert (log.batch.transactions, log.batch.kind) == ((later,), WorkflowKind.COMMIT_TRANSACTIONS)


def test_a_batch_ends_once_and_only_as_what_it_is() -> None:
    log = TxnLog()
    assert log.end() == log.end_roll() == log.record_rolled() == Decision()
    log.waiting("a")
    log.begin()
    assert log.record_rolled() == log.end_roll() == Decision()
    assert log.end().events
    assert log.end() == Decision()
    rolling, early = worked_example()
    rolling.commit(early)
    assert rolling.end() == Decision()
    assert rolling.end_roll() == Decision(), "the duplicates are not named yet"


def test_a_batch_is_ended_only_by_the_process_that_merged_it() -> None:
    log = TxnLog(most=1)
    a, b = log.waiting("a", "b")
    log.begin()
    log.end()
    assert log.batch.transactions == (b,)
    assert log.end({a: {0: 1}}) == Decision(), "that was the batch before"
    assert log.end({b: {0: 1}}).events


def test_a_roll_is_recorded_and_ended_only_by_the_process_that_carried_it_out() -> None:
    log = TxnLog()
    a, b = log.open("a"), log.open("b")
    log.split(1)
    log.commit(a)
    replaced = dict.fromkeys(log.stream.active_epoch.segments, 1)
    log.record_rolled()
    log.end_roll(replaced)
    log.commit(b)
    assert log.record_rolled({}, {a: {}}) == Decision()
    log.record_rolled()
    assert log.end_roll(replaced) == log.end_roll({}) == Decision(), "those were sealed by the roll before"
    assert log.end_roll().events and log.state(b) is COMMITTED


def test_a_commit_before_which_none_waits_begins_its_batch_in_the_same_record() -> None:
    log = TxnLog()
    a, b, c = (log.open(request) for request in "abc")
    log.commit(a)
    assert log.batch.transactions == (a,) and log.state(a) is TransactionState.COMMITTING
    log.commit(b)
    log.commit(c)
    assert log.begin() == Decision(), "one batch at a time"
    assert log.batch.transactions == (a,) and log.commits is not None and log.commits.batches == 1
    log.end()
    assert list(log.batch.transactions) == [b, c]


def test_a_commit_is_accepted_while_a_workflow_keeps_its_batch_from_beginning() -> None:
    running, waiting = TxnLog(), TxnLog()
    ids = {log: log.open("a") for log in (running, waiting)}
    running.start_split()
    waiting.fold(WorkflowQueued(*STREAM, kind="ScaleStream", at=waiting.now))
    for log, id in ids.items():
        assert log.commit(id).status == "SUCCESS"
        assert log.commits is None and list(log.index_of_all.committing) == [id]


def test_the_segments_to_merge_into() -> None:
    log, early = worked_example()
    two, three = segment_id(1, 2), segment_id(1, 3)
    assert batch.targets(log.stream, (log.open("late"),), rolls=False) == {0: 0, 2: two, 3: three}
    assert batch.targets(log.stream, (early,), rolls=True) == {0: segment_id(2, 0), 1: segment_id(2, 1)}
    assert batch.next_duplicates(log.stream) == [segment_id(3, 0), segment_id(3, 2), segment_id(3, 3)]


# Writers' times.


def committed_by(log: TxnLog, *commits: tuple[str, str, int]) -> list[str]:
    """Open and commit: request, writer, time."""
    ids = []
    for request, writer, timestamp in commits:
        ids.append(log.open(request))
        log.queue(ids[-1], writer, timestamp)
    log.begin()
    return ids


def times(log: TxnLog) -> dict[str, tuple[int, dict[int, int]]]:
    return {writer: (mark.timestamp, mark.position) for writer, mark in log.stream.writers.items()}


def test_the_latest_time_of_each_named_writer_is_noted_the_first_of_equal_ones() -> None:
    log = TxnLog()
    of_w, of_others = [("a", "w", 5), ("b", "w", 9), ("c", "w", 9), ("d", "w", 7)], [("e", "v", -1), ("f", "", 5)]
    ids = committed_by(log, *of_w, *of_others)
    log.end({id: {0: number, 1: number} for number, id in enumerate(ids)})
    assert times(log) == {"w": (9, {0: 1, 1: 1}), "v": (-1, {0: 4, 1: 4})}


@pytest.mark.parametrize(("writer", "timestamp"), [("w", NO_TIME), ("", 5)], ids=["no time", "no writer"])
def test_a_commit_without_a_writers_time_notes_nothing_and_needs_no_positions(writer: str, timestamp: int) -> None:
    log = TxnLog()
    (id,) = committed_by(log, ("a", writer, timestamp))
    assert not batch.needs_positions(log, STREAM, (id,))
    log.end({id: {0: 7}})
    assert times(log) == {}
    assert log.state(id) is COMMITTED


@pytest.mark.parametrize(("timestamp", "position"), [(4, {0: 9}), (5, {0: 2})], ids=["time", "position"])
def test_a_time_that_would_be_refused_is_left_out_and_the_batch_ends_all_the_same(
    timestamp: int, position: dict[int, int]
) -> None:
    log = TxnLog()
    log.decide(NoteWriterTime(*STREAM, "w", 5, {0: 3}))
    a, b = committed_by(log, ("a", "w", timestamp), ("b", "v", 1))
    log.end({a: position, b: {0: 10}})
    assert times(log) == {"w": (5, {0: 3}), "v": (1, {0: 10})}
    assert log.state(a) is log.state(b) is COMMITTED


def test_a_batch_that_rolls_notes_times_with_the_new_epoch() -> None:
    log, early = worked_example()
    log.commit(early, "w", 3)
    committed = segment_id(2, 0)
    recorded = log.record_rolled({committed: 8}, {early: {committed: 8}})
    assert [type(e) for e in recorded.events] == [StreamEpochsRolled, WriterTimeNoted]
    assert times(log) == {"w": (3, {committed: 8})}


# Turns with workflows.


def test_no_batch_begins_while_a_workflow_runs() -> None:
    log = TxnLog()
    log.waiting("a")
    log.start_split()
    assert why_not(log) == "scale-stream is running"
    assert log.begin() == Decision()


def test_a_stream_that_is_being_sealed_waits_for_its_commits() -> None:
    log = TxnLog(most=1)
    a, b = log.waiting("a", "b")
    log.decide(SealStream(*STREAM))
    assert why_not(log) is None
    log.begin()
    log.end()
    assert log.batch.transactions == (b,)
    log.end()
    assert log.state(a) is log.state(b) is COMMITTED


def test_no_workflow_begins_while_a_batch_runs() -> None:
    log = merging()
    split = ScaleStream(*STREAM, seals=(0,), ranges=((0.0, 0.25), (0.25, 0.5)), at=2000)
    for command in (SealStream(*STREAM), UpdateStream(*STREAM, StreamConfig()), split):
        with pytest.raises(BusyError, match="commit-transactions is running"):
            log.decide(command)


def test_a_workflow_that_waits_goes_before_the_next_batch() -> None:
    log = TxnLog(most=1)
    log.waiting("a", "b")
    log.begin()
    log.note_waiting("ScaleStream")
    assert why_not(log) == "ScaleStream is queued"
    assert not any(isinstance(e, CommitBatchStarted) for e in log.end().events)
    assert log.begin() == Decision()
    assert log.start_split().status == "STARTED"
    assert log.stream.waiting is None, "its turn has come"


def test_commits_wait_for_a_workflow_until_it_no_longer_records_that_it_waits() -> None:
    log = merging()
    log.note_waiting()
    log.waiting("b")
    log.now += YIELD_MS - 1
    log.note_waiting()
    log.end()
    log.now += YIELD_MS - 1
    assert why_not(log) is not None and log.begin() == Decision()
    log.now += 1
    assert why_not(log) is None
    assert log.begin().events


def test_no_workflow_waits_for_commits_that_are_not_running() -> None:
    log = TxnLog()
    log.waiting("a")
    assert log.note_waiting() == Decision() and log.stream.waiting is None
    assert (
        stream_decide.record_queued_behind_batch(log, StreamId("sc", "none"), "ScaleStream", log.context())
        == Decision()
    )


@pytest.mark.parametrize(
    "command",
    [
        ScaleStream(*STREAM, seals=(0,), ranges=((0.0, 0.25), (0.25, 0.5)), at=2000),
        SealStream(*STREAM),
        UpdateStream(*STREAM, StreamConfig()),
        UpdateStream(*STREAM, StreamConfig(scaling=ScalingPolicy(min_segments=2), tags=("t",))),
    ],
    ids=["scale", "seal", "update", "update of tags, without a workflow"],
)
def test_every_beginning_of_a_workflow_ends_the_waiting(command: Command) -> None:
    log = merging()
    log.note_waiting()
    log.end()
    log.decide(command)
    assert log.stream.waiting is None


# Exclusion under the fold rule.


def proposed(log: TxnLog, decide: Callable[[Reader], Decision], id: str) -> JournalRecord:
    """What an instance would append that decides on the present view."""
    reader = GuardedReader(log.view)
    decision = decide(reader)
    assert decision.events
    for event in decision.events:
        reader.get(event.aggregate)
    return JournalRecord(id, log.now, "t", (Entry(reader.seen, decision.events),))


def fold(log: TxnLog, record: JournalRecord) -> Outcome:
    [outcome] = log.view.fold(record, log.view.next_offset, 0)
    return outcome


def a_batch(log: TxnLog) -> JournalRecord:
    return proposed(log, lambda reader: batch.begin_batch(reader, STREAM, log.context(), 9), "batch")


def a_scale(log: TxnLog) -> JournalRecord:
    command = ScaleStream(*STREAM, seals=(0,), ranges=((0.0, 0.25), (0.25, 0.5)), at=2000)
    return proposed(log, lambda reader: DECIDE[ScaleStream](reader, command, Context(2000, "s")), "scale")


def test_of_a_batch_and_a_scale_decided_on_the_same_view_the_first_record_counts() -> None:
    for first, second in ((a_batch, a_scale), (a_scale, a_batch)):
        log = TxnLog()
        log.waiting("a")
        records = first(log), second(log)
        assert [fold(log, record) for record in records] == [Outcome.COUNTED, Outcome.STALE]
        running = [log.stream.workflow, log.commits.workflow if log.commits is not None else None]
        assert sum(workflow is not None for workflow in running) == 1


def test_of_two_batches_decided_on_the_same_view_the_first_record_counts() -> None:
    log = TxnLog()
    log.waiting("a")
    one, other = a_batch(log), a_batch(log)
    assert [fold(log, record) for record in (one, other)] == [Outcome.COUNTED, Outcome.STALE]
    assert log.commits is not None and log.commits.batches == 1


def test_a_batch_that_is_taken_on_and_a_scale_that_waits_exclude_each_other() -> None:
    log = TxnLog(most=1)
    a, _ = log.waiting("a", "b")
    log.begin()
    following = proposed(
        log, lambda reader: batch.end_batch(reader, STREAM, log.context(), Merged({a: {}}), 1), "following"
    )
    waits = proposed(
        log, lambda reader: stream_decide.record_queued_behind_batch(reader, STREAM, "", log.context()), "waits"
    )
    assert fold(log, waits) is Outcome.COUNTED
    assert fold(log, following) is Outcome.STALE, "it would have passed by what waits"
    log.end()
    assert log.commits is not None and log.commits.workflow is None


def test_an_opening_that_was_decided_before_its_stream_is_sealed_does_not_count_after() -> None:
    log = TxnLog()
    command = OpenTransaction(*STREAM, lease_ms=10_000)
    opening = proposed(log, lambda reader: decide_open(reader, command, log.context("t"), log.limits), "open")
    log.decide(SealStream(*STREAM))
    assert fold(log, opening) is Outcome.STALE
    assert log.index_of_all.live == 0


# What is skipped.


def test_what_is_skipped_stands_there_until_it_is_said_to_be_deleted() -> None:
    log = TxnLog(most=1)
    a, b, c = log.waiting("a", "b", "c")
    log.begin()
    log.end({a: {}}, skipped={a: (0, 1)})
    log.end({b: {}}, skipped={b: (1,)})
    assert log.commits is not None and log.commits.skipped == {1: {a: (0, 1)}, 2: {b: (1,)}}
    ended = log.end({c: {}}, deleted=1)
    assert EmptySegmentsDeleted(*STREAM, batch=1) in ended.events and log.commits.skipped == {2: {b: (1,)}}
    assert batch.record_deleted(log, STREAM, 1) == (), "that is known"
    assert batch.record_deleted(log, STREAM, 2)


def test_a_stream_is_deleted_with_what_its_commits_have_skipped() -> None:
    log = TxnLog()
    (a,) = log.waiting("a")
    log.begin()
    log.end(skipped={a: (0,)})
    log.decide(SealStream(*STREAM))
    log.apply(stream_decide.finish_seal(log, STREAM))
    log.decide(DeleteStream(*STREAM))
    log.apply(stream_deletion.finish_delete(log, STREAM))
    assert log.commits is not None and log.commits.skipped == {}


def test_so_many_segments_are_skipped_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MAX_SKIPPED", 3)
    log = TxnLog()
    (a,) = log.waiting("a")
    log.begin()
    assert log.commits is not None and log.commits.may_skip(3) and not log.commits.may_skip(4)
    log.end(skipped={a: (0, 1)})
    assert log.commits.may_skip(1) and not log.commits.may_skip(2)


def test_a_position_is_never_below_the_one_known_of_the_writer() -> None:
    """A store that has lost the container gives the length that the segment had then."""
    log = TxnLog()
    log.decide(NoteWriterTime(*STREAM, writer="w", timestamp=1, position={0: 100, 1: 100}))
    a = log.open("a")
    log.queue(a, writer="w", timestamp=2)
    log.begin()
    log.end({a: {0: 50, 1: 150}})
    assert log.stream.writers["w"].position == {0: 100, 1: 150}
