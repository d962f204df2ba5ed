"""Where topics end, through failures of the client that says so."""

from collections.abc import Iterable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from retention_spark import topic_ends
from retention_spark.topic_ends import Ends, ends_reader
from sluice.kafka.offsets import PartitionId


def test_a_client_is_kept_until_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    clients: list[dict[str, Any]] = []
    failing = False

    def ends_of(client: int, partitions: Iterable[PartitionId], _timeout_s: float) -> Ends:
        if failing:
            raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))
        return dict.fromkeys(partitions, client)

    def connect(config: dict[str, Any]) -> int:
        clients.append(config)
        return len(clients)

    monkeypatch.setattr(topic_ends, "AdminClient", connect)
    monkeypatch.setattr(topic_ends, "ends_of", ends_of)
    read_ends = ends_reader({})
    assert [read_ends([("t", 0)]) for _ in range(2)] == [{("t", 0): 1}] * 2
    failing = True
    with pytest.raises(KafkaException):
        read_ends([("t", 0)])
    failing = False
    assert read_ends([("t", 0)]) == {("t", 0): 2}
