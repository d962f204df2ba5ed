"""The examples: none is missing, each is what a service would write, together they make a history that counts."""

import msgspec
import pytest

from sluice.catalog import examples
from sluice.catalog.schemas import COMMANDS, EVENTS
from sluice.domain.aggregates import DECIDE, EVOLVE, evolve, index
from sluice.domain.names import key_of
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.traffic import ScaleReport
from sluice.journal.partition_view import Outcome, PartitionView
from sluice.journal.record import decode_record, encode_record, record_type
from sluice.messaging.requests import decode_request, encode_request
from sluice.messaging.topics import JOURNAL, RETENTION, SCALE, TOPICS, topics_of


def test_every_command_is_there_in_each_topic_it_passes() -> None:
    there = {(example.type, example.topic) for example in examples.requests()}
    assert there == {(kind.__name__, topic.name) for kind in COMMANDS for topic in topics_of(kind)}


def test_every_event_is_there() -> None:
    there = {type(event) for example in examples.journal_records() for event in decode_record(example.value).events}
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
        assert (example.type, example.header("ce_id")) == (record_type(record), record.id)
        assert {key_of(event.aggregate) for event in record.events} <= {example.key}
        assert all(event.aggregate in record.expect for event in record.events)


def test_the_records_make_a_history() -> None:
    view, last = PartitionView(evolve, index), 0
    for offset, example in enumerate(examples.journal_records()):
        record = decode_record(example.value)
        assert view.fold(record, offset, record.at) is Outcome.COUNTED, example
        assert record.at >= last, example
        last = record.at
    left = [name for name, _ in view.aggregates() if name.startswith("scope:")]
    assert left == [], "the scope is deleted in the end"


def test_a_record_out_of_its_place_does_not_count() -> None:
    view = PartitionView(evolve, index)
    second = next(e for e in examples.journal_records() if e.type == "StreamScaled")
    assert view.fold(decode_record(second.value), 0, 0) is Outcome.STALE


@pytest.mark.parametrize(("topic", "kind"), [(SCALE, ScaleReport), (RETENTION, RetentionReport)])
def test_a_report_is_as_it_is_told(topic: object, kind: type[ScaleReport] | type[RetentionReport]) -> None:
    told = [example for example in examples.reports() if example.type == kind.__name__]
    assert len(told) == 2
    for example in told:
        report = msgspec.json.decode(example.value, type=kind)
        assert msgspec.json.encode(report) == example.value
        assert example.key == f"{report.scope}/{report.stream}"
        assert example.topic == getattr(topic, "name", None)


def test_a_field_nobody_knows_changes_nothing() -> None:
    for example in examples.requests():
        later = examples.with_unknown_field(example)
        assert later.value != example.value
        assert decode_request(later.value) == decode_request(example.value)
    for example in examples.journal_records():
        assert decode_record(examples.with_unknown_field(example).value) == decode_record(example.value)
    for example, kind in zip(examples.reports(), (ScaleReport,) * 2 + (RetentionReport,) * 2, strict=True):
        later = examples.with_unknown_field(example)
        assert msgspec.json.decode(later.value, type=kind) == msgspec.json.decode(example.value, type=kind)


def test_a_type_nobody_knows_is_refused() -> None:
    for example in examples.requests():
        later = examples.of_unknown_type(example)
        assert later.type == later.json()["command"]["type"] == "UnheardOf"
        with pytest.raises(msgspec.ValidationError):
            decode_request(later.value)
    for example in examples.journal_records():
        if example.json().get("events"):
            with pytest.raises(msgspec.ValidationError):
                decode_record(examples.of_unknown_type(example).value)


def test_what_names_no_type_cannot_be_of_another() -> None:
    refusal = next(example for example in examples.journal_records() if example.type == "Refusal")
    assert refusal.topic == JOURNAL.name
    for example in (refusal, *examples.reports()):
        with pytest.raises(ValueError, match="does not name its type"):
            examples.of_unknown_type(example)


def test_every_command_that_is_decided_alone_has_somebody_who_decides() -> None:
    decided_elsewhere = {"CheckLease", "Heartbeat"}
    decided_elsewhere |= {"OpenTransaction", "PingTransaction", "CommitTransaction", "AbortTransaction"}
    assert {kind.__name__ for kind in COMMANDS} == {kind.__name__ for kind in DECIDE} | decided_elsewhere
