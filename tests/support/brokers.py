"""The brokers of a system whose Kafka is a cluster: who leads what, and what may happen to one."""

import asyncio
import json
import resource
from collections.abc import Iterable
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.admin import AlterPartitionReassignmentsRequest
from confluent_kafka import ElectionType
from confluent_kafka.admin import AdminClient

from harness import System, eventually
from sluice.kafka.topics import JOURNAL
from sluice_local import kafka

_TIMEOUT_S = 10.0
_DEADLINE_S = 120.0


class Brokers:
    """Those of a system that runs. They are named as its parts are."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.names = [name for name in system.names if name.startswith(kafka.NAME)]

    def led_by(self, name: str) -> set[int]:
        """The partitions of the journal that it leads."""
        node = self._node(name)
        return {p for p, found in self._topics()[JOURNAL.name].partitions.items() if found.leader == node}

    def coordinator_of(self, group: str) -> str:
        """Of a group of consumers."""
        admin = self._admin()
        described = admin.describe_consumer_groups([group], request_timeout=_TIMEOUT_S)[group]
        return self._name(described.result(_TIMEOUT_S).coordinator.id)

    def leader_of_quorum(self) -> str:
        """The active controller, as the voters have written down."""
        folders = [self._system.settings.data_dir / name / "log" / "__cluster_metadata-0" for name in self.names]
        states = [json.loads((folder / "quorum-state").read_text()) for folder in folders]
        return self._name(max(states, key=lambda state: state["leaderEpoch"])["leaderId"])

    def follower_of_quorum(self) -> str:
        """One that is not the active controller."""
        return next(name for name in self.names if name != self.leader_of_quorum())

    def fill_disk(self, name: str) -> None:
        """Have the broker write nothing more: whatever makes a file longer fails from now on."""
        resource.prlimit(self._system.pid(name), resource.RLIMIT_FSIZE, (0, 0))

    def have_all(self) -> None:
        """Return when every replica of every partition is in sync."""
        eventually(self._are_alike, _DEADLINE_S, "all replicas are in sync")

    def move_leaders(self) -> None:
        """Have each broker lead what it leads in a cluster that has just begun."""
        # Without the times that its documentation has: given one, this client fails.
        admin = self._admin()
        admin.elect_leaders(ElectionType.PREFERRED, None).result(_DEADLINE_S)

    def have_alone(self, partition: int) -> str:
        """Have the broker that leads a partition of the journal be the only one that has it. Returns its name."""
        leader = self._topics()[JOURNAL.name].partitions[partition].leader
        self._assign(partition, [leader])
        return self._name(leader)

    def have_on_all(self, partition: int) -> None:
        """Have all brokers have it again."""
        self._assign(partition, range(1, len(self.names) + 1))

    def _assign(self, partition: int, nodes: Iterable[int]) -> None:
        wanted = list(nodes)

        def done() -> bool:
            found = self._topics()[JOURNAL.name].partitions[partition]
            if sorted(found.replicas) != wanted:
                # Once more, too: it is lost where the quorum's leader changes.
                asyncio.run(_reassign(self._system.kafka_bootstrap, JOURNAL.name, partition, wanted))
                return False
            return sorted(found.isrs) == wanted

        eventually(done, _DEADLINE_S, f"partition {partition} is on {wanted}")

    def _are_alike(self) -> bool:
        topics = self._topics()
        return all(len(p.isrs) == len(self.names) for topic in topics.values() for p in topic.partitions.values())

    def _topics(self) -> dict[str, Any]:
        return dict(self._admin().list_topics(timeout=_TIMEOUT_S).topics)

    def _admin(self) -> AdminClient:
        """A new one: an older one may ask a broker that has gone without a word."""
        return AdminClient({"bootstrap.servers": self._system.kafka_bootstrap, "log_level": 0})

    def _node(self, name: str) -> int:
        return self.names.index(name) + 1

    def _name(self, node: int) -> str:
        return self.names[node - 1]


async def _reassign(bootstrap: str, topic: str, partition: int, nodes: list[int]) -> None:
    """Request what the other client for Python has no call for."""
    client = AIOKafkaClient(bootstrap_servers=bootstrap)
    await client.bootstrap()
    try:
        parts: Any = [(topic, [(partition, nodes, {})], {})]
        request = AlterPartitionReassignmentsRequest(round(_TIMEOUT_S * 1000), parts, {})
        await client.send(client.get_random_node(), request)
    finally:
        await client.close()
