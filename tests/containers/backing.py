"""Kafka, ZooKeeper and Redis as containers of one network: the services reach them by name, the tests by a port here.

Memory is bounded; nothing is kept when a container ends. Blocking.
"""

import socket
from typing import Any

import redis
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from support.ports import free_port
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from containers.images import KAFKA_OUTSIDE_PORT, KAFKA_PORT, REDIS_PORT, ZOOKEEPER_PORT
from harness import eventually
from sluice_local.home import HOST

STARTS_S = 120.0


class Backing(DockerContainer):
    """A container that others of its network find under `name`."""

    def __init__(self, image: str, network: Network, name: str, memory: str) -> None:
        # Swap as large as memory means none.
        super().__init__(image, mem_limit=memory, memswap_limit=memory)
        self.with_network(network).with_network_aliases(name)


class KafkaContainer(Backing):
    """One broker. `inside` is its address for containers, `outside` that for the tests."""

    def __init__(self, image: str, network: Network) -> None:
        super().__init__(image, network, "kafka", "640m")
        port = free_port()
        self.inside, self.outside = f"kafka:{KAFKA_PORT}", f"{HOST}:{port}"
        self.with_bind_ports(KAFKA_OUTSIDE_PORT, port)
        advertised = f"PLAINTEXT://{self.inside},OUTSIDE://{self.outside}"
        self.with_command(["--override", f"advertised.listeners={advertised}"])

    def start(self) -> "KafkaContainer":
        super().start()
        admin = AdminClient({"bootstrap.servers": self.outside, "log_level": 0})
        eventually(lambda: _answers(admin), STARTS_S, "Kafka answers")
        return self


class ZooKeeperContainer(Backing):
    """One server."""

    def __init__(self, image: str, network: Network) -> None:
        super().__init__(image, network, "zookeeper", "256m")
        self.inside = f"zookeeper:{ZOOKEEPER_PORT}"
        self.with_exposed_ports(ZOOKEEPER_PORT)

    @property
    def outside(self) -> str:
        """Its address for the tests."""
        return f"{HOST}:{self.get_exposed_port(ZOOKEEPER_PORT)}"

    def start(self) -> "ZooKeeperContainer":
        super().start()
        eventually(lambda: _serves(self.outside), STARTS_S, "ZooKeeper answers")
        return self


class RedisContainer(Backing):
    """One server, all in memory."""

    def __init__(self, image: str, network: Network) -> None:
        super().__init__(image, network, "redis", "96m")
        self.inside = f"redis://redis:{REDIS_PORT}/0"
        self.with_exposed_ports(REDIS_PORT)

    def client(self) -> Any:
        """A client for the tests."""
        return redis.Redis(HOST, self.get_exposed_port(REDIS_PORT))

    def start(self) -> "RedisContainer":
        super().start()
        eventually(lambda: self.client().ping(), STARTS_S, "Redis answers")
        return self


def _answers(admin: AdminClient) -> bool:
    try:
        return bool(admin.list_topics(timeout=1.0).brokers)
    except KafkaException:
        return False


def _serves(address: str) -> bool:
    """Whether ZooKeeper takes a session: its four-letter words have to be allowed, its greeting has not."""
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=1.0) as connection:
        # ConnectRequest: protocol 0, nothing seen, a session of a second, no id and no password.
        connection.sendall(
            bytes((0, 0, 0, 44)) + bytes(12) + (1000).to_bytes(4) + bytes(8) + (16).to_bytes(4) + bytes(16)
        )
        return len(connection.recv(8)) > 0
