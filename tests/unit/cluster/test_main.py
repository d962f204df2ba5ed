"""Which instance of cluster-manager decides, by the partitions that the group of the cluster's requests gives it."""

from collections.abc import Collection

import pytest

from cluster_manager import main
from cluster_manager.main import ClusterManager
from cluster_manager.settings import ClusterManagerSettings
from sluice.engine.ports import SourceListener
from sluice.kafka.topics import REQUESTS_CLUSTER
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.runtime import Runtime


class Member:
    """A member of the group, which the test gives partitions."""

    topic = REQUESTS_CLUSTER.name
    failure: BaseException | None = None
    listener: SourceListener

    def start(self, listener: SourceListener) -> None:
        self.listener = listener

    async def stop(self) -> None:
        """See RequestSource."""

    def commit(self) -> bool:
        return False

    def pause(self, partitions: Collection[int]) -> None:
        """See RequestSource."""

    async def identity(self) -> str:
        return self.topic


class NoZooKeeper:
    """Never connects."""

    connected = False

    def __init__(self, *_arguments: object, **_options: object) -> None:
        """As ZooKeeperNodes is made."""

    def problem(self) -> str | None:
        return "away"

    def start(self) -> None:
        """See ZooKeeperNodes."""

    async def stop(self) -> None:
        """See ZooKeeperNodes."""


async def nothing(_runtime: Runtime) -> None:
    """In the place of what looks at Kafka."""


@pytest.fixture
def member(monkeypatch: pytest.MonkeyPatch) -> Member:
    member = Member()
    monkeypatch.setattr(Runtime, "request_source", lambda *_: member)
    monkeypatch.setattr(main, "ZooKeeperNodes", NoZooKeeper)
    monkeypatch.setattr(main, "watch_topic_settings", nothing)
    return member


async def test_only_the_owner_of_the_first_partition_is_active(member: Member) -> None:
    """Someone may have given the topic a second one."""
    settings = ClusterManagerSettings(instance="cm-1")
    runtime = Runtime("cluster-manager", settings, MemoryConnections(MemoryGroups(MemoryBroker())))
    async with runtime.stack:
        manager = ClusterManager(runtime, settings)
        manager.start()
        for assigned, active in ([1], False), ([0], True):
            member.listener.assigned(assigned)
            assert manager.active() is active, assigned
        member.listener.revoked([0])
        assert not manager.active()
