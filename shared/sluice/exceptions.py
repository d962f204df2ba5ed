"""An exception in words, for those who read what went wrong: in reasons, readiness, errors of workflows and logs."""

from confluent_kafka import KafkaError, KafkaException


def in_words(error: BaseException) -> str:
    """What kind of exception it is and what it says, in one line that can be encoded; of Kafka's what librdkafka says.

    Not `repr`: that is for those who know Python. Not `str`: that may be empty, or a key alone.
    """
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return error.args[0].str()
    said = " ".join(str(error).encode(errors="replace").decode().split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
