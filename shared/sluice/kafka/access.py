"""Who may do what in Kafka: the least that each service needs, where Kafka has an authorizer.

It follows from the declaration of the topics. From here come the table and the list for `kafka-acls.sh` in
docs/kafka-access.md and the KafkaUser resources of deploy/k8s; a test runs the services with these rights alone. An id
for transactions is not needed, nor any right on the cluster: who may write to a topic may do so idempotently.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from sluice.kafka.archive_progress import GROUP as ARCHIVE_GROUP
from sluice.kafka.topics import REPLAYABLE, TOPICS, TRIMMED, Topic

TOPIC_PREFIX = "sluice."
READER_PREFIX = "sluice-"
"""Of the groups that have no members: librdkafka looks for the coordinator of each consumer's group."""

MEMBERS = ("stream-workflows", "txn-manager", "cluster-manager")
"""Services that divide partitions among their instances: the names of their groups begin with their own."""

CONSOLE, KEEPER, SPARK = "console", "cluster-manager", "retention-spark"
"""KEEPER makes the topics, and trims those that nothing else bounds."""


class Kind(StrEnum):
    """What a right is on."""

    TOPIC = "topic"
    GROUP = "group"


class Operation(StrEnum):
    """As Kafka calls them. Of READ, WRITE and DELETE each includes DESCRIBE."""

    CREATE = "Create"
    DELETE = "Delete"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    READ = "Read"
    WRITE = "Write"


class Right(msgspec.Struct, frozen=True, order=True):
    """One operation on the topic or group of that name; `is_prefix`: on all whose names begin so."""

    operation: Operation
    kind: Kind
    name: str
    why: str
    is_prefix: bool = False


def user_of(service: str) -> str:
    """The name by which Kafka knows a service."""
    return f"sluice-{service}"


def rights() -> dict[str, tuple[Right, ...]]:
    """The rights of each user of Kafka, by what it is for: the services, `keda` and `operator`."""
    services = dict.fromkeys(service for topic in TOPICS for service in topic.written_by)
    return {**{service: tuple(_of_service(service)) for service in services}, "keda": _KEDA, "operator": _OPERATOR}


def _of_service(service: str) -> Iterator[Right]:
    yield _ALL_TOPICS
    if service == KEEPER:
        yield Right(Operation.CREATE, Kind.TOPIC, TOPIC_PREFIX, "makes the topics that are missing", is_prefix=True)
        yield Right(Operation.DESCRIBE_CONFIGS, Kind.TOPIC, TOPIC_PREFIX, "checks their settings", is_prefix=True)
    for operation, topics, why in (
        (Operation.READ, [t for t in TOPICS if service in t.read_by], "reads it"),
        (Operation.READ, _searched_by(service), "finds in it what became of a request"),
        (Operation.WRITE, [t for t in TOPICS if service in t.written_by], "writes it"),
        (Operation.WRITE, _replayed_by(service), "sends dead letters back to it"),
        (Operation.DELETE, TRIMMED if service == KEEPER else (), "removes records from its begin"),
    ):
        yield from (Right(operation, Kind.TOPIC, topic.name, why) for topic in topics)
    yield Right(Operation.DESCRIBE, Kind.GROUP, READER_PREFIX, "finds the coordinator, commits nothing", is_prefix=True)
    if service == CONSOLE:
        yield from _looks_at_groups("shows who owns partitions and what waits", MEMBERS)
    if service in (*MEMBERS, SPARK):
        yield Right(Operation.READ, Kind.GROUP, service, "is a member of its own groups", is_prefix=True)
    if service == SPARK:
        yield Right(Operation.READ, Kind.GROUP, ARCHIVE_GROUP, "commits how far the archive is")


def _searched_by(service: str) -> list[Topic]:
    return [topic for topic in TOPICS if service == CONSOLE and service not in topic.read_by]


def _replayed_by(service: str) -> list[Topic]:
    return [topic for topic in REPLAYABLE if service == CONSOLE and service not in topic.written_by]


def _looks_at_groups(why: str, services: Iterable[str]) -> Iterator[Right]:
    """At those of which instances of the services are members."""
    return (Right(Operation.DESCRIBE, Kind.GROUP, service, why, is_prefix=True) for service in services)


_ALL_TOPICS = Right(Operation.DESCRIBE, Kind.TOPIC, TOPIC_PREFIX, "sees which topics there are", is_prefix=True)
_KEDA = (_ALL_TOPICS, *_looks_at_groups("sees what waits for its instances", MEMBERS[:2]))
_OPERATOR = (
    Right(Operation.READ, Kind.TOPIC, TOPIC_PREFIX, "reads all records, with `sluice` or kcat", is_prefix=True),
    Right(Operation.DESCRIBE, Kind.GROUP, READER_PREFIX, "finds the coordinator, commits nothing", is_prefix=True),
    *_looks_at_groups("sees what waits for its instances", MEMBERS),
)
