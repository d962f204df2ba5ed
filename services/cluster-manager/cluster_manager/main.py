"""The one place where the cluster manager's objects are wired.

The active instance is the one that owns the only partition of the cluster's requests; Kafka's group sees to it that
there is one, and that another takes over when it is gone. The others stand by with everything connected.
"""

import logging
import time

from cluster_manager.containers import ContainerManager
from cluster_manager.heartbeats import Heartbeats
from cluster_manager.metrics import ACTIVE
from cluster_manager.nodes import ZooKeeperNodes
from cluster_manager.settings import ClusterManagerSettings
from sluice.domain.commands import Heartbeat
from sluice.domain.events import ContainersAssigned
from sluice.journal.journal import now_ms
from sluice.journal.record import Record
from sluice.messaging.dead_letters import send_dead_letter
from sluice.messaging.keyed_consumer import Delivery, KeyedConsumer
from sluice.messaging.topics import REQUESTS_CLUSTER
from sluice.runtime import Runtime
from sluice.telemetry import metrics

log = logging.getLogger(__name__)

SERVICE = "cluster-manager"


async def start(settings: ClusterManagerSettings, runtime: Runtime) -> None:
    """Join the group and connect to ZooKeeper; waits for neither."""
    journal = runtime.journal
    heartbeats = Heartbeats(journal, settings.member_timeout_s, time.monotonic)

    async def handle(delivery: Delivery) -> None:
        await heartbeats.handle(delivery.value or b"")

    async def on_assigned(_partition: int) -> None:
        log.info("active from now on")
        heartbeats.activated()
        containers.activated()

    async def on_failure(delivery: Delivery, error: Exception) -> None:
        metrics.DEAD_LETTERS.labels(REQUESTS_CLUSTER.name).inc()
        await send_dead_letter(runtime.producer, delivery, SERVICE, f"{type(error).__name__}: {error}")

    def on_record(_partition: int, record: Record) -> None:
        if any(isinstance(event, ContainersAssigned) for event in record.events):
            containers.wake()

    consumer = KeyedConsumer(
        settings.kafka_client(), REQUESTS_CLUSTER.name, SERVICE, handle, on_assigned, on_failure, max_handlers=1
    )

    def active() -> bool:
        return bool(consumer.partitions) and consumer.failure is None

    nodes = ZooKeeperNodes(
        settings.zookeeper,
        settings.cluster_name,
        settings.zookeeper_session_timeout_s,
        settings.zookeeper_call_timeout_s,
        lambda: containers.wake(),
    )
    containers = ContainerManager(
        journal,
        nodes,
        Heartbeat(service=SERVICE, instance=settings.instance, endpoints=runtime.endpoints),
        settings.container_count,
        settings.rebalance_interval_s,
        active,
        now_ms,
    )

    async def manage() -> None:
        # Should this ever end by an error, another instance had better take over.
        try:
            await containers.run()
        finally:
            await consumer.stop()

    def group() -> str | None:
        if consumer.failure is not None:
            return f"left the group: {consumer.failure!r}"
        return None if consumer.joined else f"joining the group {SERVICE}"

    role = _Role(active)
    runtime.checks["group"] = role.said_with(group)
    runtime.checks["zookeeper"] = role.said_with(nodes.problem)
    runtime.checks["container map"] = role.said_with(containers.problem)
    ACTIVE.set_function(lambda: float(active()))
    metrics.OPEN_RECORDS.labels(REQUESTS_CLUSTER.name).set_function(lambda: consumer.open_records)
    journal.on_record.append(on_record)
    runtime.stack.push_async_callback(nodes.stop)
    nodes.start()
    runtime.spawn(manage(), "container manager")
    runtime.stack.push_async_callback(consumer.stop)
    consumer.start()
