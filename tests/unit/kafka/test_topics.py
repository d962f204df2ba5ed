"""The topics of a new cluster: they are there only when every partition has a leader. And what settings they have."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from sluice.kafka import topics as module
from sluice.kafka.topics import (
    BROKERS_OWN,
    JOURNAL,
    SCALE,
    STATISTICS,
    TOPICS,
    ensure_topics,
    present_settings,
    too_few_in_sync,
    unfit_settings,
)

NO_LEADER = KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
MISSING = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))


class Broker:
    """Lists topics at once and leads the last partition of each only after some requests."""

    def __init__(self, requests_before_leading: int) -> None:
        self.left = requests_before_leading
        self.requested: set[tuple[str, int]] = set()
        self.present: dict[str, Any] = {}
        self.made: list[Any] = []
        self.settings: dict[str, dict[str, str] | KafkaException] = {topic.name: topic.config() for topic in TOPICS}

    def __call__(self, _client: object) -> "Broker":
        return self

    def list_topics(self, timeout: float) -> Any:
        assert timeout >= 0
        return SimpleNamespace(topics=self.present)

    def create_topics(
        self, new: list[Any], operation_timeout: float, request_timeout: float
    ) -> dict[str, Future[None]]:
        assert request_timeout > operation_timeout
        self.made += new
        return {topic.topic: done(None) for topic in new}

    def list_offsets(self, ends: dict[TopicPartition, Any], request_timeout: float) -> dict[Any, Future[Any]]:
        self.requested |= {(partition.topic, partition.partition) for partition in ends}
        self.left -= 1
        return {
            partition: done(NO_LEADER if self.left >= 0 and partition.partition == 1 else SimpleNamespace(offset=0))
            for partition in ends
        }

    def describe_configs(self, resources: list[Any], request_timeout: float) -> dict[Any, Future[Any]]:
        assert request_timeout > 0
        return {resource: done(self._entries(resource.name)) for resource in resources}

    def _entries(self, topic: str) -> Any:
        found = self.settings[topic]
        if isinstance(found, KafkaException):
            return found
        return {name: SimpleNamespace(value=value) for name, value in found.items()}


def done(outcome: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
    return future


def test_new_topics_are_there_when_every_partition_has_a_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEADERS_PAUSE_S", 0.0)
    monkeypatch.setattr(module, "AdminClient", broker := Broker(requests_before_leading=3))
    ensure_topics({}, partitions=2, replication=1)
    assert broker.left == -1, "each failed request is followed by another one"
    assert broker.requested == {(topic.name, p) for topic in TOPICS for p in range(topic.partitions or 2)}


def test_topics_without_leaders_fail_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AdminClient", Broker(requests_before_leading=1000))
    with pytest.raises(KafkaException, match="NOT_LEADER"):
        ensure_topics({}, partitions=2, replication=1, timeout_s=0.0)


@pytest.mark.parametrize(("replication", "config"), [(BROKERS_OWN, None), (1, "1"), (2, "1"), (3, "2")])
def test_all_replicas_of_a_new_topic_but_one_have_a_record_before_it_is_acknowledged(
    monkeypatch: pytest.MonkeyPatch, replication: int, config: str | None
) -> None:
    monkeypatch.setattr(module, "AdminClient", broker := Broker(requests_before_leading=0))
    assert ensure_topics({}, partitions=2, replication=replication) == []
    assert {topic.replication_factor for topic in broker.made} == {replication}
    assert {topic.config.get("min.insync.replicas") for topic in broker.made} == {config}


def test_topics_with_fewer_replicas_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AdminClient", broker := Broker(requests_before_leading=0))
    for topic, replicas in (TOPICS[0], [1, 2]), (TOPICS[1], [1, 2, 3]):
        partitions = {p: SimpleNamespace(replicas=replicas) for p in range(topic.partitions or 2)}
        broker.present[topic.name] = SimpleNamespace(partitions=partitions)
    assert ensure_topics({}, partitions=2, replication=3) == [TOPICS[0].name]


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker(requests_before_leading=0)
    monkeypatch.setattr(module, "AdminClient", broker)
    return broker


def test_a_missing_topic_is_named_and_hides_no_setting_of_another(broker: Broker) -> None:
    assert unfit_settings(present_settings({})) == []
    broker.settings[SCALE.name] = MISSING
    broker.settings[JOURNAL.name] = {**JOURNAL.config(), "retention.ms": "1"}
    found = unfit_settings(present_settings({}))
    assert found == [f"{SCALE.name} is missing", f"{JOURNAL.name} has retention.ms=1, and must have -1"]


def test_settings_that_kafka_does_not_show_are_a_failure(broker: Broker) -> None:
    broker.settings[SCALE.name] = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaException, match="AUTHORIZATION"):
        present_settings({})


@pytest.mark.parametrize(("replication", "least"), [(1, 1), (2, 1), (3, 2), (4, 3)])
def test_a_topic_that_fewer_replicas_acknowledge_than_all_but_one_is_named(
    broker: Broker, replication: int, least: int
) -> None:
    for topic in TOPICS:
        broker.settings[topic.name] = {"min.insync.replicas": str(least)}
    broker.settings[STATISTICS.name] = MISSING
    assert too_few_in_sync(present_settings({}), replication) == ""
    broker.settings[JOURNAL.name] = {"min.insync.replicas": str(least - 1)}
    found = too_few_in_sync(present_settings({}), replication)
    assert found == f"min.insync.replicas is less than {least}: {JOURNAL.name}"
