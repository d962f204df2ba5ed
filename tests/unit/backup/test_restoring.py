"""A back-up brought back: the states go on, in any number of partitions, and no number is given out twice."""

from pathlib import Path
from typing import Any

import pytest
from support.backups import NOW, Restored, back_up
from support.stream_log import STREAM
from support.txn_log import TxnLog, ids_of_ended

from sluice.backup import restoring
from sluice.backup.files import read_manifest
from sluice.backup.restoring import restoration
from sluice.backup.states import read_states
from sluice.catalog import examples
from sluice.domain.commands import Command
from sluice.domain.config import GroupRetention, ReaderGroupConfig, StreamConfig, TableConfig
from sluice.domain.decision import Context, Decision
from sluice.domain.ids import GroupId, ResourceKind, StreamId, TableId
from sluice.domain.listings import members_of
from sluice.domain.model import DomainModel, JournalEntry, JournalRecord, decode_record
from sluice.domain.names import key_of, scope_aggregate
from sluice.domain.reader_group.events import ReaderGroupCreated, ReaderGroupCreationStarted
from sluice.domain.registry import decide
from sluice.domain.restoring.base import BaseUnfitError
from sluice.domain.scope.commands import DeleteScope
from sluice.domain.scope.index import scopes_of
from sluice.domain.segment import epoch_of, number_of
from sluice.domain.stream import scale
from sluice.domain.stream.commands import CreateStream
from sluice.domain.stream.decide import finish_create
from sluice.domain.stream.events import (
    StreamDeleted,
    StreamEpochAdded,
    StreamRestored,
    StreamScaled,
    StreamScaleStarted,
    SubscriberAdded,
)
from sluice.domain.stream.restore import bases_of, finish_restore
from sluice.domain.stream.state import Stream, StreamState, find_stream
from sluice.domain.table.commands import CreateTable
from sluice.domain.table.decide import finish_create as finish_create_table
from sluice.domain.table.state import Table, TableState, find_table
from sluice.domain.transaction import batch
from sluice.domain.transaction.index import StreamTransactions, transactions_of
from sluice.domain.transaction.prepared import PreparedRange
from sluice.domain.transaction.state import Transaction
from sluice.domain.workflow import CancelWorkflow, WorkflowKind, running
from sluice.engine.fold import GuardedReader, PartitionView
from sluice.engine.partition import partition_of

MODEL = DomainModel()
PARTITIONS = 4
HISTORY = [decode_record(example.value) for example in examples.journal_records()]
KEYS = [example.key for example in examples.journal_records()]

LEFT_BEHIND = (b"p", b"L")
"""Prepared transactions; the cluster, which is what members and ZooKeeper say of it."""
UNCHANGED = (b"O", b"G", b"k", b"s", b"t")
"""The letters of states that a restore leaves as they are: scopes, groups, what is deleted or has ended."""


def views_at(point: int) -> list[PartitionView]:
    """What is folded of the catalog's records up to this one."""
    views = [PartitionView(MODEL) for _ in range(PARTITIONS)]
    for key, record in zip(KEYS[: point + 1], HISTORY, strict=False):
        view = views[partition_of(key, PARTITIONS)]
        view.fold(record, view.next_offset, record.at)
    return views


def encoded(views: list[PartitionView]) -> dict[str, bytes]:
    found = {name: MODEL.encode_state(state) for view in views for name, state in view.aggregates()}
    for view in views:
        for name, index in view.projections():
            for ended in (*index.older, *index.newest) if isinstance(index, StreamTransactions) else ():
                found[StreamId.of(name).transaction(ended.uuid).aggregate] = MODEL.encode_state(ended)
    return {name: value for name, value in found.items() if not name.startswith("fences:")}


def at_rest(value: bytes) -> Stream | Table:
    """A stream or table without what a restore changes."""
    state = MODEL.decode_state(value)
    if isinstance(state, Table):
        state.workflow = None
        return state
    assert isinstance(state, Stream)
    state.state, state.workflow, state.waiting, state.spare = StreamState.ACTIVE, None, None, ()
    return state


