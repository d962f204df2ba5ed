"""The removal of records: by one client, however often."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition

from sluice.kafka import deleting
from sluice.kafka.deleting import RecordDeleter


class IdleAdmin:
    """As long as its queue, like confluent_kafka's."""

    made = 0

    def __init__(self, _config: Mapping[str, Any]) -> None:
        IdleAdmin.made += 1

    def __len__(self) -> int:
        return 0

    def delete_records(self, wanted: Sequence[TopicPartition], request_timeout: float) -> dict[Any, Future[Any]]:
        assert request_timeout > 0
        answers: dict[Any, Future[Any]] = {}
        for partition in wanted:
            answers[partition] = Future()
            answers[partition].set_result(SimpleNamespace(low_watermark=partition.offset))
        return answers


def test_one_client_serves_all_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is dropped would be collected on the thread that deletes, which ends the process."""
    monkeypatch.setattr(deleting, "AdminClient", IdleAdmin)
    deleter = RecordDeleter({})
    assert [deleter.delete("t", {0: n, 1: n}) for n in (5, 6)] == [{0: 5, 1: 5}, {0: 6, 1: 6}]
    assert IdleAdmin.made == 1


def test_what_is_no_offset_removes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """To Kafka -1 means all records."""
    monkeypatch.setattr(deleting, "AdminClient", IdleAdmin)
    with pytest.raises(ValueError, match="no offsets"):
        RecordDeleter({}).delete("t", {0: 5, 1: -1})


class OldAdmin(IdleAdmin):
    """Of a topic whose records are all older than requested; who leads `silent` partitions does not answer."""

    silent: frozenset[int] = frozenset()

    def list_offsets(self, wanted: Mapping[TopicPartition, Any], request_timeout: float) -> dict[Any, Future[Any]]:
        assert request_timeout > 0
        answers: dict[Any, Future[Any]] = {}
        for partition in wanted:
            answers[partition] = Future()
            answers[partition].set_result(SimpleNamespace(offset=-1001 if partition.partition in self.silent else -1))
        return answers


def test_a_broker_that_does_not_answer_is_not_taken_for_one_that_has_nothing_young(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deleting, "AdminClient", OldAdmin)
    deleter = RecordDeleter({})
    assert deleter.delete("t", {0: 5, 1: 6}, appended_before_ms=100) == {0: 5, 1: 6}
    monkeypatch.setattr(OldAdmin, "silent", frozenset({1}))
    with pytest.raises(KafkaException):
        deleter.delete("t", {0: 5, 1: 6}, appended_before_ms=100)
