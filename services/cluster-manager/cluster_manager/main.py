"""The module where the cluster manager's objects are wired.

The active instance is the one that owns partition 0 of the cluster's requests; Kafka's group sees to it that there is
one, and that another takes over when it is gone. The others stand by with everything connected.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from cluster_manager.containers import PLACING, ContainerManager
from cluster_manager.gateways import GatewayNodes, Registry
from cluster_manager.members import Members
from cluster_manager.metrics import ACTIVE, MEMBERS, UNASSIGNED
from cluster_manager.nodes import Nodes, ZooKeeperNodes
from cluster_manager.settings import ClusterManagerSettings
from cluster_manager.snapshots import start_snapshots
from cluster_manager.topic_settings import watch_topic_settings
from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.cluster.events import MemberJoined, MemberLeft
from sluice.domain.cluster.state import CLUSTER, cluster_of, uncovered
from sluice.domain.model import JournalEntry
from sluice.engine.consumer import Delivery, RequestConsumer
from sluice.exceptions import in_words
from sluice.kafka.dead_letters import failed_record_of, send_dead_letter
from sluice.kafka.topics import REQUESTS_CLUSTER
from sluice.runtime import Runtime, Service
from sluice.settings import settings_of
from sluice.telemetry.scrape import on_scrape
from sluice.workflows.dead_lettering import request_of
from sluice.zookeeper_access import ZooKeeperAccess

log = logging.getLogger(__name__)

SERVICE = "cluster-manager"

NodesOf = Callable[[Callable[[], None]], "SessionNodes"]
"""Makes what stands for ZooKeeper; it calls back for every change."""


class SessionNodes(Nodes, Registry, Protocol):
    """See ZooKeeperNodes."""

    def start(self) -> None: ...

    async def stop(self) -> None: ...

    def problem(self) -> str | None: ...


class ClusterManager:
    """One instance of the service, put together; everything here belongs to the event loop."""

    def __init__(self, runtime: Runtime, settings: ClusterManagerSettings, nodes_of: NodesOf | None = None) -> None:
        self._runtime = runtime
        self._settings = settings
        self._members = Members(runtime.journal, settings.member_timeout_s, time.monotonic)
        self._consumer = RequestConsumer(
            runtime.request_source(REQUESTS_CLUSTER),
            runtime.journal,
            self._handle,
            self._on_assigned,
            self._on_failure,
            is_keyed=False,
        )
        self._nodes = nodes_of(self._wake) if nodes_of is not None else _zookeeper_nodes(runtime, settings, self._wake)
        self._containers = ContainerManager(
            runtime.journal,
            self._nodes,
            runtime.heartbeat(),
            settings.container_count,
            settings.rebalance_interval_s,
            self.active,
            runtime.clock.now_ms,
            settings.settle_s,
        )
        self._gateways = GatewayNodes(runtime.journal, self._nodes, self.active)

    def start(self) -> None:
        """Join the group and connect to ZooKeeper, waiting for neither."""
        runtime = self._runtime
        runtime.checks["group"] = self._consumer.problem
        runtime.checks["zookeeper"] = self._nodes.problem
        runtime.checks["container map"] = self._containers.problem
        runtime.degraded["controllers"] = self._gateways.problem
        runtime.facts["role"] = lambda: "active" if self.active() else "standby"
        on_scrape("cluster", self._publish)
        runtime.journal.on_entry.append(self._on_entry)
        runtime.stack.push_async_callback(self._nodes.stop)
        self._nodes.start()
        runtime.spawn(self._manage(), "container manager")
        runtime.spawn(self._gateways.run(), "gateways in ZooKeeper")
        if runtime.connections.snapshots is not None:
            runtime.spawn(watch_topic_settings(runtime), "watch of topic settings")
            start_snapshots(runtime, self._settings, runtime.connections.snapshots, self.active)
        runtime.stack.push_async_callback(self._consumer.stop)
        self._consumer.start()

    def active(self) -> bool:
        """Whether this instance is the one to decide for the cluster, as far as it knows."""
        return bool(self._consumer.partitions) and self._consumer.failure is None

    async def _manage(self) -> None:
        try:
            await self._containers.run()
        finally:
            # Should this have ended by an error, another instance had better take over.
            await self._consumer.stop()

    async def _handle(self, delivery: Delivery) -> None:
        command = request_of(delivery, REQUESTS_CLUSTER).command
        assert isinstance(command, Heartbeat), "no other command belongs in this topic"
        await self._members.handle(command)

    async def _on_assigned(self, _partition: int) -> None:
        self._members.activated()
        self._containers.activated()
        self._gateways.wake()

    async def _on_failure(self, delivery: Delivery, error: Exception) -> None:
        runtime, record = self._runtime, failed_record_of(delivery.message)
        await send_dead_letter(runtime.producer, record, runtime.source, in_words(error), runtime.clock.now_ms())

    def _on_entry(self, _partition: int, entry: JournalEntry) -> None:
        if any(isinstance(event, PLACING) for event in entry.events):
            self._wake()
        if any(isinstance(event, MemberJoined | MemberLeft) for event in entry.events):
            self._gateways.wake()

    def _wake(self) -> None:
        self._containers.wake()
        self._gateways.wake()

    def _publish(self) -> None:
        cluster = cluster_of(self._runtime.journal.reader(CLUSTER))
        ACTIVE.set(self.active())
        UNASSIGNED.set(len(uncovered(cluster, self._runtime.settings.container_count)))
        MEMBERS.clear()
        for service, members in Counter(member.service for member in cluster.members.values()).items():
            MEMBERS.labels(service).set(members)


def _zookeeper_nodes(
    runtime: Runtime, settings: ClusterManagerSettings, on_change: Callable[[], None]
) -> ZooKeeperNodes:
    tls, password = settings.zookeeper_client_tls(), settings.zookeeper_password()
    runtime.watch(tls, password)
    return ZooKeeperNodes(
        settings.zookeeper,
        settings.cluster_name,
        settings.zookeeper_session_timeout_s,
        settings.zookeeper_call_timeout_s,
        on_change,
        access=ZooKeeperAccess(tls, settings.zookeeper_user, password),
    )


def service(**given: Any) -> Service:
    """With the settings of the environment, behind those that are given."""
    settings = settings_of(ClusterManagerSettings, **given)

    async def start(runtime: Runtime) -> None:
        ClusterManager(runtime, settings).start()

    return Service(SERVICE, settings, start)