@pytest.mark.parametrize(
    ("partitions", "record_bytes"),
    [(1, restoring.RECORD_BYTES), (PARTITIONS, 20), (2 * PARTITIONS, restoring.RECORD_BYTES)],
)
def test_what_a_back_up_of_any_moment_knew_goes_on_in_any_partitions_and_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int, record_bytes: int
) -> None:
    monkeypatch.setattr(restoring, "RECORD_BYTES", record_bytes)
    for point in range(len(HISTORY)):
        views = views_at(point)
        before, target = encoded(views), back_up(tmp_path / str(point), views)
        restored = Restored(target, partitions)
        after = encoded(restored.views)
        brought = after.keys() - before.keys()
        assert len(brought) == len(restored.repairs) and brought <= {scope_aggregate("_system")}
        assert after.keys() - brought == {name for name, value in before.items() if value[:1] not in LEFT_BEHIND}, point
        for name, value in after.items():
            if name in brought:
                continue
            assert restored.view(key_of(name)).get(name) is not None, (point, name)
            if value[:1] in UNCHANGED:
                assert value == before[name], (point, name)
            if value[:1] in (b"S", b"K"):
                assert at_rest(value) == at_rest(before[name]), (point, name)
        listed = lists(restored.views)
        assert {scope: listed[scope] for scope in listed if scope_aggregate(scope) not in brought} == lists(views)


def lists(views: list[PartitionView]) -> dict[str, dict[ResourceKind, list[str]]]:
    scopes = sorted(name for view in views for name in scopes_of(view).names)
    return {
        scope: {kind: sorted(n for v in views for n in members_of(v, scope).after(kind, "")) for kind in ResourceKind}
        for scope in scopes
    }


def restored_of(tmp_path: Path, log: TxnLog, partitions: int = 2, now: int = NOW) -> Restored:
    return Restored(back_up(tmp_path / f"{now}-{partitions}", [log.view]), partitions, now)


def index_of(restored: Restored) -> StreamTransactions:
    return transactions_of(GuardedReader(restored.view(STREAM.key)), STREAM)


def test_open_transactions_are_aborted_and_waiting_commits_keep_their_order(tmp_path: Path) -> None:
    log = TxnLog()
    ended = [log.open(request) for request in ("one", "two")]
    for id in ended:
        log.commit(id)
        log.finish_batch()
    waiting = log.waiting("b", "a", "c")
    log.begin()
    opened = [log.open("open"), log.open("creating", ready=False)]
    log.prepare(3)
    restored = restored_of(tmp_path, log)
    index, view = index_of(restored), restored.view(STREAM.key)
    assert list(index.committing) == waiting and not index.open
    assert list(index.aborting) == opened and ids_of_ended(index) == ended[::-1]
    for id in opened:
        found = view.get(STREAM.transaction(id).aggregate)
        assert isinstance(found, Transaction) and running(found) is not None and found.reason is not None
    assert running(view.get(STREAM.commits)) is None, "the batch ended undone"
    assert not index.prepared and list(index.ranges.values()) == [0]
    (prepared,) = [s for _, s in view.aggregates() if isinstance(s, PreparedRange)]
    assert len(prepared.discarded) == 3


def test_transactions_of_a_deleted_stream_of_the_name_stay_those_of_that_one(tmp_path: Path) -> None:
    log = TxnLog()
    log.commit(log.open("one"))
    log.finish_batch()
    log.fold(StreamDeleted(*STREAM, next_number=2), StreamDeleted(*STREAM.mark, next_number=1))
    log.decide(CreateStream(*STREAM, StreamConfig()), request="anew")
    log.apply(finish_create(log, STREAM))
    later = log.open("two")
    log.commit(later)
    log.finish_batch()
    assert ids_of_ended(index_of(restored_of(tmp_path, log))) == [later]


# Numbers.


