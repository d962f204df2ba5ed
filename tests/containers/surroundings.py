"""What every service under test has around it: a network, Kafka with new topics, a segment store, its own image."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.network import Network

from containers.lives import newer
from containers.neighbours import Neighbours
from containers.service import ServiceContainer
from containers.store_server import SegmentStoreServer
from sluice.catalog import examples
from sluice.catalog.examples import Example

PARTITIONS = 4
NETWORK = "sluice-contract"
"""Of the containers; `.ci/engine` starts an engine with it."""


class NoEngineError(Exception):
    """No container engine answers."""


def engine() -> str:
    """Name and version of the engine that answers. Raises NoEngineError."""
    try:
        version = cast(Any, DockerClient().client).version()
    except Exception as error:
        # Whatever the client library meets there: no socket, no permission, no answer.
        raise NoEngineError(str(error)) from error
    return f"{version['Platform']['Name'] or 'Docker'} {version['Version']}"


def is_there(network: Network) -> bool:
    """Whether the engine has a network of that name."""
    return bool(cast(Any, DockerClient().client).networks.list(names=[network.name]))


def gateway(network: Network) -> str:
    """The address under which containers of the network reach this machine."""
    inner = cast(Any, DockerClient().client).networks.get(network.name)
    return str(inner.attrs["IPAM"]["Config"][0]["Gateway"])


class Surroundings:
    """Makes services from their images; `kafka` is Kafka's address for containers."""

    def __init__(self, images: Mapping[str, str], network: Network, kafka: str, logs: Path) -> None:
        self._images = images
        self._network = network
        self._kafka = kafka
        self._logs = logs

    @contextmanager
    def running(
        self,
        service: str,
        ports: tuple[int, ...] = (),
        memory: str = "256m",
        scratch: str = "64m",
        **settings: str,
    ) -> Iterator[ServiceContainer]:
        """The service, started with more settings of its own; ready or not."""
        shared = {"SLUICE_KAFKA_BOOTSTRAP": self._kafka, "SLUICE_PARTITIONS": str(PARTITIONS)}
        more = {f"SLUICE_{name.upper()}": value for name, value in settings.items()}
        container = ServiceContainer(
            self._images[service],
            self._network,
            service,
            shared | more,
            logs=self._logs,
            memory=memory,
            scratch=scratch,
            ports=ports,
        )
        with container:
            yield container


def container_map(store: SegmentStoreServer) -> Example:
    """cluster-manager's record that gives all containers to the segment store."""
    record = next(e for e in examples.journal_records() if e.type == "ContainersAssigned")
    value, host = record.json(), {"address": store.host.address, "port": store.host.port}
    event = value["entries"][0]["events"][0]
    event["containers"] = dict.fromkeys(event["containers"], host)
    event["hosts"] = [host]
    return msgspec.structs.replace(record, value=msgspec.json.encode(value))


def tell_history(neighbours: Neighbours, leave_out: str = "") -> None:
    """Everything that the examples say has happened, recorded by services of a later version.

    What has a key that begins with `leave_out` is left out, if that is given.
    """
    records = [newer(e) for e in examples.journal_records() if not leave_out or not e.key.startswith(leave_out)]
    neighbours.send(*records)
    neighbours.journal.catch_up()
    assert len(neighbours.journal.counted) == sum(len(e.json()["entries"]) for e in records)
