"""Whether topics and checkpoint fit what is configured: a query that went on all the same would decide on nonsense.

Topics are never made here: whoever writes them does that. A checkpoint belongs to one topic of one Kafka cluster, its
state to a number of partitions and to a format; beside each query's checkpoint stands a file that says which.
"""

from typing import Any

import msgspec
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from sluice.messaging.topics import DEAD_LETTERS, REQUESTS_STREAMS, RETENTION, SCALE

FORMAT = 1
"""Of what is remembered of a key; to be counted on when an older one can no longer be read."""

NEEDED = (SCALE, RETENTION, REQUESTS_STREAMS, DEAD_LETTERS)
_FILE = "sluice.json"


class UnfitError(Exception):
    """What is there belongs to another system, or to another configuration of this one."""


class Fit(msgspec.Struct, frozen=True):
    """What a checkpoint belongs to; `cluster` is Kafka's id of itself."""

    format: int
    cluster: str
    topic: str
    partitions: int
    state_partitions: int


def look_at_topics(client: dict[str, Any], partitions: int, timeout_s: float = 2.0) -> tuple[str, list[str]]:
    """Kafka's id of itself, and the topics that are missing; blocking.

    Raises UnfitError for a topic with other partitions, KafkaException while the brokers cannot be reached.
    """
    found = AdminClient(client).list_topics(timeout=timeout_s)
    for topic in NEEDED:
        there = found.topics.get(topic.name)
        wanted = topic.partitions or partitions
        if there is not None and len(there.partitions) != wanted:
            raise UnfitError(f"{topic.name} has {len(there.partitions)} partitions, configured are {wanted}")
    return found.cluster_id or "", [topic.name for topic in NEEDED if topic.name not in found.topics]


def check(wanted: Fit, found: Fit, folder: str) -> None:
    """Raise UnfitError unless a checkpoint of `found` can be gone on with as `wanted`."""
    for name in wanted.__struct_fields__:
        is_, should_be = getattr(found, name), getattr(wanted, name)
        if is_ != should_be:
            what = name.replace("_", " ")
            raise UnfitError(
                f"the checkpoint {folder} has {what} {is_}, needed is {should_be}: "
                "remove it to begin anew, or have the settings as they were"
            )


def claim(session: SparkSession, folder: str, wanted: Fit) -> None:
    """Check the checkpoint in a folder of any file system that Spark knows, or begin a new one there."""
    path = _path(session, folder, _FILE)
    files = path.getFileSystem(session._jsc.hadoopConfiguration())  # noqa: SLF001
    if files.exists(path):
        check(wanted, _decoded(_read(session, files, path), folder), folder)
        return
    if files.exists(_path(session, folder, "metadata")):
        raise UnfitError(f"the checkpoint {folder} is not one of this service: {_FILE} is missing")
    stream = files.create(path, False)
    try:
        stream.write(bytearray(msgspec.json.encode(wanted)))
    finally:
        stream.close()


def _decoded(value: bytes, folder: str) -> Fit:
    try:
        return msgspec.json.decode(value, type=Fit)
    except msgspec.DecodeError as error:
        raise UnfitError(f"the checkpoint {folder} cannot be understood: {_FILE}: {error}") from error


def _read(session: SparkSession, files: Any, path: Any) -> bytes:
    stream = files.open(path)
    try:
        size = files.getFileStatus(path).getLen()
        return bytes(session._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, size))  # type: ignore[union-attr]  # noqa: SLF001
    finally:
        stream.close()


def _path(session: SparkSession, folder: str, name: str) -> Any:
    return session._jvm.org.apache.hadoop.fs.Path(folder, name)  # type: ignore[union-attr]  # noqa: SLF001