class Life:
    """A stream's log that goes on, and all segments that were named in it."""

    def __init__(self, view: PartitionView) -> None:
        self.view = view
        self.now = NOW

    @property
    def stream(self) -> Stream:
        found = find_stream(GuardedReader(self.view), STREAM)
        assert found is not None
        return found

    def apply(self, decision: Decision) -> None:
        record = JournalRecord(id="r", at=0, by="t", entries=(JournalEntry(events=decision.events),))
        self.view.fold(record, self.view.next_offset, self.now)

    def ask(self, command: Command) -> Decision:
        self.now += 1
        decision = decide(GuardedReader(self.view), command, Context(self.now, f"r{self.now}", caught_up=True))
        self.apply(decision)
        return decision

    def settle(self) -> None:
        """The stream is found as it was."""
        as_it_was = StreamRestored(*STREAM, at=0, base=bases_of(self.stream)[-1])
        self.apply(finish_restore(GuardedReader(self.view), Context(self.now), as_it_was))

    def scale(self) -> set[int]:
        """Replace all segments by as many; the ids of those that came."""
        active = self.stream.active_segments()
        replacement = scale.plan(self.stream, tuple(s.id for s in active), [(s.low, s.high) for s in active], self.now)
        started = StreamScaleStarted(*STREAM, replacement=replacement, at=self.now)
        self.apply(Decision((started, StreamEpochAdded(*STREAM, created_at=self.now))))
        self.apply(Decision((StreamScaled(*STREAM, sealed_sizes=dict.fromkeys(replacement.seals, 1)),)))
        return {s.id for s in replacement.creates}


def lived_on(view: PartitionView) -> set[int]:
    """The segments that come when a stream goes on: scales, and the targets of a roll of an old transaction."""
    life, given = Life(view), set[int]()
    if life.stream.state is StreamState.RESTORING:
        life.settle()
    first = life.stream.active
    for _ in range(5):
        given |= life.scale()
        given |= set(batch.targets(life.stream, (f"{first:08x}-0000-0000-0000-000000000001",), rolls=True).values())
        given |= set(batch.next_duplicates(life.stream))
    return given


def test_no_segment_that_was_named_behind_the_back_up_is_named_once_more(tmp_path: Path) -> None:
    log = TxnLog(3)
    log.split(0)
    target = back_up(tmp_path, [log.view])
    later = [Restored(target, 1, NOW + restores * 60_000).view(STREAM.key) for restores in range(3)]
    lives = [lived_on(view) for view in (log.view, *later)]
    for number, life in enumerate(lives):
        for other in lives[:number]:
            assert not life & other
        assert all(epoch_of(s) < 2**31 and number_of(s) < 2**31 for s in life)


def test_streams_made_behind_a_restore_have_epochs_of_their_own(tmp_path: Path) -> None:
    log = TxnLog()
    other = StreamId(STREAM.scope, "new")
    restored = restored_of(tmp_path, log, 1)
    log.decide(CreateStream(*other, StreamConfig()))
    Life(restored.view(other.key)).ask(CreateStream(*other, StreamConfig()))
    made, lost = (find_stream(GuardedReader(view), other) for view in (restored.view(other.key), log.view))
    assert made is not None and lost is not None
    assert not set(made.active_epoch.segments) & set(lost.active_epoch.segments)
    assert made.history.first == made.active == restored.base and lost.history.first == lost.active == 0


def test_a_table_has_its_segments_created_and_that_cannot_be_cancelled(tmp_path: Path) -> None:
    log, table = TxnLog(), TableId(STREAM.scope, "kv")
    log.decide(CreateTable(*table, TableConfig(2, 4)), "r")
    log.apply(finish_create_table(log, table))
    life = Life(restored_of(tmp_path, log, 1).view(table.key))
    found = find_table(GuardedReader(life.view), table)
    assert found is not None and found.workflow is not None
    assert found.state is TableState.ACTIVE and found.workflow.kind is WorkflowKind.CREATE_TABLE
    decision = life.ask(CancelWorkflow(table.aggregate, found.workflow.id))
    assert decision.reply is not None and decision.reply.status == "TOO_LATE"


def test_an_answer_about_an_epoch_that_was_left_out_is_that_there_is_none(tmp_path: Path) -> None:
    log = TxnLog()
    life = Life(restored_of(tmp_path, log, 1).view(STREAM.key))
    life.settle()
    life.scale()
    history = life.stream.history
    assert [n for n in range(5) if history.has(n)] == [0]
    base, active = life.stream.active - 1, life.stream.active
    assert history.has(active) and history.has(base) and not history.has(base - 1)
    assert history.before(base) == 0 and history.after(0) == base
    assert list(history.numbers(0, active)) == [0, base, active]


