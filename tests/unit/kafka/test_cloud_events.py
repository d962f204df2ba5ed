"""Everybody who writes a record writes a CloudEvent: one test for each of them."""

import asyncio
import json
from typing import Any, cast

import msgspec
import pytest
from support.cloud_events import attributes_of, check_cloud_event
from support.decisions import hot, sampled
from support.virtual_time import run

from retention_spark.rules import RetentionRule, ScaleRule
from retention_spark.stateful_operator import Decider, Heard
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
    Settlement,
    Source,
    dead_letter_headers,
    send_dead_letter,
    send_settlement,
)
from sluice.kafka.headers import Headers, cloud_event_headers
from sluice.kafka.log import KafkaLog
from sluice.kafka.producer import KafkaProducer
from sluice.kafka.requests import Request, encode_request
from sluice.kafka.topics import ABORT, COMMIT, DEAD_LETTERS, JOURNAL, REQUESTS_CLUSTER, REQUESTS_STREAMS, SCALE
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.runtime import Runtime
from sluice.settings import ServiceSettings
from stream_workflows.report_publisher import Feed

NOW = 1_767_603_600_000
SCALE_RULE = ScaleRule(cooldown_ms=120_000)
RETENTION_RULE = RetentionRule(tick_ms=60_000, pause_ms=0)


class Sent:
    """Takes records as a producer does; `topic`, `key`, `value` and `headers` are those of the last one."""

    def __init__(self) -> None:
        self.records: list[tuple[str, str, bytes, Headers]] = []

    def send(self, topic: str, key: str, value: bytes, headers: Headers) -> asyncio.Future[None]:
        self.records.append((topic, key, value, headers))
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sent.set_result(None)
        return sent

    def send_quietly(self, topic: str, key: str, value: bytes, headers: Headers, failed: Any) -> None:
        assert callable(failed)
        self.records.append((topic, key, value, headers))

    @property
    def producer(self) -> KafkaProducer:
        return cast(KafkaProducer, self)

    def only(self, topic: str) -> dict[str, str]:
        """The attributes of the one record that was sent, to that topic."""
        [(found, key, value, headers)] = self.records
        assert found == topic
        return check_cloud_event(headers, key, value)


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
def test_a_service_that_asks(command: Any, topic: Any) -> None:
    async def test() -> None:
        groups = MemoryGroups(MemoryBroker())
        runtime = Runtime("api-gateway", ServiceSettings(instance="0"), MemoryConnections(groups))
        await runtime.send(topic, request(command))
        [(found,)] = filter(None, groups.broker.logs(topic.name))
        attributes = check_cloud_event(found.headers(), found.key().decode(), found.value())
        assert (attributes["ce_type"], attributes["ce_id"]) == (type(command).__name__, "r-1")
        assert attributes["ce_source"] == "api-gateway/0"
        assert attributes["ce_time"] == "2026-01-05T09:00:00.000+00:00"

    run(test())


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
def test_a_service_that_appends_to_the_journal(entry: JournalEntry, kind: str) -> None:
    async def test() -> None:
        sent, record = Sent(), JournalRecord(id="a-1", at=NOW, by="test/1", entries=(entry,))
        facts = RecordFacts(record_kind(record), record.id, record.by, record.at)
        KafkaLog({}, sent.producer, 4).append("sc", encode_record(record), facts, {}, lambda _error: None)
        attributes = sent.only(JOURNAL.name)
        assert (attributes["ce_id"], attributes["ce_source"]) == (record.id, record.by)
        assert attributes["ce_type"] == kind

    run(test())


def test_stream_workflows_that_tells_of_a_stream() -> None:
    async def test() -> None:
        for report in (hot("st", NOW), sampled("st", NOW, 500)):
            sent = Sent()
            await Feed(sent.producer, "stream-workflows/0", SystemClock()).tell(report)
            [(topic, *_)] = sent.records
            attributes = sent.only(topic)
            assert (attributes["ce_type"], attributes["ce_id"]) == (type(report).__name__, report.id)

    run(test())


def test_stream_workflows_that_cannot_read_what_a_segment_holds() -> None:
    async def test() -> None:
        sent = Sent()
        segment = "_system/_requeststream/0.#epoch.0"
        await Feed(sent.producer, "stream-workflows/0", SystemClock()).give_up(
            "_system/_requeststream", segment, 77, b"\x00", "why"
        )
        attributes = sent.only(DEAD_LETTERS.name)
        assert (attributes["ce_type"], attributes["ce_id"]) == ("UnreadableRecord", f"{segment}/77")
        assert attributes["content-type"] == "application/octet-stream"
        assert (attributes["sluice_segment"], attributes["sluice_offset"]) == (segment, "77")
        assert attributes["sluice_reason"] == "why"

    run(test())


