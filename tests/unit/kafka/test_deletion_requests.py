"""What is requested to be deleted stays whose it is."""

import sys

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from sluice.kafka.deleting import request_deletion


def test_a_list_of_what_is_to_be_deleted_loses_no_reference() -> None:
    """Where no broker answers, either."""
    admin = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    wanted = [TopicPartition("journal", 0, 7)]
    counted = sys.getrefcount(wanted)
    answers = [request_deletion(admin, wanted, 1.0) for _ in range(5)]
    assert sys.getrefcount(wanted) == counted
    assert len(answers) == 5
