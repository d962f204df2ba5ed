"""What an AdminClient answers, waited for little longer than it was requested to take. Blocking."""

from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

T = TypeVar("T")

GRACE_S = 5.0
"""How much later than requested an answer may come. Of a broker that went meanwhile librdkafka may never give one."""


def result_of(answer: Future[T], timeout_s: float) -> T:
    """The answer to what was requested with this time-out. Raises KafkaException."""
    try:
        error = answer.exception(timeout_s + GRACE_S)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT, "Kafka's client gave no answer")) from None
    if isinstance(error, KafkaException):
        # Not the error itself: by its traceback and the answer it would hold itself, and the client with it.
        raise KafkaException(*error.args)
    return answer.result()
