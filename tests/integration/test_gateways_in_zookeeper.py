"""The gateways where Pravega's tools look for controllers: below the cluster's node in ZooKeeper."""

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from support.instances import have_instances

from harness import System, eventually
from sluice.domain.host import Host
from sluice.pravega.container_map import CONTROLLERS_NODE, Controller, decode_host

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

DEADLINE_S = 60.0


@pytest.fixture
def both(disturbed: System) -> System:
    return have_instances(disturbed, 2, DEADLINE_S)


@pytest.fixture
def zookeeper(both: System) -> Iterator[KazooClient]:
    client = KazooClient(both.zookeeper, timeout=5)
    client.start(timeout=60)
    yield client
    client.stop()
    client.close()


def test_gateways_are_registered_while_they_live_whoever_registers_them(both: System, zookeeper: KazooClient) -> None:
    controllers = f"/pravega/{both.settings.cluster_name}/{CONTROLLERS_NODE}"

    def registered() -> dict[str, tuple[Host, int]]:
        """By the name of each node what it says, and the session that it belongs to."""
        found = {}
        for name in zookeeper.get_children(controllers) if zookeeper.exists(controllers) else ():
            try:
                data, stat = zookeeper.get(f"{controllers}/{name}")
            except NoNodeError:
                continue
            found[name] = decode_host(data), stat.owner_session_id
        return found

    def expected(*instances: str) -> dict[str, Controller]:
        addresses = dict(zip(("api-gateway-0", "api-gateway-1"), both.grpc_addresses, strict=True))
        pairs = ((instance, addresses[instance].rpartition(":")) for instance in instances)
        return {f"{host}:{port}:{name}": Controller(host, int(port), name) for name, (host, _, port) in pairs}

    def are(*instances: str) -> set[int] | None:
        """The sessions, once these and no others are registered."""
        found = registered()
        hosts = {name: host for name, (host, _) in found.items()}
        return {session for _, session in found.values()} if hosts == expected(*instances) else None

    def by_one_session() -> set[int] | None:
        found = are("api-gateway-0", "api-gateway-1")
        return found if found is not None and len(found) == 1 and None not in found else None

    # Who has been the active one before may have registered one of them.
    first = eventually(by_one_session, DEADLINE_S, "both gateways are registered, by nodes of one session")
    assert first is not None
    before = frozenset(first)

    both.stop("api-gateway-1")
    eventually(lambda: are("api-gateway-0"), DEADLINE_S, "the one that was stopped is not there any more")

    # One of them is the active one; its nodes go with its session, and another instance makes new ones.
    for name in ("cluster-manager-0", "cluster-manager-1"):
        both.kill(name)
        eventually(lambda: are("api-gateway-0"), DEADLINE_S, f"registered after {name} was killed")
        both.start(name, deadline_s=DEADLINE_S)
    second = eventually(
        lambda: sessions if (sessions := are("api-gateway-0")) and not sessions & before else None,
        DEADLINE_S,
        "registered by another session",
    )
    assert second is not None and len(second) == 1
    both.start("api-gateway-1", deadline_s=DEADLINE_S)
    eventually(lambda: are("api-gateway-0", "api-gateway-1"), DEADLINE_S, "both are registered again")
