"""`sluice trace` over histories as the services write them."""

from typing import Any

import msgspec
import pytest
from unit.cli.conftest import Cli
from unit.cli.memory import PARTITIONS, History, decided

from sluice.domain.config import GroupRetention, ReaderGroupConfig, ScalingPolicy, StreamConfig, TableConfig
from sluice.domain.ids import StreamId, TransactionId
from sluice.domain.reader_group.commands import CreateReaderGroup
from sluice.domain.scope.commands import DeleteScopeRecursive
from sluice.domain.stream.commands import (
    AddSubscriber,
    DecisionKind,
    DeleteStream,
    NoteWriterTime,
    RecordDecision,
    ScaleStream,
    SealStream,
)
from sluice.domain.stream.retention import RetentionReport, SizedCut
from sluice.domain.table.commands import CreateTable
from sluice.domain.transaction import batch
from sluice.domain.transaction.commands import AbortReason, AbortTransaction, CommitTransaction, OpenTransaction
from sluice.domain.transaction.decide import Limits, decide_abort, decide_commit, decide_open, decide_ready
from sluice.domain.transaction_ids import transaction_id
from sluice.domain.workflow import running
from sluice.engine.fold import Outcome
from sluice.kafka import topics

LIMITS = Limits(open=10, waiting_commits=10)
TWO = StreamConfig(scaling=ScalingPolicy(min_segments=2))
SPLIT = ScaleStream("demo", "orders", seals=(0,), ranges=((0.0, 0.25), (0.25, 0.5)), at=1)


@pytest.fixture
def history(cli: Cli) -> History:
    """A scope with a stream that was created by request "create"."""
    cli.history.create_stream(TWO)
    return cli.history


def traced(cli: Cli, request: str) -> Any:
    return cli("trace", request, "--since", "2023-01-01", "--json").document


def steps(cli: Cli, request: str) -> list[tuple[str, str]]:
    """What happened, and its types."""
    return [(s["what"], "+".join(s["types"])) for s in traced(cli, request)["steps"]]


def test_a_creation_is_one_request_and_two_records(cli: Cli, history: History) -> None:
    found = traced(cli, "create")
    assert [(s["what"], s["topic"], s["types"][0]) for s in found["steps"]] == [
        ("requested", "sluice.requests.streams", "CreateStream"),
        ("decided", "sluice.journal", "StreamCreationStarted"),
        ("answered", "sluice.journal", "StreamCreated"),
    ]
    first = found["steps"][0]
    assert [s["sinceStart"] for s in found["steps"]] == [s["at"] - first["at"] for s in found["steps"]]
    assert [s["took"] for s in found["steps"]] == [0, 1, 1]
    assert found["answer"] == {"status": "SUCCESS", "at": first["at"] + 2, "after": 2}
    assert found["running"] == []


def test_what_only_names_the_stream_it_created_is_left_out(cli: Cli, history: History) -> None:
    report = RetentionReport("r", "b", 1, "demo", "orders", "create", None, SizedCut({}, 0))
    history.source.append(topics.RETENTION.name, "demo/orders", msgspec.json.encode(report))
    note = RecordDecision("demo", "orders", "create", DecisionKind.SCALE, "split", "much to do", 1)
    history.ask(note, "note-1", "retention-spark/d")
    assert len(steps(cli, "create")) == 3


def test_a_scale_has_the_records_of_its_workflow_though_they_name_no_request(cli: Cli, history: History) -> None:
    reply = history.ask(SPLIT, "scale")
    assert reply is not None and reply.status == "STARTED"
    history.finish_scale("demo", "orders")
    history.ask(NoteWriterTime("demo", "orders", "w", 1, {0: 1}), "time")
    assert steps(cli, "scale") == [
        ("requested", "ScaleStream"),
        ("answered", "StreamScaleStarted"),
        ("workflow", "StreamEpochAdded"),
        ("workflow", "StreamScaled"),
    ]


