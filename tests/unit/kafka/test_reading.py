"""A reading goes on through what passes, and ends with what does not."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from sluice.kafka import reading
from sluice.kafka.reading import read_records

SILENCE_S = 15.0
END = KafkaError._PARTITION_EOF


class Broker:
    """In the place of a consumer: gives what is in `answers`, None for a poll in which nothing comes."""

    def __init__(self, *answers: tuple[int, int] | None) -> None:
        self.now = 0.0
        self.is_closed = False
        self._answers = list(answers)

    def assign(self, _partitions: list[Any]) -> None: ...

    def poll(self, wait_s: float) -> Any:
        answer = self._answers.pop(0) if self._answers else None
        if answer is None:
            self.now += wait_s
            return None
        offset, code = answer
        error = KafkaError(code) if code else None
        return SimpleNamespace(partition=lambda: 0, offset=lambda: offset, error=lambda: error)

    def consume(self, _most: int, _wait_s: float) -> list[Any]:
        return []

    def close(self) -> None:
        self.is_closed = True


def read(broker: Broker, monkeypatch: pytest.MonkeyPatch, last: int | None = None) -> list[int]:
    def consumer(_config: Mapping[str, Any]) -> Broker:
        return broker

    monkeypatch.setattr(reading, "Consumer", consumer)
    monkeypatch.setattr(reading, "time", SimpleNamespace(monotonic=lambda: broker.now))
    return [message.offset() or 0 for message in read_records({}, "test", "topic", {0: (0, last)}, SILENCE_S)]


@pytest.mark.parametrize(
    ("answers", "last", "found"),
    [
        ([(0, 0), (1, 0), (2, END)], None, [0, 1]),
        ([(0, 0), (1, 0), (2, 0)], 1, [0, 1]),
        ([(0, 0), (5, 0)], 3, [0]),
        ([(0, 0), (1, END)], 3, [0]),
    ],
    ids=["to the end", "to the last", "the last was removed", "the partition ends before"],
)
def test_it_ends_where_the_span_or_the_partition_does(
    answers: list[tuple[int, int]], last: int | None, found: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(*answers)
    assert read(broker, monkeypatch, last) == found
    assert broker.is_closed


def test_what_passes_is_ridden_out(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = [None] * round(SILENCE_S / reading.POLL_S - 2)
    broker = Broker(*quiet, (0, KafkaError._TRANSPORT), (0, 0), *quiet, (1, END))
    assert read(broker, monkeypatch) == [0]


@pytest.mark.parametrize(
    ("reported", "why"),
    [([], "nothing came for 15 s"), ([(0, KafkaError._TRANSPORT), None] * 1000, "Broker transport failure")],
    ids=["nothing", "what passes"],
)
def test_silence_is_an_error(reported: list[tuple[int, int] | None], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker((0, 0), *reported)
    with pytest.raises(KafkaException, match=why):
        read(broker, monkeypatch)
    assert broker.is_closed and broker.now < 2 * SILENCE_S


def test_what_no_patience_mends_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker((0, KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaException):
        read(broker, monkeypatch)
    assert broker.now == 0
