"""The topics of a new cluster: they are there only when every partition has a leader."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from sluice.kafka import topics as module
from sluice.kafka.topics import TOPICS, ensure_topics

NO_LEADER = KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))


class Broker:
    """Lists topics at once and leads the last partition of each only after some requests."""

    def __init__(self, requests_before_leading: int) -> None:
        self.left = requests_before_leading
        self.requested: set[tuple[str, int]] = set()

    def __call__(self, _client: object) -> "Broker":
        return self

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(topics={})

    def create_topics(self, new: list[Any], operation_timeout: float) -> dict[str, Future[None]]:
        return {topic.topic: done(None) for topic in new}

    def list_offsets(self, ends: dict[TopicPartition, Any], request_timeout: float) -> dict[Any, Future[Any]]:
        self.requested |= {(partition.topic, partition.partition) for partition in ends}
        self.left -= 1
        return {
            partition: done(NO_LEADER if self.left >= 0 and partition.partition == 1 else SimpleNamespace(offset=0))
            for partition in ends
        }


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
