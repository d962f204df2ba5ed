"""Which topic of a name: Kafka gives each an id, which one that is made anew does not share. Blocking."""

import time
from collections.abc import Sequence

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from sluice.kafka.answers import result_of

_MASK_64 = (1 << 64) - 1


def topic_ids(admin: AdminClient, topics: Sequence[str], timeout_s: float) -> dict[str, str]:
    """The ids of topics, 32 hexadecimal digits each. Raises KafkaException, also for a topic that is not there."""
    until = time.monotonic() + timeout_s
    # A broker that answers this names one that it does not know to be gone. Ids the client wants of the controller that
    # it remembers, and it would wait for that one however long it is gone. Of all topics: a question for one of them
    # makes it, where brokers make topics by themselves.
    admin.list_topics(timeout=timeout_s)
    left_s = max(0.1, until - time.monotonic())
    found = {}
    for name, answer in admin.describe_topics(TopicCollection(list(topics)), request_timeout=left_s).items():
        id = result_of(answer, left_s).topic_id
        bits = id.get_most_significant_bits() & _MASK_64, id.get_least_significant_bits() & _MASK_64
        found[name] = f"{bits[0]:016x}{bits[1]:016x}"
    return found
