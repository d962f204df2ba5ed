"""The topics, declared once: this declaration creates them and is what the documentation of topics is made from."""

import logging
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewTopic

from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.commands import Command
from sluice.domain.transaction.commands import (
    AbortTransaction,
    CheckLease,
    CommitTransaction,
    OpenTransaction,
    PingTransaction,
)
from sluice.domain.workflow import CancelWorkflow, RetryWorkflow
from sluice.exceptions import CannotStartError
from sluice.kafka.answers import result_of
from sluice.kafka.offsets import ends_of
from sluice.kafka_config import clients

log = logging.getLogger(__name__)

_DAY_MS = 24 * 3600 * 1000
_COMPACTED_AFTER_MS = 3600 * 1000
"""Kafka compacts what is no longer written to; a consumer that reads a topic from its beginning waits for the rest."""
LEADERS_PAUSE_S = 0.2
MAX_RECORD_BYTES = 8 * 1024 * 1024
MAX_REQUEST_BYTES = 7 * 1024 * 1024
"""Of what a client requests: so there is room in the records that decide on it and pass it on."""


class Topic(msgspec.Struct, frozen=True):
    """`partitions` None: as many as the deployment has for keyed topics.

    `group` is the consumer group that divides the partitions of a topic of requests among instances.
    `retention_ms` is how long Kafka keeps a record, -1: `bound_by` says what removes it instead.
    """

    name: str
    key: str
    holds: str
    written_by: tuple[str, ...]
    read_by: tuple[str, ...]
    partitions: int | None = None
    retention_ms: int = 7 * _DAY_MS
    cleanup: str = "delete"
    bound_by: str = ""
    group: str = ""

    @property
    def bound(self) -> str:
        """What keeps the topic from growing for ever."""
        return self.bound_by or f"{self.retention_ms // _DAY_MS} d"

    def config(self) -> dict[str, str]:
        """What the topic is created with."""
        return {
            "cleanup.policy": self.cleanup,
            "retention.ms": str(self.retention_ms),
            "retention.bytes": "-1",
            "max.message.bytes": str(MAX_RECORD_BYTES),
            "message.timestamp.type": "LogAppendTime",
            **({"segment.ms": str(_COMPACTED_AFTER_MS)} if self.cleanup == "compact" else {}),
        }

    @property
    def relied_on(self) -> tuple[str, ...]:
        """Of these settings the ones that no operator may change: with others Kafka removes what is still needed."""
        kept = ("retention.ms", "retention.bytes") if self.retention_ms < 0 else ()
        return ("cleanup.policy", "message.timestamp.type", *kept)


_GATEWAYS = ("api-gateway", "console")
"""What a gateway does for Pravega's clients, and what it does for operators; one process may do both."""
_DECIDERS = ("stream-workflows", "txn-manager", "cluster-manager")
_ALL = (*_GATEWAYS, *_DECIDERS)