@pytest.mark.parametrize(
    ("rule", "report"),
    [(SCALE_RULE, hot("st", NOW)), (RETENTION_RULE, sampled("st", NOW, 500))],
    ids=["scaling", "retention"],
)
def test_retention_spark_that_asks_and_notes(rule: Any, report: Any) -> None:
    told = Heard("any", 0, 0, "s/st", msgspec.json.encode(report))
    step = Decider(rule, "retention-spark/0").step(None, [told], NOW)
    assert step.sendings
    for sending in step.sendings:
        attributes = check_cloud_event(sending.headers, sending.key, sending.value)
        assert attributes["ce_id"] == json.loads(sending.value)["id"]
        assert attributes["ce_source"] == "retention-spark/0"


def test_retention_spark_that_cannot_read_a_report() -> None:
    odd = Heard(SCALE.name, 3, 7, "s/x", b"{")
    (letter,) = Decider(SCALE_RULE, "retention-spark/0").step(None, [odd], NOW).sendings
    attributes = check_cloud_event(letter.headers, letter.key, letter.value)
    assert attributes["ce_id"] == f"{SCALE.name}/3/7"
    assert (attributes["ce_type"], attributes["ce_source"]) == ("UnreadableRecord", "retention-spark/0")


def given_up(source: Source) -> dict[str, str]:
    sent = Sent()

    async def test() -> None:
        await send_dead_letter(sent.producer, source, "txn-manager/0", "TypeError('no')")

    run(test())
    return sent.only(DEAD_LETTERS.name)


def test_whoever_cannot_handle_a_request_passes_it_on_as_it_is() -> None:
    asked = request(CreateScope("sc"))
    own = cloud_event_headers("CreateScope", asked.id, asked.by, asked.at, "sc")
    attributes = given_up(Source(REQUESTS_STREAMS.name, 3, 9, "sc", encode_request(asked), own))
    assert {name: attributes[name] for name in attributes_of(own)} == attributes_of(own)
    place = [attributes[name] for name in ("sluice_topic", "sluice_partition", "sluice_offset")]
    assert place == [REQUESTS_STREAMS.name, "3", "9"]
    assert (attributes["sluice_service"], attributes["sluice_reason"]) == ("txn-manager/0", "TypeError('no')")


def test_whoever_cannot_handle_what_came_without_attributes_gives_it_some() -> None:
    attributes = given_up(Source(ABORT.name, 1, 4, "sc/st", b"\xff"))
    assert (attributes["ce_type"], attributes["ce_id"]) == ("UnreadableRecord", f"{ABORT.name}/1/4")
    assert (attributes["ce_source"], attributes["content-type"]) == ("txn-manager/0", "application/octet-stream")


def test_attributes_that_are_empty_or_missing_are_filled_in_and_the_others_stay() -> None:
    own: Headers = [("ce_id", ""), ("ce_type", None), ("traceparent", "00-1-2-01")]
    own += [("ce_source", "test/9"), ("ce_source", "test/10")]
    attributes = given_up(Source(ABORT.name, 1, 4, "sc/st", b"{}", own))
    assert (attributes["ce_id"], attributes["ce_type"]) == (f"{ABORT.name}/1/4", "UnreadableRecord")
    assert (attributes["ce_source"], attributes["traceparent"]) == ("test/9", "00-1-2-01")


def test_what_was_sent_again_and_given_up_again_says_where_it_stood_last() -> None:
    first = dead_letter_headers({"topic": "a", "partition": "1", "offset": "2"}, [], "k", "test/1", "one", NOW)
    again = given_up(Source("b", 3, 4, "k", b"{}", first))
    assert [again["sluice_topic"], again["sluice_offset"]] == ["b", "4"]
    assert again["sluice_reason"] == "TypeError('no')"
    assert again["ce_id"] == "a/1/2"


def test_whoever_settles_a_dead_letter() -> None:
    sent = Sent()
    settled = DeadLetterSettled(partition=1, offset=2, how=Settlement.DROPPED, at=NOW, by="api-gateway/0")

    async def test() -> None:
        await send_settlement(sent.producer, "sc/st", settled)

    run(test())
    assert sent.only(DEAD_LETTERS.name)["ce_type"] == "DeadLetterSettled"


def test_examples_are() -> None:
    for example in examples.all_examples():
        check_cloud_event(example.headers, example.key, example.value)
