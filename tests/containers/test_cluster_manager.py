"""cluster-manager alone: which services live it hears from their heartbeats, which segment stores from ZooKeeper.

The journal holds the history of the examples when the service starts: its map is one of long ago.
"""

from collections.abc import Iterator

import msgspec
import pytest
from kazoo.client import KazooClient

from containers.backing import ZooKeeperContainer
from containers.container_contract import ContainerContract, EndContract, FollowerContract
from containers.lives import garbage, newer
from containers.neighbours import Neighbours
from containers.service import ServiceContainer
from containers.surroundings import Surroundings, tell_history
from harness import eventually
from sluice.catalog import examples
from sluice.catalog.examples import Example
from sluice.domain.cluster import events as ev
from sluice.domain.host import Host
from sluice.kafka.topics import REQUESTS_CLUSTER
from sluice.pravega.container_map import (
    CONTAINER_MAP_NODE,
    HOSTS_NODE,
    decode_container_map,
    encode_host,
)

GROUP = "cluster-manager"
CLUSTER = "contract"
SHOWS_S = 60.0
STORE = Host("segment-store-7.sluice.svc", 12345)


@pytest.fixture(scope="module")
def nodes(zookeeper: ZooKeeperContainer) -> Iterator[KazooClient]:
    """ZooKeeper as the segment stores use it; what is made there goes with the session."""
    client = KazooClient(zookeeper.outside)
    client.start(timeout=SHOWS_S)
    yield client
    client.stop()
    client.close()


@pytest.fixture(scope="module")
def service(
    surroundings: Surroundings, neighbours: Neighbours, zookeeper: ZooKeeperContainer
) -> Iterator[ServiceContainer]:
    tell_history(neighbours)
    with surroundings.running(
        "cluster-manager", zookeeper=zookeeper.inside, cluster_name=CLUSTER, member_timeout_s="3600"
    ) as service:
        service.wait_ready()
        yield service


def heartbeat(instance: str) -> Example:
    """A sign of life of an unknown service."""
    known = next(e for e in examples.requests() if e.topic == REQUESTS_CLUSTER.name)
    value = known.value.replace(b"api-gateway-0", instance.encode())
    return msgspec.structs.replace(known, value=value)


def joined(neighbours: Neighbours, instance: str) -> list[ev.MemberJoined]:
    return [e for e in neighbours.journal.events(ev.MemberJoined) if e.instance == instance]


def test_segment_stores_get_containers(neighbours: Neighbours, nodes: KazooClient, service: ServiceContainer) -> None:
    """A store registers; the journal gets a map in which it has all containers, and ZooKeeper the same one."""
    path = f"/pravega/{CLUSTER}/{HOSTS_NODE}/{STORE.address}:{STORE.port}"
    nodes.create(path, encode_host(STORE), ephemeral=True, makepath=True)

    def published() -> bool:
        data, _ = nodes.get(f"/pravega/{CLUSTER}/{CONTAINER_MAP_NODE}")
        return decode_container_map(data) == {STORE: frozenset(range(4))}

    eventually(published, SHOWS_S, "the map gives all containers to the store")
    last = neighbours.journal.events(ev.ContainersAssigned)[-1]
    assert {(host.address, host.port) for host in last.containers.values()} == {(STORE.address, STORE.port)}
    assert sorted(last.containers) == [0, 1, 2, 3]
    assert service.get("/readyz").json()["role"] == "active"


@pytest.mark.usefixtures("service")
def test_a_service_that_shows_life_becomes_a_member_once(neighbours: Neighbours) -> None:
    """Twice at once, and again later, from a service of a later version."""
    instance = "newest-1"
    sign = newer(heartbeat(instance))
    neighbours.consumed(GROUP, neighbours.send(sign, sign))
    (member,) = joined(neighbours, instance)
    assert member.service == "api-gateway" and set(member.endpoints) == {"grpc", "rest"}
    neighbours.consumed(GROUP, neighbours.send(sign))
    assert len(joined(neighbours, instance)) == 1


@pytest.mark.usefixtures("service")
def test_dead_letters_are_what_cannot_be_handled(neighbours: Neighbours) -> None:
    """Kept as they were, with the reason; heartbeats go on behind them."""
    known = heartbeat("later-1")
    foreign = [e for e in examples.requests() if e.topic != REQUESTS_CLUSTER.name]
    misplaced = [msgspec.structs.replace(e, topic=REQUESTS_CLUSTER.name, key=known.key) for e in foreign]
    bad = [examples.of_unknown_type(known), *misplaced, *garbage(known)]
    offsets = neighbours.send(*bad, known)
    neighbours.consumed(GROUP, offsets)
    assert len(joined(neighbours, "later-1")) == 1
    neighbours.check_dead_letters(offsets[:-1], bad)


class TestAsContainer(ContainerContract):
    pass


class TestAsFollower(FollowerContract):
    pass


class TestEnd(EndContract):
    pass