REQUESTS_STREAMS = Topic(
    name="sluice.requests.streams",
    key="scope, scope/name, #number or cluster",
    holds="commands on scopes, streams, reader groups and key-value tables, and on who runs the containers",
    written_by=(*_GATEWAYS, "stream-workflows", "retention-spark"),
    read_by=("stream-workflows",),
    group="stream-workflows",
)
REQUESTS_TRANSACTIONS = Topic(
    name="sluice.requests.transactions",
    key="scope/stream",
    holds="commands that open transactions and keep them alive",
    written_by=(*_GATEWAYS, "txn-manager"),
    read_by=("txn-manager",),
    group="txn-manager-sluice.requests.transactions",
)
COMMIT = Topic(
    name="sluice.commit",
    key="scope/stream",
    holds="which transaction to commit",
    written_by=(*_GATEWAYS, "txn-manager"),
    read_by=("txn-manager",),
    group="txn-manager-sluice.commit",
)
ABORT = Topic(
    name="sluice.abort",
    key="scope/stream",
    holds="which transaction to abort, why, and on which version of it that was decided",
    written_by=(*_GATEWAYS, "stream-workflows", "txn-manager"),
    read_by=("txn-manager",),
    group="txn-manager-sluice.abort",
)
REQUESTS_CLUSTER = Topic(
    name="sluice.requests.cluster",
    key="cluster",
    holds="heartbeats of our own services",
    written_by=(*_ALL, "retention-spark"),
    read_by=("cluster-manager", *_GATEWAYS, "retention-spark"),
    partitions=1,
    retention_ms=_DAY_MS,
    group="cluster-manager",
)
SCALE = Topic(
    name="sluice.scale",
    key="scope/stream",
    holds="traffic reports of segments, with the epoch and the policy they meet",
    written_by=("stream-workflows",),
    read_by=("retention-spark",),
)
RETENTION = Topic(
    name="sluice.retention",
    key="scope/stream",
    holds="retention policies, sampled stream cuts with size and time, subscribers' positions",
    written_by=("stream-workflows",),
    read_by=("retention-spark", "console"),
)
SCALE_MEMORY, RETENTION_MEMORY = (
    Topic(
        name=f"{topic.name}.memory",
        key="scope/stream",
        holds=f"what decisions on {topic.name} remember, for the driver that takes over",
        written_by=("retention-spark",),
        read_by=("retention-spark",),
        retention_ms=-1,
        cleanup="compact",
        bound_by="the last of each key; what is forgotten has no value",
    )
    for topic in (SCALE, RETENTION)
)
JOURNAL = Topic(
    name="sluice.journal",
    key="scope, scope/name, #number or cluster",
    holds="the events: what is true",
    written_by=_DECIDERS,
    read_by=(*_ALL, "retention-spark"),
    retention_ms=-1,
    bound_by="until it is behind the second-newest confirmed snapshot and older than SLUICE_JOURNAL_KEEP",
)
SNAPSHOTS = Topic(
    name="sluice.snapshots",
    key="number of the partition",
    holds="which snapshots of the journal's partitions there are, and what second runs came to",
    written_by=("cluster-manager",),
    read_by=_ALL,
    retention_ms=-1,
    bound_by="until it is behind the third-newest snapshot",
)
SNAPSHOT_CHUNKS = Topic(
    name="sluice.snapshots.chunks",
    key="number of the partition",
    holds="the states of the journal's partitions behind a marker, in chunks; binary",
    written_by=("cluster-manager",),
    read_by=_ALL,
    retention_ms=-1,
    bound_by="until it is behind the third-newest snapshot",
)
DEAD_LETTERS = Topic(
    name="sluice.dead-letters",
    key="as the source",
    holds="records that could not be handled, with the reason, and what became of them",
    written_by=("console", *_DECIDERS, "retention-spark"),
    read_by=("console", "people"),
    retention_ms=30 * _DAY_MS,
)
STATISTICS = Topic(
    name="sluice.statistics",
    key="scope/stream or #number",
    holds="how many transactions and operations of a stream there were; progress: how far that is counted",
    written_by=("stream-workflows", "txn-manager"),
    read_by=("txn-manager",),
    retention_ms=3 * _DAY_MS,
)
STATISTICS_GROUP = "txn-manager-sluice.statistics"
"""Faust's: its members do not divide requests, so no one waits for them."""
STATISTICS_WINDOWS = Topic(
    name="sluice.statistics.windows",
    key="scope/stream window begin",
    holds="the same by minute, hour and day; the change log of a table, in which windows that expired have no value",
    written_by=("txn-manager",),
    read_by=("txn-manager", "console"),
    retention_ms=-1,
    cleanup="compact",
    bound_by="the last of each key; windows that expired have no value",
)
TOPICS = (
    REQUESTS_STREAMS,
    REQUESTS_TRANSACTIONS,
    COMMIT,
    ABORT,
    REQUESTS_CLUSTER,
    SCALE,
    RETENTION,
    SCALE_MEMORY,
    RETENTION_MEMORY,
    JOURNAL,
    SNAPSHOTS,
    SNAPSHOT_CHUNKS,
    DEAD_LETTERS,
    STATISTICS,
    STATISTICS_WINDOWS,
)
TRIMMED = (JOURNAL, SNAPSHOTS, SNAPSHOT_CHUNKS)
"""Topics from whose begin cluster-manager removes records."""

REPLAYABLE = (REQUESTS_STREAMS, REQUESTS_TRANSACTIONS, COMMIT, ABORT, REQUESTS_CLUSTER, SCALE, RETENTION)
"""Topics whose readers give records up: the console sends a dead letter back to the one that it comes from."""


_ELSEWHERE: Mapping[type[Command], Topic] = {
    OpenTransaction: REQUESTS_TRANSACTIONS,
    PingTransaction: REQUESTS_TRANSACTIONS,
    CommitTransaction: COMMIT,
    AbortTransaction: ABORT,
    CheckLease: REQUESTS_TRANSACTIONS,
    Heartbeat: REQUESTS_CLUSTER,
}


def topic_of(command: Command) -> Topic:
    """The topic that a command is sent to."""
    return topics_of(type(command))[0]


def is_control(command: Command) -> bool:
    """Whether the command passes the queue of its key by: it concerns the workflow that holds that queue up."""
    return isinstance(command, RetryWorkflow | CancelWorkflow)


