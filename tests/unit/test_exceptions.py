"""What operators read of an exception."""

import pytest
from confluent_kafka import KafkaError, KafkaException

import sluice.kafka_config.clients  # noqa: F401 - it says what Kafka's are in words
from sluice.exceptions import in_words


class StoreError(Exception):
    """One of ours."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (StoreError("the store said no"), "StoreError: the store said no"),
        (KeyError("orders"), "KeyError: 'orders'"),
        (TimeoutError(), "TimeoutError"),
        (StoreError("first line\n  and a second\n"), "StoreError: first line and a second"),
        (StoreError("half a pair \udcff"), "StoreError: half a pair ?"),
        (KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)), "Broker: Unknown topic or partition"),
        (KafkaException("no error of a broker"), "Kafka: no error of a broker"),
    ],
)
def test_an_exception_is_one_line_that_says_what_kind_it_is(error: Exception, words: str) -> None:
    assert in_words(error) == words
