"""What brokers answer when they are asked for offsets (ListOffsets)."""

from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo

NONE_SO_LATE = -1
"""The offset of the first record since a time, where no record is as late as that."""


def offset_of(answer: "Future[ListOffsetsResultInfo]", least: int = 0) -> int:
    """The offset, when it is answered; `least` is NONE_SO_LATE for a question about a time. Raises KafkaException.

    A broker that does not answer in time is no error to the client: it gives -1001.
    """
    offset = int(answer.result().offset)
    if offset < least:
        raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))
    return offset