def test_what_happens_beside_a_workflow_is_not_part_of_it(cli: Cli, history: History) -> None:
    history.ask(SPLIT, "scale")
    history.ask(NoteWriterTime("demo", "orders", "w", 1, {0: 1}), "time")
    found = traced(cli, "scale")
    assert len(found["steps"]) == 2
    assert [(r["aggregate"], r["kind"]) for r in found["running"]] == [("stream:demo/orders", "scale-stream")]
    assert found["running"][0].keys() == {"aggregate", "kind", "since", "step", "attempts", "lastError"}


def test_what_a_group_asks_of_its_streams_is_followed(cli: Cli, history: History) -> None:
    config = ReaderGroupConfig(id="g", starts={"demo/orders": {}}, retention=GroupRetention.MANUAL)
    history.ask(CreateReaderGroup("demo", "readers", config), "group")
    workflow = running(history.view("demo/readers").get("group:demo/readers"))
    assert workflow is not None
    sent = f"{workflow.id}-0123abcd-1"
    history.ask(AddSubscriber("demo", "orders", "demo/readers", "g", 0, "create"), sent, "stream-workflows/b")
    history.ask(CreateReaderGroup("demo", "others", msgspec.structs.replace(config, id="h")), "other")
    other = "create-reader-group-other-0123abcd-1"
    history.ask(AddSubscriber("demo", "orders", "demo/others", "h", 0), other, "stream-workflows/b")
    found = traced(cli, "group")
    assert [(s["what"], s["types"][0], s["request"]) for s in found["steps"]] == [
        ("requested", "CreateReaderGroup", "group"),
        ("decided", "ReaderGroupCreationStarted", "group"),
        ("follow-up", "AddSubscriber", sent),
        ("decided", "SubscriberAdded", sent),
    ]
    assert all(s["outcome"] == "counted" for s in found["steps"] if s["topic"] == "sluice.journal")


def test_the_deletion_of_a_scope_is_followed_over_two_levels(cli: Cli, history: History) -> None:
    open_transaction(history, "open")
    history.ask(DeleteScopeRecursive("demo"), "all")
    seal = "delete-scope-recursive-all-0123abcd-1"
    history.ask(SealStream("demo", "orders"), seal, "stream-workflows/b")
    abort = f"seal-stream-{seal}-4567abcd-1"
    end = AbortTransaction("demo", "orders", transaction_id(0, "open"), AbortReason.SEAL)
    history.decide("demo/orders", lambda r, x: decide_abort(r, end, x), abort, history.send(end, abort))
    history.ask(SealStream("demo", "other"), "delete-scope-recursive-other-0123abcd-1")
    found = traced(cli, "all")
    assert [(s["request"], s["what"]) for s in found["steps"]] == [
        ("all", "requested"),
        ("all", "decided"),
        (seal, "follow-up"),
        (seal, "decided"),
        (abort, "follow-up"),
        (abort, "answered"),
    ]
    assert found["answer"] is None
    assert {r["kind"] for r in found["running"]} == {"delete-scope-recursive", "seal-stream", "abort-transaction"}


def test_a_duplicate_is_shown_as_void(cli: Cli, history: History) -> None:
    history.ask(SPLIT, "scale")
    assert history.twin("demo/orders") is Outcome.DUPLICATE
    assert ("void: decided before", "StreamScaleStarted") in steps(cli, "scale")


def test_an_entry_on_an_older_state_is_shown_as_void(cli: Cli, history: History) -> None:
    assert history.twin("demo/orders", decides=False) is Outcome.STALE
    assert steps(cli, "create")[-1] == ("void: decided on an older state", "StreamCreated+StreamCreated")
    assert traced(cli, "create")["answer"]["after"] == 2


def test_an_entry_without_reply_is_found_by_its_source(cli: Cli, history: History) -> None:
    note = RecordDecision("demo", "orders", "create", DecisionKind.SCALE, "split", "much to do", 1)
    history.ask(note, "note-1", "retention-spark/d")
    assert steps(cli, "note-1") == [("requested", "RecordDecision"), ("decided", "DecisionRecorded")]


