"""The configurations of librdkafka's clients: what the operator gives goes before what Sluice would choose.

What Sluice relies on needs no order: `conf` lets no one give it. A client is given only what is for its kind, because
librdkafka warns of the rest.
"""

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from sluice.exceptions import in_words

Client = Mapping[str, Any]
"""What all clients of a process have in common; see `common`. It may hold passwords."""

NOTHING: Mapping[str, Any] = MappingProxyType({})


@in_words.register
def _(error: KafkaException) -> str:
    """What librdkafka says of it, without its number."""
    return error.args[0].str() if error.args and isinstance(error.args[0], KafkaError) else f"Kafka: {error}"


DEFAULT_SESSION_S = 6.0
"""The shortest session that a broker with Kafka's own settings allows (`group.min.session.timeout.ms`)."""

MAX_HEARTBEAT_MS = 500
"""A member learns from the reply to a heartbeat that partitions move."""

SOCKET_TIMEOUT_MS = 5_000
"""How long a broker may owe a reply before its connection counts as dead. librdkafka's own bound is a minute.

A broker whose machine has gone breaks no connection; what is sent to it then, such as the question for new leaders,
waits for so long, and so does what a new leader is to append after it. A reply that may take longer has a time of its
own.
"""

SETUP_TIMEOUT_MS = 5_000
"""How long a connection may take until it serves, before another is tried. librdkafka's own bound is half a minute.

On a network that was cut, TCP tries ever later to connect: the first time after it is mended comes sooner in a new try.
"""

MAX_POLL_MS = 30_000
"""How long a group waits for a member to join again, and, with 3 s more, a member for the reply to its JoinGroup.

A broker that stood still may owe that reply for ever. librdkafka's own bound is five minutes.
"""

_OF_CONSUMERS = {
    "auto.commit.interval.ms",
    "check.crcs",
    "coordinator.query.interval.ms",
    "fetch.error.backoff.ms",
    "fetch.max.bytes",
    "fetch.min.bytes",
    "fetch.queue.backoff.ms",
    "fetch.wait.max.ms",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "queued.max.messages.kbytes",
    "queued.min.messages",
}
_OF_PRODUCERS = {
    "batch.num.messages",
    "batch.size",
    "compression.level",
    "compression.type",
    "enable.gapless.guarantee",
    "linger.ms",
    "message.timeout.ms",
    "queue.buffering.backpressure.threshold",
    "queue.buffering.max.kbytes",
    "queue.buffering.max.messages",
    "queuing.strategy",
    "request.timeout.ms",
    "retries",
    "sticky.partitioning.linger.ms",
    "transaction.timeout.ms",
}


def common(bootstrap: str, name: str, logger: logging.Logger, conf: Mapping[str, Any]) -> dict[str, Any]:
    """What all clients of a process have in common; `name` shows in the brokers' metrics and quotas.

    librdkafka has no settings of HTTPS (`conf.PROVIDERS_FILE`); those that are given are for the other drivers.
    """
    return {
        "client.id": name,
        "socket.keepalive.enable": True,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1000,
        "topic.metadata.refresh.interval.ms": 5_000,
        "socket.timeout.ms": SOCKET_TIMEOUT_MS,
        "socket.connection.setup.timeout.ms": SETUP_TIMEOUT_MS,
        **{key: value for key, value in conf.items() if not key.startswith("https.")},
        "bootstrap.servers": bootstrap,
        "logger": logger,
    }


def admin(client: Client) -> dict[str, Any]:
    """For an AdminClient."""
    return {key: value for key, value in client.items() if key not in _OF_CONSUMERS}


def producer(client: Client, more: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
    """For a producer: acknowledged by all replicas, nothing twice."""
    ours = {
        "partitioner": "murmur2_random",
        "enable.idempotence": True,
        "acks": "all",
        "compression.type": "lz4",
        **more,
    }
    return {**ours, **{key: value for key, value in client.items() if key not in _OF_CONSUMERS}}


def consumer(client: Client, group: str, more: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
    """For a consumer that commits nothing by itself; with what `membership` gives it may subscribe."""
    ours = {
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        **more,
    }
    return {**ours, **{key: value for key, value in client.items() if key not in _OF_PRODUCERS}}


def membership(session_s: float) -> dict[str, Any]:
    """What a member of a group needs: lost after so long without one of at least three heartbeats, or a poll."""
    session_ms = round(session_s * 1000)
    return {
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": min(MAX_HEARTBEAT_MS, session_ms // 3),
        "max.poll.interval.ms": max(MAX_POLL_MS, session_ms),
    }
