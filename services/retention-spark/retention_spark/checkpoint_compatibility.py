"""Whether topics and checkpoint fit what is configured: a query that went on all the same would decide on nonsense.

Topics are never made here: their writers do that. A checkpoint belongs to one topic of one Kafka cluster, its
state to a number of partitions and to a format; beside each query's checkpoint stands a file that says which.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from retention_spark.files import exists, read, write_once
from sluice.kafka.topics import DEAD_LETTERS, REQUESTS_STREAMS, RETENTION, SCALE, Topic
from sluice.kafka_config import clients

FORMAT = 3
"""Of what is remembered; to be counted on when an older one can no longer be read."""

NEEDED = (SCALE, RETENTION, REQUESTS_STREAMS, DEAD_LETTERS)
_FILE = "sluice.json"


class UnfitError(Exception):
    """What is there belongs to another system, or to another configuration of this one."""


class _Formatted(msgspec.Struct, frozen=True):
    format: int


class Fit(msgspec.Struct, frozen=True):
    """What a checkpoint belongs to; `cluster` is Kafka's id of itself."""

    format: int
    cluster: str
    topic: str
    partitions: int
    buckets: int
    state_partitions: int


def look_at_topics(
    client: dict[str, Any], partitions: int, more: Sequence[Topic] = (), timeout_s: float = 2.0
) -> tuple[str, list[str]]:
    """Kafka's id of itself, and the topics that are missing of those that are needed, `more` among them; blocking.

    Raises UnfitError for a topic with other partitions, KafkaException while the brokers cannot be reached.
    """
    found = AdminClient(clients.admin(client)).list_topics(timeout=timeout_s)
    needed = (*NEEDED, *more)
    for topic in needed:
        there = found.topics.get(topic.name)
        wanted = topic.partitions or partitions
        if there is not None and len(there.partitions) != wanted:
            raise UnfitError(f"{topic.name} has {len(there.partitions)} partitions, configured are {wanted}")
    return found.cluster_id or "", [topic.name for topic in needed if topic.name not in found.topics]


def check(wanted: Fit, found: Fit, folder: str) -> None:
    """Raise UnfitError unless a checkpoint of `found` can be gone on with as `wanted`."""
    for name in wanted.__struct_fields__:
        is_, should_be = getattr(found, name), getattr(wanted, name)
        if is_ != should_be:
            raise _unfit(folder, name.replace("_", " "), is_, should_be)


def claim(session: SparkSession, folder: str, wanted: Fit) -> None:
    """Check the checkpoint in a folder of any file system that Spark knows, or begin a new one there."""
    if exists(session, folder, _FILE):
        check(wanted, read_fit(read(session, folder, _FILE), folder), folder)
        return
    if exists(session, folder, "metadata"):
        raise UnfitError(f"the checkpoint {folder} is not one of this service: {_FILE} is missing")
    write_once(session, folder, _FILE, msgspec.json.encode(wanted))


def read_fit(value: bytes, folder: str) -> Fit:
    """What a file says of its checkpoint. Raises UnfitError; a file of another format may hold other fields."""
    try:
        found = msgspec.json.decode(value, type=_Formatted).format
        if found == FORMAT:
            return msgspec.json.decode(value, type=Fit)
    except msgspec.DecodeError as error:
        raise UnfitError(f"the checkpoint {folder} cannot be understood: {_FILE}: {error}") from error
    raise _unfit(folder, "format", found, FORMAT)


def _unfit(folder: str, what: str, found: object, needed: object) -> UnfitError:
    return UnfitError(
        f"the checkpoint {folder} has {what} {found}, needed is {needed}: "
        "remove it to begin anew, or have the settings as they were"
    )
