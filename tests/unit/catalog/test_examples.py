"""The examples: none is missing, each is what a service would write, together they make a history that counts."""

import re

import msgspec
import pytest

from sluice.catalog import examples
from sluice.catalog.schemas import COMMANDS, EVENTS
from sluice.domain.model import DomainModel, JournalEntry, decode_record, encode_record
from sluice.domain.names import key_of
from sluice.domain.registry import DECIDE, EVOLVE
from sluice.domain.stream.events import StreamCreated
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.traffic import ScaleReport
from sluice.engine.fold import Outcome, PartitionView
from sluice.engine.record import record_kind
from sluice.kafka.requests import decode_request, encode_request
from sluice.kafka.topics import ABORT, COMMIT, REQUESTS_STREAMS, RETENTION, SCALE, TOPICS, topics_of


def entries() -> list[JournalEntry]:
    """All of the examples' journal, in order."""
    return [entry for example in examples.journal_records() for entry in decode_record(example.value).entries]


def test_every_command_is_there_in_each_topic_it_passes() -> None:
    there = {(example.type, example.topic) for example in examples.requests()}
    assert there == {(kind.__name__, topic.name) for kind in COMMANDS for topic in topics_of(kind)}


def test_every_event_is_there() -> None:
    there = {type(event) for entry in entries() for event in entry.events}
    assert there == set(EVENTS)
    assert set(EVENTS) == EVOLVE.keys()


def test_every_topic_is_there() -> None:
    assert {example.topic for example in examples.all_examples()} == {topic.name for topic in TOPICS}


def test_a_request_is_as_it_is_sent() -> None:
    for example in examples.requests():
        request = decode_request(example.value)
        assert encode_request(request) == example.value
        assert example.key == request.command.key
        assert example.header("ce_subject") == example.key
        assert (example.type, example.header("ce_id")) == (type(request.command).__name__, request.id)
        assert example.header("ce_source") == request.by


def test_a_record_is_as_it_is_appended() -> None:
    for example in examples.journal_records():
        record = decode_record(example.value)
        assert encode_record(record) == example.value
        assert (example.type, example.header("ce_id")) == (record_kind(record), record.id)
        for entry in record.entries:
            assert {key_of(event.aggregate) for event in entry.events} <= {example.key}
            assert all(event.aggregate in entry.expect for event in entry.events)
            assert (entry.request is None) == (entry.reply is None), "a request is named where its reply is"


def test_an_entry_that_decides_a_request_says_where_that_stands() -> None:
    for example in examples.journal_records():
        record = decode_record(example.value)
        sources = [entry.source for entry in record.entries if entry.source is not None]
        assert {source.topic for source in sources} == record.floors.keys()
        assert all(re.fullmatch(r"sluice\.[a-z.]+@[0-9a-f]{32}", source.topic) for source in sources)
        assert all(record.floors[source.topic] <= source.position for source in sources)
    topics = {entry.source.topic.partition("@")[0] for entry in entries() if entry.source is not None}
    assert topics >= {REQUESTS_STREAMS.name, COMMIT.name, ABORT.name}


def test_a_workflows_last_entry_has_the_reply_and_no_source() -> None:
    last = next(entry for entry in entries() if any(isinstance(event, StreamCreated) for event in entry.events))
    assert last.source is None and last.request is not None and last.reply is not None


def test_requests_that_came_together_share_a_record() -> None:
    assert any(len(decode_record(example.value).entries) > 1 for example in examples.journal_records())


def test_the_records_make_a_history() -> None:
    view, last = PartitionView(DomainModel()), 0
    for offset, example in enumerate(examples.journal_records()):
        record = decode_record(example.value)
        assert set(view.fold(record, offset, record.at)) == {Outcome.COUNTED}, example
        assert record.at >= last, example
        last = record.at
    left = [name for name, _ in view.aggregates() if name.startswith("scope:")]
    assert left == ["scope:depot"], "the others are deleted in the end"


@pytest.mark.parametrize(("topic", "kind"), [(SCALE, ScaleReport), (RETENTION, RetentionReport)])
def test_a_report_is_as_it_is_sent(topic: object, kind: type[ScaleReport] | type[RetentionReport]) -> None:
    reports = [example for example in examples.reports() if example.type == kind.__name__]
    assert len(reports) == 2
    for example in reports:
        report = msgspec.json.decode(example.value, type=kind)
        assert msgspec.json.encode(report) == example.value
        assert example.key == f"{report.scope}/{report.stream}"
        assert example.topic == getattr(topic, "name", None)


def test_an_unknown_field_changes_nothing() -> None:
    for example in examples.requests():
        later = examples.with_unknown_field(example)
        assert later.value != example.value
        assert decode_request(later.value) == decode_request(example.value)
    for example in examples.journal_records():
        assert decode_record(examples.with_unknown_field(example).value) == decode_record(example.value)
    for example, kind in zip(examples.reports(), (ScaleReport,) * 2 + (RetentionReport,) * 2, strict=True):
        later = examples.with_unknown_field(example)
        assert msgspec.json.decode(later.value, type=kind) == msgspec.json.decode(example.value, type=kind)


def test_an_unknown_type_is_refused() -> None:
    for example in examples.requests():
        later = examples.of_unknown_type(example)
        assert later.type == later.json()["command"]["type"] == "UnheardOf"
        with pytest.raises(msgspec.ValidationError):
            decode_request(later.value)
    for example in examples.journal_records():
        if example.type != "Refusal":
            with pytest.raises(msgspec.ValidationError):
                decode_record(examples.of_unknown_type(example).value)


def test_every_command_has_a_decider() -> None:
    decided_elsewhere = {"CheckLease", "Heartbeat"}
    decided_elsewhere |= {"OpenTransaction", "PingTransaction", "CommitTransaction", "AbortTransaction"}
    assert {kind.__name__ for kind in COMMANDS} == {kind.__name__ for kind in DECIDE} | decided_elsewhere
