"""Whether a record is acknowledged, by what librdkafka's producer reports of its delivery."""

from confluent_kafka import KafkaError, Message


def delivery_error(error: KafkaError | None, message: Message) -> KafkaError | None:
    """Why the record does not count as acknowledged; None if it does.

    One without an offset was taken for a repetition. Mostly it is one; but a broker that has nothing of this producer
    in a partition, because that is new, takes any request for the first: one that was refused for lack of a leader,
    and overtaken by the next, is then "repeated" and nowhere.
    """
    if error is None and message.offset() is None:
        return KafkaError(KafkaError._FAIL, "the broker took it for a repetition")  # noqa: SLF001 - that is its public name
    return error
