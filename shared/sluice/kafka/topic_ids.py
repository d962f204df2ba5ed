"""Which topic of a name: Kafka gives each an id, which one that is made anew does not share. Blocking."""

from collections.abc import Sequence

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

_MASK_64 = (1 << 64) - 1


def topic_ids(admin: AdminClient, topics: Sequence[str], timeout_s: float) -> dict[str, str]:
    """The ids of topics, 32 hexadecimal digits each. Raises KafkaException, also for a topic that is not there."""
    # Any broker answers this, and names one that is there. Ids the client wants of the controller that it remembers,
    # and it would wait for that one however long it is gone.
    admin.list_topics(topics[0], timeout=timeout_s)
    found = {}
    for name, answer in admin.describe_topics(TopicCollection(list(topics)), request_timeout=timeout_s).items():
        id = answer.result().topic_id
        bits = id.get_most_significant_bits() & _MASK_64, id.get_least_significant_bits() & _MASK_64
        found[name] = f"{bits[0]:016x}{bits[1]:016x}"
    return found
