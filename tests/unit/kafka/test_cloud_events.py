"""All who write a record write a CloudEvent: one test for each of them."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from support.cloud_events import attributes_of, check_cloud_event
from support.decisions import hot, sampled

from sluice.catalog import examples
from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.decision import Reply
from sluice.domain.model import JournalEntry, JournalRecord, encode_record
from sluice.domain.scope.commands import CreateScope
from sluice.domain.scope.events import ScopeCreated
from sluice.domain.status import Status
from sluice.domain.transaction.commands import CommitTransaction
from sluice.engine.ports import RecordFacts, SystemClock
from sluice.engine.record import record_kind
from sluice.kafka.dead_letters import (
    DeadLetterSettled,
    FailedRecord,
    Settlement,
    dead_letter_headers,
    send_dead_letter,
    send_settlement,
)
from sluice.kafka.headers import Headers, cloud_event_headers
from sluice.kafka.log import KafkaLog
from sluice.kafka.producer import KafkaProducer
from sluice.kafka.requests import Request, decode_request, encode_request
from sluice.kafka.sending import RequestSender
from sluice.kafka.topics import (
    ABORT,
    COMMIT,
    DEAD_LETTERS,
    JOURNAL,
    REQUESTS_CLUSTER,
    REQUESTS_STREAMS,
    RETENTION,
    SCALE,
)
from sluice.memory.broker import MemoryBroker, MemoryProducer
from sluice.policies.rules import RetentionRule, ScaleRule
from sluice.workflows.report_decider import ReportDecider, ReportRecord
from stream_workflows.report_publisher import ReportPublisher

NOW = 1_767_603_600_000
SCALE_RULE = ScaleRule(cooldown_ms=120_000)
RETENTION_RULE = RetentionRule(tick_ms=60_000, pause_ms=0)


@pytest.fixture
async def broker() -> MemoryBroker:
    return MemoryBroker()


def only(broker: MemoryBroker, topic: str) -> dict[str, str]:
    """The attributes of the one record in a topic."""
    [(found,)] = filter(None, broker.logs(topic))
    return check_cloud_event(found.headers(), found.key().decode(), found.value())


def request(command: Any, by: str = "api-gateway/0") -> Request:
    return Request(id="r-1", at=NOW, by=by, command=command)


@pytest.mark.parametrize(
    ("command", "topic"),
    [
        (CreateScope("sc"), REQUESTS_STREAMS),
        (CommitTransaction("sc", "st", "00000000-0000-0000-0000-000000000001"), COMMIT),
        (Heartbeat(service="api-gateway", instance="0", endpoints={}), REQUESTS_CLUSTER),
    ],
    ids=lambda of: getattr(of, "name", type(of).__name__),
)
async def test_a_service_that_asks(broker: MemoryBroker, command: Any, topic: Any) -> None:
    clock = cast(Any, SimpleNamespace(now_ms=lambda: NOW))
    await RequestSender(MemoryProducer(broker), clock, "api-gateway/0").send("r-1", command)
    attributes = only(broker, topic.name)
    assert (attributes["ce_type"], attributes["ce_id"]) == (type(command).__name__, "r-1")
    assert attributes["ce_source"] == "api-gateway/0"
    assert attributes["ce_time"] == "2026-01-05T09:00:00.000+00:00"


def test_a_subject_that_would_be_empty_is_left_out() -> None:
    assert "ce_subject" not in attributes_of(cloud_event_headers("CreateScope", "r", "test/1", NOW, ""))
    assert attributes_of(cloud_event_headers("CreateScope", "r", "test/1", NOW, "a\0b"))["ce_subject"] == "a\0b"


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        (JournalEntry({"scope:sc": 0}, (ScopeCreated("sc", "c", at=NOW),)), "ScopeCreated"),
        (JournalEntry({"scope:sc": 1}, request="r-2", reply=Reply(Status.SCOPE_EXISTS)), "Refusal"),
    ],
    ids=["events", "a refusal"],
)
async def test_a_service_that_appends_to_the_journal(broker: MemoryBroker, entry: JournalEntry, kind: str) -> None:
    record = JournalRecord(id="a-1", at=NOW, by="test/1", entries=(entry,))
    facts = RecordFacts(record_kind(record), record.id, record.by, record.at)
    log = KafkaLog({}, cast(KafkaProducer, MemoryProducer(broker)), 4)
    log.append("sc", encode_record(record), facts, {}, lambda _error: None)
    await asyncio.sleep(0)
    attributes = only(broker, JOURNAL.name)
    assert (attributes["ce_id"], attributes["ce_source"]) == (record.id, record.by)
    assert attributes["ce_type"] == kind


async def test_stream_workflows_that_reports_on_a_stream(broker: MemoryBroker) -> None:
    publisher = ReportPublisher(MemoryProducer(broker), "stream-workflows/0", SystemClock())
    for report, topic in ((hot("st", NOW), SCALE), (sampled("st", NOW, 500), RETENTION)):
        await publisher.publish(report)
        attributes = only(broker, topic.name)
        assert (attributes["ce_type"], attributes["ce_id"]) == (type(report).__name__, report.id)


async def test_stream_workflows_that_cannot_read_what_a_segment_holds(broker: MemoryBroker) -> None:
    segment = "_system/_requeststream/0.#epoch.0"
    publisher = ReportPublisher(MemoryProducer(broker), "stream-workflows/0", SystemClock())
    await publisher.dead_letter("_system/_requeststream", segment, 77, b"\x00", "why")
    attributes = only(broker, DEAD_LETTERS.name)
    assert (attributes["ce_type"], attributes["ce_id"]) == ("UnreadableRecord", f"{segment}/77")
    assert attributes["content-type"] == "application/octet-stream"
    assert (attributes["sluice_segment"], attributes["sluice_offset"]) == (segment, "77")
    assert attributes["sluice_reason"] == "why"


@pytest.mark.parametrize(
    ("rule", "report"),
    [(SCALE_RULE, hot("st", NOW)), (RETENTION_RULE, sampled("st", NOW, 500))],
    ids=["scaling", "retention"],
)
def test_retention_spark_that_asks_and_notes(rule: Any, report: Any) -> None:
    given = ReportRecord("any", 0, 0, "s/st", msgspec.json.encode(report))
    step = ReportDecider(rule, "retention-spark/0").step(None, [given], NOW)
    assert step.sendings
    for sending in step.sendings:
        attributes = check_cloud_event(sending.headers, sending.key, sending.value)
        sent = decode_request(sending.value)
        assert (attributes["ce_id"], attributes["ce_type"]) == (sent.id, type(sent.command).__name__)
        assert attributes["ce_source"] == "retention-spark/0"


def test_retention_spark_that_cannot_read_a_report() -> None:
    odd = ReportRecord(SCALE.name, 3, 7, "s/x", b"{")
    (letter,) = ReportDecider(SCALE_RULE, "retention-spark/0").step(None, [odd], NOW).sendings
    attributes = check_cloud_event(letter.headers, letter.key, letter.value)
    assert attributes["ce_id"] == f"{SCALE.name}/3/7"
    assert (attributes["ce_type"], attributes["ce_source"]) == ("UnreadableRecord", "retention-spark/0")


async def dead_letter_of(source: FailedRecord) -> dict[str, str]:
    broker = MemoryBroker()
    await send_dead_letter(MemoryProducer(broker), source, "txn-manager/0", "TypeError('no')", NOW)
    return only(broker, DEAD_LETTERS.name)


async def test_a_request_that_cannot_be_handled_keeps_its_attributes() -> None:
    failed = request(CreateScope("sc"))
    own = cloud_event_headers("CreateScope", failed.id, failed.by, failed.at, "sc")
    attributes = await dead_letter_of(FailedRecord(REQUESTS_STREAMS.name, 3, 9, "sc", encode_request(failed), own))
    assert {name: attributes[name] for name in attributes_of(own)} == attributes_of(own)
    origin = [attributes[name] for name in ("sluice_topic", "sluice_partition", "sluice_offset")]
    assert origin == [REQUESTS_STREAMS.name, "3", "9"]
    assert (attributes["sluice_service"], attributes["sluice_reason"]) == ("txn-manager/0", "TypeError('no')")


async def test_a_dead_letter_without_attributes_gets_them() -> None:
    attributes = await dead_letter_of(FailedRecord(ABORT.name, 1, 4, "sc/st", b"\xff"))
    assert (attributes["ce_type"], attributes["ce_id"]) == ("UnreadableRecord", f"{ABORT.name}/1/4")
    assert (attributes["ce_source"], attributes["content-type"]) == ("txn-manager/0", "application/octet-stream")


async def test_attributes_that_are_empty_or_missing_are_filled_in_and_the_others_stay() -> None:
    own: Headers = [("ce_id", ""), ("ce_type", None), ("traceparent", "00-1-2-01")]
    own += [("ce_source", "test/9"), ("ce_source", "test/10")]
    attributes = await dead_letter_of(FailedRecord(ABORT.name, 1, 4, "sc/st", b"{}", own))
    assert (attributes["ce_id"], attributes["ce_type"]) == (f"{ABORT.name}/1/4", "UnreadableRecord")
    assert (attributes["ce_source"], attributes["traceparent"]) == ("test/9", "00-1-2-01")


async def test_a_dead_letter_that_was_retried_names_its_last_offset() -> None:
    first = dead_letter_headers({"topic": "a", "partition": "1", "offset": "2"}, [], "k", "test/1", "one", NOW)
    again = await dead_letter_of(FailedRecord("b", 3, 4, "k", b"{}", first))
    assert [again["sluice_topic"], again["sluice_offset"]] == ["b", "4"]
    assert again["sluice_reason"] == "TypeError('no')"
    assert again["ce_id"] == "a/1/2"


async def test_the_settlement_of_a_dead_letter(broker: MemoryBroker) -> None:
    settled = DeadLetterSettled(partition=1, offset=2, how=Settlement.DROPPED, at=NOW, by="api-gateway/0")
    await send_settlement(MemoryProducer(broker), "sc/st", settled)
    assert only(broker, DEAD_LETTERS.name)["ce_type"] == "DeadLetterSettled"


def test_examples_are() -> None:
    for example in examples.all_examples():
        check_cloud_event(example.headers, example.key, example.value)