def topics_of(kind: type) -> tuple[Topic, ...]:
    """The topics that commands of a kind pass, the one they are sent to first."""
    first = _ELSEWHERE.get(kind, REQUESTS_STREAMS)
    return (first, COMMIT) if kind is CheckLease else (first,)


class TopicsUnfitError(CannotStartError):
    """A topic exists with another number of partitions than this deployment is configured for."""


BROKERS_OWN = -1
"""As many replicas as the brokers give a topic by themselves (`default.replication.factor`)."""
_IN_SYNC = "min.insync.replicas"

PresentSettings = Mapping[str, Mapping[str, str] | None]
"""By topic the values of its settings, whether they are its own or the brokers'; None: the topic is missing."""


def ensure_topics(client: dict[str, Any], partitions: int, replication: int, timeout_s: float = 10.0) -> list[str]:
    """Create what is missing, check what is there and wait until every partition has a leader; blocking.

    Unless the `replication` is BROKERS_OWN, all replicas but one have a record before it is acknowledged. Returns the
    topics that have fewer replicas. Raises TopicsUnfitError for a topic with other partitions, KafkaException while
    the brokers cannot be reached or partitions have no leader.
    """
    admin = AdminClient(clients.admin(client))
    present = admin.list_topics(timeout=timeout_s).topics
    wanted = {t.name: t.partitions or partitions for t in TOPICS}
    missing = [t for t in TOPICS if t.name not in present]
    more = {_IN_SYNC: str(_least_in_sync(replication))} if replication > 0 else {}
    new = [NewTopic(t.name, wanted[t.name], replication, config={**t.config(), **more}) for t in missing]
    if new:
        answers = admin.create_topics(new, operation_timeout=timeout_s, request_timeout=timeout_s + 1)
        for name, created in answers.items():
            try:
                result_of(created, timeout_s + 1)
                log.info("topic created", extra={"topic": name, "partitions": wanted[name]})
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
    for name, topic in present.items():
        if name in wanted and len(topic.partitions) != wanted[name]:
            raise TopicsUnfitError(
                f"{name} has {len(topic.partitions)} partitions, configured are {wanted[name]} (SLUICE_PARTITIONS)"
            )
    _await_leaders(client, wanted, timeout_s)
    found = {name: topic.partitions.values() for name, topic in present.items() if name in wanted}
    return sorted(name for name, them in found.items() if any(len(p.replicas) < replication for p in them))


def present_settings(client: dict[str, Any], timeout_s: float = 10.0) -> PresentSettings:
    """Ask Kafka for the settings of our topics; blocking. Raises KafkaException."""
    admin = AdminClient(clients.admin(client))
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic.name) for topic in TOPICS]
    found: dict[str, dict[str, str] | None] = {}
    for resource, answer in admin.describe_configs(resources, request_timeout=timeout_s).items():
        try:
            found[resource.name] = {name: entry.value for name, entry in result_of(answer, timeout_s).items()}
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            found[resource.name] = None
    return found


def unfit_settings(present: PresentSettings) -> list[str]:
    """Topics that are missing, and settings with which Kafka removes what is needed, in words."""
    found = []
    for topic in TOPICS:
        settings = present[topic.name]
        if settings is None:
            found.append(f"{topic.name} is missing")
            continue
        for name in topic.relied_on:
            must_be = topic.config()[name]
            if (value := settings.get(name, must_be)) != must_be:
                found.append(f"{topic.name} has {name}={value}, and must have {must_be}")
    return found


def too_few_in_sync(present: PresentSettings, replication: int) -> str:
    """Which topics acknowledge what fewer replicas have than all but one, in words; empty if none does."""
    least = _least_in_sync(replication)
    values = {name: (settings or {}).get(_IN_SYNC, least) for name, settings in present.items()}
    few = sorted(name for name, value in values.items() if int(value) < least)
    return f"{_IN_SYNC} is less than {least}: {', '.join(few)}" if few else ""


def _least_in_sync(replication: int) -> int:
    """All replicas but one: so one broker may be away, and none of what was acknowledged was in one place only."""
    return max(1, replication - 1)


def _await_leaders(client: dict[str, Any], topics: Mapping[str, int], timeout_s: float) -> None:
    """A broker lists a new topic before it leads its partitions: each is requested for its end until it has one.

    Raises KafkaException with what the last attempt failed with.
    """
    partitions = [(name, partition) for name, count in topics.items() for partition in range(count)]
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            # A new client each time: one that failed goes by the leaders it remembers.
            ends_of(AdminClient(clients.admin(client)), partitions, timeout_s)
            return
        except KafkaException:
            if time.monotonic() > deadline:
                raise
        time.sleep(LEADERS_PAUSE_S)
