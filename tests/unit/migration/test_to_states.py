"""What an original knows, as our states: the answers are what its records say, and what was under way goes on."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.originals import (
    SCOPE,
    GrowingStream,
    MemoryOriginal,
    T,
    active,
    configuration,
    group,
    table,
    transaction,
)
from unit.migration.imported import NOW, ST, Imported, imported, uuids
from unit.migration.original import Original, id_of

from sluice.domain.cluster.state import CLUSTER, cluster_of
from sluice.domain.config import GroupRetention
from sluice.domain.host import Host
from sluice.domain.ids import GroupId, StreamId, TableId
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.scope.state import is_deleted_recursively
from sluice.domain.segment import number_of, segment_id
from sluice.domain.stream import cuts, queries
from sluice.domain.stream.scale import ScaleProgress, add_epoch, progress
from sluice.domain.stream.state import DeletedStream, Stream, StreamState
from sluice.domain.table.state import DeletedTable, Table
from sluice.domain.transaction import batch
from sluice.domain.transaction.commands import AbortReason
from sluice.domain.transaction.index import transactions_of
from sluice.domain.transaction.state import EndedTransaction, Transaction, TransactionState, find_transaction
from sluice.domain.workflow import WorkflowKind, running
from sluice.lookback.progress import unseen
from sluice_cli.errors import RefusedError
from sluice_cli.migration import model
from sluice_cli.migration import records as r
from sluice_cli.migration.dump import Dump, dump
from sluice_cli.migration.tables import of_stream
from sluice_cli.migration.to_states import take
from sluice_cli.migration.to_stream import UnfitError
from sluice_cli.migration.to_transactions import GRACE_MS

Status = r.TransactionStatus


# What was answered stays the same.


def test_containers_stay_with_their_segment_stores() -> None:
    containers = {0: Host("10.0.0.1", 1), 1: Host("10.0.0.2", 1), 2: Host("10.0.0.1", 1)}
    assert cluster_of(imported(containers=containers).reader(CLUSTER)).containers == containers


steps = st.lists(
    st.one_of(
        st.tuples(st.just("scale"), st.integers(0, 9), st.integers(1, 3), st.integers(1, 3)),
        st.tuples(st.just("roll"), st.integers(0, 99)),
    ),
    max_size=100,
)


@given(steps, st.integers(1, 4), st.integers(0, 5), st.integers(0, 99))
def test_an_imported_stream_answers_what_the_records_say(
    steps: list[tuple[Any, ...]], segments: int, first: int, head: int
) -> None:
    growing = GrowingStream(segments=segments, first=first)
    growing.grow(steps)
    begin = growing.epochs[head % len(growing.epochs)]
    cut = {s.id: 10 for s in begin.segments}
    growing.fields["truncation"] = growing.truncation(cut, size_till=1234)
    stream = imported(growing.stream()).stream
    assert queries.head(stream) == cut and stream.cut_size == 1234
    assert stream.active == len(growing.epochs) - 1
    assert stream.next_number == max(s.number for e in growing.epochs for s in e.segments) + 1
    for record in growing.epochs:
        found = queries.epoch_segments(stream, record.epoch)
        assert [(s.id, s.low, s.high) for s in found] == [
            (s.id, s.low, s.high) for s in sorted(record.segments, key=lambda s: s.low)
        ]
        assert stream.history.reference(record.epoch) == record.reference
        assert stream.history.created_at(record.epoch) == record.creation_ms
    for one, following in zip(growing.epochs, growing.epochs[1:], strict=False):
        left = {s.id for s in following.segments}
        for sealed in (s for s in one.segments if s.id not in left):
            assert stream.history.replaced_in(sealed.id) == following.epoch
            successors = queries.successors_with_predecessors(stream, sealed.id)
            assert {s.id: before for s, before in successors} == successors_by_records(one, following, sealed)
    every = cuts.segments_between(stream, cut, {})
    size = cuts.size_between(stream, cut, dict.fromkeys(stream.active_epoch.segments, 0), every)
    gone = every - set(stream.active_epoch.segments)
    assert size == sum(growing.sizes[s] for s in gone) - 10 * len(cut)


def successors_by_records(
    one: r.EpochRecord, following: r.EpochRecord, sealed: r.SegmentRecord
) -> dict[int, list[int]]:
    """By the id of each segment that came for a sealed one all those that it came for."""
    had = {s.id for s in one.segments}
    came = [s for s in following.segments if s.id not in had]
    return {
        s.id: sorted(p.id for p in one.segments if p.low < s.high and s.low < p.high)
        for s in came
        if sealed.low < s.high and s.low < sealed.high
    }


@pytest.mark.parametrize("partitions", [1, 4])
def test_things_of_all_kinds_are_there_in_any_number_of_partitions(partitions: int) -> None:
    growing = GrowingStream()
    growing.fields["configuration"] = configuration("st", tags=("a", "b"), rollover_bytes=5)
    growing.fields["subscribers"] = r.Subscribers((f"{SCOPE}/rg",))
    growing.fields["subscriber_records"] = {f"{SCOPE}/rg": r.Subscriber(f"{SCOPE}/rg", 2, T, {0: 7})}
    growing.writers["w"] = r.WriterMark(5, {0: 9}, True)
    reading = group("rg", "st", retention=r.GroupRetention.MANUAL)
    original = MemoryOriginal(
        growing.stream(),
        GrowingStream("_RGrg").stream(),
        reading,
        table("kv"),
        deleted_streams={f"{SCOPE}/gone": 4, f"{SCOPE}/st": 9},
        deleted_tables={f"{SCOPE}/gone": 2},
    )
    found = Imported(take(original, NOW), partitions)
    assert found.remarks == []
    stream, known = found.stream, found[GroupId(SCOPE, "rg")]
    assert stream.config.tags == ("a", "b") and stream.config.rollover_size_bytes == 5
    assert isinstance(known, ReaderGroup) and known.config.retention is GroupRetention.MANUAL
    subscriber = stream.subscribers[f"{SCOPE}/rg"]
    assert (subscriber.group_id, subscriber.generation, subscriber.cut) == (str(reading.id), 2, {0: 7})
    assert known.config.id == str(reading.id) and known.config.generation == 2
    assert stream.writers["w"].position == {0: 9} and stream.next_number == 10
    kv = found[TableId(SCOPE, "kv")]
    assert isinstance(kv, Table) and [number_of(s.id) for s in kv.segments] == [0, 1]
    assert found[StreamId(SCOPE, "gone")] == DeletedStream(5) and found[TableId(SCOPE, "gone")] == DeletedTable(3)
    assert {found[StreamId(SCOPE, name)].creation_id for name in ("_RGrg", "_MARK_RGrg")} == {known.creation_id}
    assert found[ST.mark].creation_id == stream.creation_id


# What was under way goes on.


def busy(state: r.StreamState = r.StreamState.ACTIVE, **fields: Any) -> Imported:
    growing = GrowingStream(segments=2)
    growing.fields = {"state": r.StateRecord(state), **fields}
    return imported(growing.stream())


HALVES = (
    r.NewSegment(segment_id(1, 2), (r.Range(0, 0.25),)),
    r.NewSegment(segment_id(1, 3), (r.Range(0.25, 0.5),)),
)
SCALE = r.EpochTransition(0, T + 5, (0,), HALVES)


@pytest.mark.parametrize("state", [r.StreamState.SCALING, r.StreamState.ACTIVE, r.StreamState.COMMITTING_TXN])
def test_a_scale_that_was_submitted_is_carried_out_with_the_same_segments(state: r.StreamState) -> None:
    stream = busy(state, transition=SCALE).stream
    assert stream.state is StreamState.SCALING and stream.workflow is not None
    replacement = stream.workflow.replacement
    assert replacement is not None and replacement.seals == (0,)
    assert [s.id for s in replacement.creates] == [segment_id(1, 2), segment_id(1, 3)]
    assert progress(stream, 0) is ScaleProgress.RUNNING


def test_what_a_scale_may_have_sealed_has_its_successors_at_once() -> None:
    """A writer that finds none takes the stream for sealed, and never writes again."""
    growing = GrowingStream(segments=2)
    growing.scale(0, 1, 2)
    created = tuple(r.NewSegment(s.id, (r.Range(s.low, s.high),)) for s in growing.active if s.creation_epoch)
    scaling = {"transition": r.EpochTransition(0, T + 5, (0,), created), "current_epoch": 0}
    growing.fields = {"state": r.StateRecord(r.StreamState.SCALING), **scaling}
    found = imported(growing.stream())
    successors = queries.successors_with_predecessors(found.stream, 0)
    assert [(segment.id, before) for segment, before in successors] == [(new.id, [0]) for new in created]
    assert found.stream.active == 0 and found.stream.next_number == 4 and running(found.stream) is not None
    assert add_epoch(found.reader(), ST).events == (), "the epoch is not added once more"


@pytest.mark.parametrize("state", [r.StreamState.SCALING, r.StreamState.COMMITTING_TXN, r.StreamState.UPDATING])
def test_what_had_ended_but_for_its_state_is_active(state: r.StreamState) -> None:
    growing = GrowingStream(segments=2)
    growing.scale(0, 1, 2)
    growing.fields = {"state": r.StateRecord(state), "transition": SCALE}
    found = imported(growing.stream())
    assert found.stream.state is StreamState.ACTIVE and found.stream.workflow is None
    assert found.remarks == []


def test_a_truncation_deletes_what_it_has_left() -> None:
    growing = GrowingStream()
    growing.scale(0, 1, 2)
    cut = {segment_id(1, 1): 0, segment_id(1, 2): 0}
    growing.fields["truncation"] = growing.truncation(cut, to_delete=(0,), updating=True)
    stream = imported(growing.stream()).stream
    assert stream.workflow is not None
    assert (stream.state, stream.workflow.kind, stream.workflow.deletes) == (
        StreamState.TRUNCATING,
        WorkflowKind.TRUNCATE_STREAM,
        (0,),
    )


def test_an_update_replaces_segments_where_the_policy_wants_so() -> None:
    stream = busy(r.StreamState.UPDATING, configuration=configuration("st", 3, updating=True)).stream
    assert stream.workflow is not None and stream.workflow.kind is WorkflowKind.UPDATE_STREAM
    assert stream.workflow.replacement is not None and len(stream.workflow.replacement.creates) == 3


def test_a_seal_goes_on_and_a_sealed_stream_is_sealed() -> None:
    sealing, sealed = busy(r.StreamState.SEALING).stream, busy(r.StreamState.SEALED).stream
    assert sealing.workflow is not None and sealing.workflow.kind is WorkflowKind.SEAL_STREAM
    assert sealed.state is StreamState.SEALED and sealed.workflow is None


def test_of_two_changes_under_way_one_is_carried_out_and_the_other_is_said() -> None:
    truncation = GrowingStream(segments=2).truncation({0: 1, 1: 1}, updating=True)
    found = busy(r.StreamState.TRUNCATING, transition=SCALE, truncation=truncation)
    assert found.stream.state is StreamState.TRUNCATING
    assert found.remarks == [f"{ST}: a scale was under way, too: repeat it"]


def test_an_update_that_has_begun_to_replace_segments_comes_before_a_truncation_that_is_requested() -> None:
    truncation = GrowingStream(segments=2).truncation({0: 1, 1: 1}, updating=True)
    updating = configuration("st", 3, updating=True)
    found = busy(r.StreamState.UPDATING, transition=SCALE, truncation=truncation, configuration=updating)
    workflow = found.stream.workflow
    assert found.stream.state is StreamState.UPDATING and workflow is not None and workflow.replacement is not None
    assert workflow.replacement.seals == SCALE.sealed
    assert found.remarks == [f"{ST}: a truncation was under way, too: `sluice verify --repair` deletes its segments"]


def test_a_scale_that_is_requested_is_not_taken_for_what_a_requested_update_replaces() -> None:
    found = busy(r.StreamState.ACTIVE, transition=SCALE, configuration=configuration("st", 3, updating=True))
    workflow = found.stream.workflow
    assert workflow is not None and workflow.kind is WorkflowKind.UPDATE_STREAM and workflow.replacement is not None
    assert not {s.id for s in workflow.replacement.creates} & {new.id for new in SCALE.created} or (
        workflow.replacement.seals != SCALE.sealed
    )
    assert found.remarks == [f"{ST}: a scale was under way, too: repeat it"]


def test_a_scale_whose_epoch_commits_have_taken_is_said() -> None:
    growing = GrowingStream(segments=2)
    growing.roll(0)
    growing.fields["transition"] = SCALE
    found = imported(growing.stream())
    assert found.stream.workflow is None
    assert found.remarks == [f"{ST}: a scale was overtaken by commits: repeat it"]


def test_what_was_being_created_is_not_there() -> None:
    begun = msgspec.structs.replace(GrowingStream("begun").stream(), metadata=None)
    creating = GrowingStream("creating")
    creating.fields["state"] = r.StateRecord(r.StreamState.CREATING)
    unfinished = msgspec.structs.replace(group("rg", "st"), metadata=None)
    found = imported(GrowingStream().stream(), begun, creating.stream(), GrowingStream("_RGrg").stream(), unfinished)
    for name in ("begun", "creating", "_MARKbegun", "_MARKcreating", "_RGrg", "_MARK_RGrg"):
        assert not isinstance(found[StreamId(SCOPE, name)], Stream), name
    assert found[GroupId(SCOPE, "rg")] is None and found.stream.state is StreamState.ACTIVE
    assert sum("its creation had not ended" in remark for remark in found.remarks) == 3


def test_what_was_being_deleted_goes_on_to_be_deleted() -> None:
    deleting, reading, kv = r.ThingStateRecord(r.ThingState.DELETING), group("rg", "st"), table("kv")
    assert reading.metadata is not None and kv.metadata is not None
    going = (
        msgspec.structs.replace(reading, metadata=msgspec.structs.replace(reading.metadata, state=deleting)),
        msgspec.structs.replace(kv, metadata=msgspec.structs.replace(kv.metadata, state=deleting)),
    )
    found = imported(GrowingStream().stream(), GrowingStream("_RGrg").stream(), *going, deleting=True)
    kinds = [running(found[id]) for id in (GroupId(SCOPE, "rg"), TableId(SCOPE, "kv"))]
    assert [w.kind for w in kinds if w is not None] == [WorkflowKind.DELETE_GROUP, WorkflowKind.DELETE_TABLE]
    assert is_deleted_recursively(found.reader(SCOPE).get(f"scope:{SCOPE}"))


# Transactions.


def with_transactions(growing: GrowingStream, *records: tuple[Any, r.ActiveTransaction], **cluster: Any) -> Imported:
    for id, record in records:
        growing.transactions.setdefault(id.int >> 96, {})[id] = record
    return imported(growing.stream(), **cluster)


def test_commits_go_on_in_their_order_epoch_by_epoch() -> None:
    growing = GrowingStream()
    growing.scale(0, 1, 2)
    ids = [transaction(0, 1), transaction(0, 2), transaction(1, 3), transaction(0, 4)]
    orders = [9, 3, 1, 5]
    growing.fields["committing"] = r.CommittingTransactions(0, (ids[3],), r.NO_EPOCH)
    waiting = [(id, active(Status.COMMITTING, order)) for id, order in zip(ids, orders, strict=True)]
    found = with_transactions(growing, *waiting)
    assert uuids(found, "committing") == [str(ids[i]) for i in (3, 1, 0, 2)]
    assert batch.find_commits(found.reader(), ST) is None, "a batch that has not rolled begins anew"


def test_a_batch_that_has_begun_to_roll_goes_on_as_the_same_batch() -> None:
    growing = GrowingStream()
    growing.scale(0, 1, 2)
    ids = (transaction(0, 1), transaction(0, 2))
    growing.fields["committing"] = r.CommittingTransactions(0, ids, 1)
    growing.fields["current_epoch"] = 1
    growing.roll(0)
    found = with_transactions(growing, *((id, active(Status.COMMITTING, i)) for i, id in enumerate(ids)))
    commits = batch.find_commits(found.reader(), ST)
    assert commits is not None and commits.workflow is not None
    assert (commits.workflow.kind, commits.workflow.transactions) == (
        WorkflowKind.ROLL_TRANSACTIONS,
        tuple(map(str, ids)),
    )
    assert batch.targets(found.stream, commits.workflow.transactions, rolls=True) == {0: segment_id(2, 0)}
    successors = [cuts.successors(found.stream, segment) for segment in found.stream.active_epoch.segments]
    assert [[s.id for s in each] for each in successors] == [[segment_id(2, 0)]] * 2


def test_a_roll_whose_duplicates_have_no_sizes_has_sealed_nothing_and_merges_again() -> None:
    growing = GrowingStream()
    growing.scale(0, 1, 2)
    id = transaction(0, 1)
    growing.fields["committing"] = r.CommittingTransactions(0, (id,), 1)
    growing.fields["current_epoch"] = 1
    growing.fields["size_shards"] = {0: r.SealedSizes(dict(growing.sizes))}
    growing.roll(0)
    found = with_transactions(growing, (id, active(Status.COMMITTING, 1)))
    assert not batch.has_rolled(found.stream)


def test_a_batch_that_has_rolled_but_for_its_end_is_committed() -> None:
    growing = GrowingStream()
    growing.scale(0, 1, 2)
    id = transaction(0, 1)
    growing.roll(0)
    growing.fields["committing"] = r.CommittingTransactions(0, (id,), 1)
    found = with_transactions(growing, (id, active(Status.COMMITTING, 1)))
    ended = find_transaction(found.reader(), ST.transaction(str(id)))
    assert ended is not None and ended.state is TransactionState.COMMITTED
    assert not uuids(found, "committing")


def test_open_transactions_get_time_for_a_ping_but_no_longer_than_they_may_live() -> None:
    late, short, over = transaction(0, 1), transaction(0, 2), transaction(0, 3)
    found = with_transactions(
        GrowingStream(),
        (late, active(Status.OPEN)),
        (short, active(Status.OPEN, max_expiry_ms=NOW + 5)),
        (over, active(Status.OPEN, max_expiry_ms=NOW - 5)),
        (transaction(0, 4), active(Status.ABORTING)),
    )
    assert uuids(found, "open") == [str(late), str(short)]
    known = [find_transaction(found.reader(), ST.transaction(str(id))) for id in (late, short, over)]
    assert all(isinstance(one, Transaction) for one in known)
    assert [one.lease_ends_at - NOW for one in known if isinstance(one, Transaction)][:2] == [GRACE_MS, 5]
    assert known[2] is not None and known[2].reason is AbortReason.LEASE
    aborting = [running(find_transaction(found.reader(), ST.transaction(id))) for id in uuids(found, "aborting")]
    assert [w.kind for w in aborting if w is not None] == [WorkflowKind.ABORT_TRANSACTION] * 2


def test_ended_transactions_are_remembered_and_listed_apart_from_those_of_a_deleted_stream() -> None:
    old, new = transaction(0, 1), transaction(0, 2)
    completed = (
        model.CompletedTransaction(SCOPE, "st", new, r.CompletedTransaction(T + 5, Status.ABORTED)),
        model.CompletedTransaction(SCOPE, "st", old, r.CompletedTransaction(T - 5, Status.COMMITTED)),
        model.CompletedTransaction(SCOPE, "gone", old, r.CompletedTransaction(T, Status.COMMITTED)),
    )
    # The record that it is open may outlive that of its end.
    found = with_transactions(
        GrowingStream(segments=2, first=1),
        (new, active(Status.ABORTING)),
        completed=completed,
        deleted_streams={f"{SCOPE}/st": 0, f"{SCOPE}/gone": 0},
    )
    states = [find_transaction(found.reader(), ST.transaction(str(id))) for id in (old, new)]
    assert [one.state for one in states if isinstance(one, EndedTransaction)] == [
        TransactionState.COMMITTED,
        TransactionState.ABORTED,
    ]
    assert [one.uuid for one in transactions_of(found.reader(), ST).ended()] == [str(new)]
    gone = StreamId(SCOPE, "gone")
    assert find_transaction(found.reader(), gone.transaction(str(old))) is not None and found[gone] == DeletedStream(1)


# An original that lies.


def lying(**fields: Any) -> GrowingStream:
    growing = GrowingStream(segments=2)
    growing.scale(0, 1, 2)
    growing.scale(1, 1, 2)
    growing.fields.update(fields)
    return growing


def changed(number: int, **fields: Any) -> dict[int, r.EpochRecord]:
    epochs = {e.epoch: e for e in lying().epochs}
    epochs[number] = msgspec.structs.replace(epochs[number], **fields)
    return epochs


WHOLE = {e.epoch: e for e in lying().epochs}


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"epochs": {n: e for n, e in WHOLE.items() if n != 1}}, "epochRecord-1"),
        ({"epochs": {**WHOLE, 7: WHOLE[2]}}, "epochRecord-7"),
        ({"epochs": changed(1, segments=WHOLE[1].segments[1:])}, "epochRecord-1"),
        ({"epochs": changed(2, segments=WHOLE[0].segments)}, "epochRecord-2"),
        ({"epochs": changed(2, reference=0)}, "epochRecord-2"),
        ({"truncation": None}, "truncation is missing"),
        ({"truncation": r.Truncation({5: 1}, (), (), (), 0, False)}, "truncation: the cut and its span"),
        ({"truncation": lying().truncation({0: 1})}, "truncation: the cut names no segment for some keys"),
        ({"state": r.StateRecord(r.StreamState.UNKNOWN)}, "state"),
    ],
)
def test_a_stream_that_is_not_as_it_says_is_refused_and_can_be_left_out(fields: dict[str, Any], key: str) -> None:
    with pytest.raises(UnfitError, match=f"{ST}: {key}"):
        imported(lying(**fields).stream())
    found = imported(lying(**fields).stream(), GrowingStream("other").stream(), left_out=(f"stream {ST}",))
    assert isinstance(found[ST], DeletedStream) and found[ST].next_number >= 2, "its numbers stay used"
    assert isinstance(found[StreamId(SCOPE, "other")], Stream)


async def test_a_thing_that_cannot_be_decoded_is_refused_and_can_be_left_out(tmp_path: Path) -> None:
    original, names = Original(), ("stream shop/orders", "table shop/stock")
    await original.fill()
    for name in ("orders", "stock"):
        await original.put_values(of_stream("metadata", "shop", name, id_of(name)), {"state": b"\0"})
    await dump(original.source(), tmp_path, 1, lambda: T, unseen)
    for one, other in (names, names[::-1]):
        with pytest.raises(UnfitError, match=f"{one}: state: "):
            take(Dump(tmp_path), NOW, {other})
    found = Imported(take(Dump(tmp_path), NOW, names))
    stream, kv = found[StreamId("shop", "orders")], found[TableId("shop", "stock")]
    assert isinstance(stream, DeletedStream) and stream.next_number > 4, "its numbers stay used"
    assert isinstance(kv, DeletedTable) and kv.next_number > 0
    assert isinstance(found[GroupId("shop", "till")], ReaderGroup)


def test_of_things_that_share_a_name_only_the_named_one_is_left_out_and_said() -> None:
    things = (GrowingStream("one").stream(), GrowingStream("_RGone").stream(), group("one", "one"), table("one"))
    ids = {
        "stream": StreamId(SCOPE, "one"),
        "reader group": GroupId(SCOPE, "one"),
        "table": TableId(SCOPE, "one"),
        "state": StreamId(SCOPE, "_RGone"),
    }

    def left(*names: str) -> tuple[set[str], list[str]]:
        found = imported(*things, left_out=names)
        there = {name for name, id in ids.items() if isinstance(found[id], Stream | ReaderGroup | Table)}
        return ids.keys() - there, [remark for remark in found.remarks if "left out" in remark]

    said = "{}: it is left out"
    mark = said.format(f"stream {SCOPE}/_MARKone")
    assert left(f"stream {SCOPE}/one") == ({"stream"}, [mark, said.format(f"stream {SCOPE}/one")])
    assert left(f"table {SCOPE}/one") == ({"table"}, [said.format(f"table {SCOPE}/one")])
    assert left(f"reader group {SCOPE}/one")[0] == {"reader group", "state"}
    gone, remarks = left(f"stream {SCOPE}/_RGone")
    assert gone == {"reader group", "state"} and said.format(f"reader group {SCOPE}/one") in remarks
    with pytest.raises(RefusedError, match=f"{SCOPE}/one"):
        left(f"{SCOPE}/one")


@pytest.mark.parametrize(
    ("id", "record", "key"),
    [
        (transaction(1, 1), active(Status.OPEN), "transactionsInEpoch-1"),
        (transaction(0, 1), active(Status.UNKNOWN), "transactionsInEpoch-0"),
    ],
)
def test_a_transaction_that_cannot_be_of_the_stream_is_refused(id: Any, record: r.ActiveTransaction, key: str) -> None:
    with pytest.raises(UnfitError, match=key):
        with_transactions(GrowingStream(), (id, record))


def test_two_commits_with_one_place_in_the_order_are_refused() -> None:
    with pytest.raises(UnfitError, match="same place"):
        with_transactions(GrowingStream(), *((transaction(0, n), active(Status.COMMITTING, 3)) for n in (1, 2)))