def test_of_a_shared_record_only_the_requests_own_entry_is_shown(cli: Cli, history: History) -> None:
    partition = history.view("demo/first")
    other = next(name for name in map(str, range(100)) if history.view(f"demo/{name}") is partition)
    entries = []
    for name in ("first", other):
        command = CreateTable("demo", name, TableConfig(partitions=1, primary_key_length=4))
        _, entry = history.entry(
            command.key, decided(command), f"create-{name}", history.send(command, f"create-{name}")
        )
        entries.append(entry)
    history.append_record("demo/first", *entries)
    (request, own) = traced(cli, f"create-{other}")["steps"]
    assert (request["what"], own["what"], own["entry"]) == ("requested", "decided", 1)
    assert f"demo/{other}" in own["says"] and "first" not in own["says"]


def test_a_refusal_is_an_answer(cli: Cli, history: History) -> None:
    history.ask(DeleteStream("demo", "orders"), "delete")
    found = traced(cli, "delete")
    assert found["answer"]["status"] == "STREAM_NOT_SEALED"
    assert cli("trace", "delete", "--since", "2023-01-01").out.count("STREAM_NOT_SEALED") == 2


def open_transaction(history: History, request: str) -> str:
    """As txn-manager does it: the reply comes with the second entry."""
    command = OpenTransaction("demo", "orders", lease_ms=30_000)
    sent = history.send(command, request)
    opened = history.decide("demo/orders", lambda r, x: decide_open(r, command, x, LIMITS), request, sent)
    id = transaction_id(0, request)
    assert [e.transaction for e in opened.events] == [id]
    history.decide("demo/orders", lambda r, x: decide_ready(r, TransactionId("demo", "orders", id), x.now), request)
    return id


def test_an_opening_is_known_by_the_id_that_follows_from_the_request(cli: Cli, history: History) -> None:
    open_transaction(history, "open-other")
    open_transaction(history, "open")
    assert steps(cli, "open") == [
        ("requested", "OpenTransaction"),
        ("decided", "TransactionOpened"),
        ("answered", "TransactionReady"),
    ]


def commit(history: History, transaction: str, request: str) -> None:
    command = CommitTransaction("demo", "orders", transaction)
    sent = history.send(command, request)
    history.decide("demo/orders", lambda r, x: decide_commit(r, command, x, LIMITS), request, sent)


def end_batch(history: History, transaction: str) -> None:
    merged = batch.Merged({transaction: {0: 5, 1: 5}})
    history.decide("demo/orders", lambda r, x: batch.end_batch(r, StreamId("demo", "orders"), x, merged, 10))


def test_a_commit_is_followed_through_its_batch_and_no_further(cli: Cli, history: History) -> None:
    first, second = open_transaction(history, "open"), open_transaction(history, "open-other")
    commit(history, first, "commit")
    commit(history, second, "commit-other")
    end_batch(history, first)
    found = traced(cli, "commit-other")
    assert [(r["aggregate"], r["kind"]) for r in found["running"]] == [("commits:demo/orders", "commit-transactions")]
    end_batch(history, second)
    found = traced(cli, "commit")
    assert [(s["what"], s["types"][0]) for s in found["steps"]] == [
        ("requested", "CommitTransaction"),
        ("answered", "TransactionCommitting"),
        ("workflow", "TransactionCommitted"),
    ]
    assert all(first in s["says"] and second not in s["says"] for s in found["steps"])
    assert found["running"] == []
    found = traced(cli, "commit-other")
    assert [(s["what"], s["types"][-1]) for s in found["steps"]] == [
        ("requested", "CommitTransaction"),
        ("answered", "TransactionCommitting"),
        ("workflow", "CommitBatchStarted"),
        ("workflow", "CommitBatchEnded"),
    ]


