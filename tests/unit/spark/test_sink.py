"""The records of a batch on their way to Kafka: however many there are, and dead letters are logged."""

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from retention_spark.sink import NotDeliveredError, send
from sluice.engine.partition import partition_of
from sluice.policies.rules import ScaleRule
from sluice.workflows.dead_lettering import count_dead_letters
from sluice.workflows.report_decider import OutgoingRecord, ReportDecider, ReportRecord

TOPIC = "test-sink"


class SmallProducer:
    """Takes two records at a time; the next ones only once it was polled."""

    offset: int | None = 0

    def __init__(self) -> None:
        self.sent: list[str] = []
        self._waiting: list[Callable[[Any, Any], None]] = []

    def produce(
        self,
        _topic: str,
        _value: bytes,
        key: str,
        partition: int,
        *,
        on_delivery: Callable[[Any, Any], None],
        **_: Any,
    ) -> None:
        assert partition == partition_of(key, 4)
        if len(self._waiting) == 2:
            raise BufferError
        self.sent.append(key)
        self._waiting.append(on_delivery)

    def poll(self, seconds: float) -> int:
        if seconds > 0:
            self.flush(seconds)
        return 0

    def flush(self, _seconds: float) -> int:
        for delivered in self._waiting:
            delivered(None, SimpleNamespace(offset=lambda: self.offset))
        self._waiting.clear()
        return 0


class FullProducer(SmallProducer):
    def produce(self, *_arguments: Any, **_: Any) -> None:
        raise BufferError


def test_a_batch_may_hold_more_than_the_queue() -> None:
    producer = SmallProducer()
    keys = [f"s/{number}" for number in range(9)]
    send(producer, [OutgoingRecord(TOPIC, key, b"", []) for key in keys], 4)
    assert producer.sent == keys


def test_what_is_acknowledged_without_an_offset_may_be_nowhere() -> None:
    producer = SmallProducer()
    producer.offset = None
    with pytest.raises(NotDeliveredError, match="repetition"):
        send(producer, [OutgoingRecord(TOPIC, "s/x", b"", [])], 4)


def test_a_queue_that_stays_full_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retention_spark.sink.DELIVERED_S", 0.0)
    with pytest.raises(NotDeliveredError, match="full"):
        send(FullProducer(), [OutgoingRecord(TOPIC, "s/x", b"", [])], 4)


def test_dead_letters_are_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    decider = ReportDecider(ScaleRule(), "retention-spark/0")
    step = decider.step(None, [ReportRecord(TOPIC, 3, 7, "s/x", b"{")], 1)
    with caplog.at_level(logging.ERROR):
        count_dead_letters(step.sendings)
    assert REGISTRY.get_sample_value("sluice_dead_letters_total", {"topic": TOPIC}) == 1
    (record,) = caplog.records
    assert (record.message, record.__dict__["offset"]) == ("dead letter", "7")