def test_a_clock_that_is_behind_the_known_numbers_is_refused(tmp_path: Path) -> None:
    log = TxnLog()
    restored = restored_of(tmp_path, log, 1)
    target = back_up(tmp_path / "second", restored.views)
    with pytest.raises(BaseUnfitError, match="clock"):
        restoration(read_states(target, read_manifest(target)), 1, NOW, "test")
    assert Restored(target, 1, NOW + 60_000).base > restored.base


# A cut that is of several moments.


def test_a_resource_without_its_scope_brings_it_along(tmp_path: Path) -> None:
    log = TxnLog()
    log.fold(StreamDeleted("gone", "x", next_number=1))
    backed_up = read_states(*_opened(back_up(tmp_path, [log.view])))
    del backed_up.states[scope_aggregate(STREAM.scope)]
    made = restoration(backed_up, 1, NOW, "test")
    assert made.repairs == [f"scope {STREAM.scope} is made anew for what is in it"]
    view = PartitionView(MODEL)
    for found in made.records:
        view.fold(found.record, view.next_offset, NOW)
    assert list(scopes_of(view).names) == [STREAM.scope]


def _opened(target: Any) -> tuple[Any, Any]:
    return target, read_manifest(target)


def log_with_group(*subscribed: SubscriberAdded) -> TxnLog:
    """A stream that the group `g` with the id `id-1` reads, and with these subscriptions."""
    log, group = TxnLog(), GroupId(STREAM.scope, "g")
    config = ReaderGroupConfig(id="id-1", starts={str(STREAM): {}}, retention=GroupRetention.MANUAL)
    created = ReaderGroupCreationStarted(*group, creation_id="c", config=config, created_at=1, request=None, at=1)
    log.fold(created, ReaderGroupCreated(*group), *subscribed)
    return log


def test_a_stream_is_held_back_by_the_groups_that_are_there_and_no_others(tmp_path: Path) -> None:
    log = log_with_group(SubscriberAdded(*STREAM, subscriber="sc/stranger", group_id="id-2", generation=0, at=1))
    restored = restored_of(tmp_path, log)
    stream = find_stream(GuardedReader(restored.view(STREAM.key)), STREAM)
    assert stream is not None
    assert {name: s.group_id for name, s in stream.subscribers.items()} == {"sc/g": "id-1"}
    assert len(restored.repairs) == 2


def test_a_stream_is_not_held_back_by_a_group_that_has_come_to_read_others(tmp_path: Path) -> None:
    left = StreamId(STREAM.scope, "left")
    log = log_with_group(SubscriberAdded(*STREAM, subscriber="sc/g", group_id="id-1", generation=0, at=1))
    log.decide(CreateStream(*left, StreamConfig()))
    log.apply(finish_create(log, left))
    log.fold(SubscriberAdded(*left, subscriber="sc/g", group_id="id-1", generation=0, at=1))
    restored = restored_of(tmp_path, log)
    streams = (find_stream(GuardedReader(restored.view(id.key)), id) for id in (STREAM, left))
    assert [list(stream.subscribers) for stream in streams if stream is not None] == [["sc/g"], []]
    assert restored.repairs == ["stream sc/left is not held back by reader group sc/g any more"]


def test_a_subscription_that_is_newer_than_its_group_in_the_back_up_is_the_groups_again(tmp_path: Path) -> None:
    log = log_with_group(SubscriberAdded(*STREAM, subscriber="sc/g", group_id="id-1", generation=1, at=1))
    stream = find_stream(GuardedReader(restored_of(tmp_path, log).view(STREAM.key)), STREAM)
    assert stream is not None and stream.subscribers["sc/g"].generation == 0


def test_a_deletion_of_a_scope_that_was_under_way_goes_on(tmp_path: Path) -> None:
    log = TxnLog()
    log.fold(StreamDeleted(*STREAM, next_number=2), StreamDeleted(*STREAM.mark, next_number=1))
    assert log.decide(DeleteScope(STREAM.scope)).events
    restored = restored_of(tmp_path, log)
    view = restored.view(STREAM.scope)
    assert scopes_of(view).deletions[STREAM.scope] <= view.next_offset, "the fences are raised to this journal's offset"
    workflow = running(view.get(scope_aggregate(STREAM.scope)))
    assert workflow is not None and workflow.kind is WorkflowKind.DELETE_SCOPE