def test_a_commit_that_rolls_is_followed_over_the_epochs_it_makes(cli: Cli, history: History) -> None:
    id = open_transaction(history, "open")
    history.ask(SPLIT, "scale")
    history.finish_scale("demo", "orders")
    commit(history, id, "commit")
    stream = history.stream("demo", "orders")
    replaced = stream.active_epoch.segments
    sizes, merged = dict.fromkeys(batch.next_duplicates(stream)[:2], 5), batch.Merged({id: {}})
    history.decide("demo/orders", lambda r, x: batch.record_rolled(r, StreamId("demo", "orders"), x, sizes, merged))
    history.decide(
        "demo/orders", lambda r, x: batch.end_roll(r, StreamId("demo", "orders"), x, dict.fromkeys(replaced, 5))
    )
    found = traced(cli, "commit")
    assert [(s["what"], s["types"][0]) for s in found["steps"]] == [
        ("requested", "CommitTransaction"),
        ("answered", "TransactionCommitting"),
        ("workflow", "StreamEpochsRolled"),
        ("workflow", "StreamRolled"),
    ]
    assert found["running"] == []


def test_a_dead_letter_belongs_to_its_request(cli: Cli, history: History) -> None:
    request = history.send(SealStream("demo", "orders"), "seal")
    headers = [("sluice_topic", request.topic), ("sluice_reason", "KeyError('x')"), ("sluice_service", "s/1")]
    history.source.append(topics.DEAD_LETTERS.name, request.key, request.value, [*headers, *request.headers])
    found = traced(cli, "seal")
    assert [s["what"] for s in found["steps"]] == ["requested", "dead letter"]
    assert "KeyError('x')" in found["steps"][1]["says"]


def test_a_record_that_names_the_request_and_cannot_be_decoded_is_shown(cli: Cli, history: History) -> None:
    history.source.append(topics.REQUESTS_STREAMS.name, "demo", b'{"id":"create","command":{"type":"Nothing"}}')
    assert ("not decoded", "") in steps(cli, "create")


def test_a_record_that_only_has_the_id_somewhere_is_left_out(cli: Cli, history: History) -> None:
    before = steps(cli, "create")
    history.source.append(topics.SNAPSHOT_CHUNKS.name, "0", b"\xff create", [("ce_id", "create")])
    history.source.append(topics.DEAD_LETTERS.name, "demo", b'{"create', [("sluice_topic", "x"), ("ce_id", "other")])
    assert steps(cli, "create") == before


def test_a_partition_that_stops_is_named(cli: Cli, history: History) -> None:
    record = history.source.append(topics.JOURNAL.name, "demo/orders", b"no record")
    found = cli("trace", "create", "--since", "2023-01-01")
    assert (
        found.code == 1 and f"partition {record.partition} of the journal stops at offset {record.offset}" in found.err
    )


def test_the_time_bound_holds(cli: Cli, history: History) -> None:
    found = cli("trace", "create", "--since", str(history.now))
    assert found.code == 0 and "StreamCreated" in found.out and "StreamCreationStarted" not in found.out
    found = cli("trace", "create")
    assert found.code == 1 and found.out == "" and "--since" in found.err


def test_the_caller_is_known_from_the_request_and_else_from_the_journal(cli: Cli, history: History) -> None:
    history.ask(SealStream("demo", "orders"), "seal", principal="alice")
    found = cli("trace", "seal", "--since", "2023-01-01")
    assert found.out.startswith("request seal of alice, ")
    history.source.logs[topics.REQUESTS_STREAMS.name] = [[] for _ in range(PARTITIONS)]
    assert cli("trace", "seal", "--since", "2023-01-01", "--json").document["principal"] == "alice"


def test_people_see_the_times_and_the_answer(cli: Cli, history: History) -> None:
    found = cli("trace", "create", "--since", "2023-01-01")
    assert found.code == 0 and "answered SUCCESS after 2 ms" in found.out
    assert [line.split()[1] for line in found.out.splitlines() if " @ " in line or "@" in line] == [
        "+0", "+1", "+2",
    ]  # fmt: skip
