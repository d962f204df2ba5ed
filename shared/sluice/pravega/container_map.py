"""The container map and the hosts in it, as the bytes that segment stores read and write in ZooKeeper.

Both use Pravega's versioned envelope. Rules: segment-store-cluster A3 to A5. Pure functions.
"""

from collections.abc import Collection, Mapping

from sluice.domain.host import Host
from sluice.pravega.envelope import PayloadReader, collection, envelope, int32, text

CONTAINER_MAP_NODE = "cluster/segmentContainerHostMapping"
"""Where the map stands, below `/pravega/<cluster name>`."""
HOSTS_NODE = "cluster/hosts"
"""Whose children are the live segment stores, below `/pravega/<cluster name>`; their payload is a `Host`."""
CONTROLLERS_NODE = "cluster/controllers"
"""Likewise the controllers."""


class Controller(Host, frozen=True, order=True):
    """What stands among the controllers. A segment store's endpoint id is empty."""

    endpoint_id: str


def node_of(controller: Controller) -> str:
    """The name of a controller's node (A2)."""
    return f"{controller.address}:{controller.port}:{controller.endpoint_id}"


def encode_host(host: Host) -> bytes:
    """The payload of a host's node (A4)."""
    return envelope(text(host.address) + int32(host.port) + text(_endpoint_id(host)))


def decode_host(data: bytes) -> Host:
    """The host in a node's payload (A4). Raises MalformedPayload."""
    return _read_host(PayloadReader(data))


def encode_container_map(containers: Mapping[Host, Collection[int]]) -> bytes:
    """The payload of the map's node (A5); hosts and containers in order, so that equal maps are equal bytes."""
    entries = (
        encode_host(host) + envelope(collection(map(int32, sorted(ids)))) for host, ids in sorted(containers.items())
    )
    return envelope(collection(entries))


def decode_container_map(data: bytes) -> dict[Host, frozenset[int]]:
    """Which containers each host has (A5); a host may have none. Raises MalformedPayload."""
    return PayloadReader(data).envelope()[0].mapping(_read_host, _read_container_set)


def _read_host(payload: PayloadReader) -> Host:
    data = payload.envelope()[0]
    host, endpoint_id = Host(data.text(), data.int32()), data.text()
    return Controller(host.address, host.port, endpoint_id) if endpoint_id else host


def _endpoint_id(host: Host) -> str:
    return host.endpoint_id if isinstance(host, Controller) else ""


def _read_container_set(payload: PayloadReader) -> frozenset[int]:
    return frozenset(payload.envelope()[0].collection(PayloadReader.int32))
