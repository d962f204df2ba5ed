"""Answers of Kafka's AdminClient: what it gives, what it raises, and none at all."""

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from sluice.kafka.answers import GRACE_S, result_of


def test_an_answer_or_its_error_is_given() -> None:
    answer: Future[int] = Future()
    answer.set_result(5)
    assert result_of(answer, 1.0) == 5
    refused: Future[int] = Future()
    refused.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC"):
        result_of(refused, 1.0)


def test_an_answer_that_never_comes_is_an_error() -> None:
    """Seen when a broker was started again while records were deleted: all trimming waited for ever."""
    with pytest.raises(KafkaException, match="gave no answer"):
        result_of(Future(), -GRACE_S)
