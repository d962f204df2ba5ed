"""Following a topic of a Kafka that falls silent: a call shows whether it is still there."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from sluice.lookback import kafka
from sluice.lookback.errors import NotFoundError, UnreachableError
from sluice.lookback.kafka import OUTAGE_S, SILENCE_S, KafkaSource
from sluice.lookback.source import Span
from sluice_cli.errors import UsageError
from sluice_cli.session import open_source


class SilentKafka:
    """A consumer to which nothing comes, each time for `POLL_S`; and a broker with the times of calls.

    `away` are the times between which it does not answer. Time passes only here.
    """

    def __init__(self, *away: float) -> None:
        self.now = 0.0
        self.away = away or (float("inf"),) * 2
        self.called_at: list[float] = []

    def assign(self, _partitions: Any) -> None: ...

    def consume(self, _most: int, wait_s: float) -> list[Any]:
        self.now += wait_s
        return []

    def list_topics(self, timeout: float) -> Any:
        self.called_at.append(self.now)
        if self.away[0] <= self.now < self.away[1]:
            self.now += timeout
            raise KafkaException(KafkaError(KafkaError.NETWORK_EXCEPTION))
        return SimpleNamespace(topics={})


def follow(broker: SilentKafka, until_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until that time, or an error."""
    monkeypatch.setattr(kafka, "time", SimpleNamespace(monotonic=lambda: broker.now))
    monkeypatch.setattr(kafka, "AdminClient", lambda _settings: broker)
    monkeypatch.setattr(kafka, "Consumer", lambda _settings: broker)
    for found in KafkaSource("kafka:1", {}, "test").follow([Span("sluice.journal", 0, 0, 0)]):
        assert found is None
        if broker.now > until_s:
            return


def test_a_silent_topic_is_followed_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = SilentKafka()
    follow(broker, 600, monkeypatch)
    assert len(broker.called_at) == pytest.approx(600 / SILENCE_S, abs=2)


def test_an_outage_is_ridden_out(monkeypatch: pytest.MonkeyPatch) -> None:
    follow(SilentKafka(20, 20 + OUTAGE_S / 2), 600, monkeypatch)


def test_a_long_outage_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = SilentKafka(20, float("inf"))
    with pytest.raises(UnreachableError, match="cannot read from Kafka at kafka:1"):
        follow(broker, 600, monkeypatch)
    assert broker.now < 20 + OUTAGE_S + 2 * SILENCE_S


def test_a_configuration_that_cannot_be_used_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_KAFKA_CONF", '{"acks": 1}')
    with pytest.raises(UsageError, match="SLUICE_KAFKA_CONF: acks cannot be set"):
        open_source("kafka:1")


class NewLeader(SilentKafka):
    """A broker that at first knows fewer records than were acknowledged."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = [[message(0)], [message(1, at_end=True)], [message(1), message(2)]]

    def consume(self, most: int, wait_s: float) -> list[Any]:
        return self.batches.pop(0) if self.batches else super().consume(most, wait_s)

    def unassign(self) -> None: ...


def message(offset: int, *, at_end: bool = False) -> Any:
    return SimpleNamespace(
        topic=lambda: "sluice.journal", partition=lambda: 0, offset=lambda: offset, timestamp=lambda: (1, 5),
        key=lambda: b"k", value=lambda: b"v", headers=list,
        error=lambda: SimpleNamespace(code=lambda: KafkaError._PARTITION_EOF) if at_end else None,
    )  # fmt: skip


def test_an_end_before_that_of_the_span_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, span = NewLeader(), Span("sluice.journal", 0, 0, 3)
    monkeypatch.setattr(kafka, "time", SimpleNamespace(monotonic=lambda: broker.now))
    monkeypatch.setattr(kafka, "AdminClient", lambda _settings: broker)
    monkeypatch.setattr(kafka, "Consumer", lambda _settings: broker)
    found = list(KafkaSource("kafka:1", {}, "test").read([span]))
    assert [one if isinstance(one, Span) else one.offset for one in found] == [0, 1, 2, span]


def test_a_topic_that_is_made_after_a_source_was_opened_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {}
    broker = SimpleNamespace(list_topics=lambda **_: SimpleNamespace(topics=dict(made)))
    monkeypatch.setattr(kafka, "AdminClient", lambda _settings: broker)
    monkeypatch.setattr(kafka, "Consumer", lambda _settings: broker)
    source = KafkaSource("kafka:1", {}, "test")
    with pytest.raises(NotFoundError):
        source.partitions("sluice.journal")
    made["sluice.journal"] = SimpleNamespace(partitions=[0, 1, 2])
    assert source.partitions("sluice.journal") == 3
