"""The removal of records: by one client, however often."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

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
