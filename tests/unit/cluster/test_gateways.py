"""Which gateways stand in ZooKeeper as controllers, and when that changes."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from support.memory_world import MemoryWorld, until

from cluster_manager.gateways import AGAIN_S, OTHERS_S, GatewayNodes
from cluster_manager.nodes import NodesError
from sluice.domain.cluster.events import MemberJoined, MemberLeft
from sluice.domain.cluster.state import CLUSTER
from sluice.pravega.container_map import Controller

ONE, TWO = Controller("10.0.0.1", 9090, "gw-1"), Controller("fd00::2", 9091, "gw-2")


class FakeRegistry:
    """What this instance's session has in ZooKeeper."""

    def __init__(self) -> None:
        self.connected = True
        self.refuses = False
        self.tried = False
        self.registered: set[Controller] = set()
        self.others: set[str] = set()

    async def register(self, controllers: Collection[Controller]) -> set[str]:
        self.tried = True
        if self.refuses:
            raise NodesError("no")
        self.registered = set(controllers)
        return self.others


class Scene:
    def __init__(self) -> None:
        self.world = MemoryWorld("cluster-manager")
        self.journal = self.world.process().journal
        self.registry = FakeRegistry()
        self.active = True
        self.gateways = GatewayNodes(self.journal, self.registry, lambda: self.active)

    async def join(self, service: str, instance: str, **endpoints: str) -> None:
        await self.world.seed(CLUSTER, MemberJoined(service, instance, endpoints, 1))
        self.gateways.wake()

    async def shown(self, *hosts: Controller) -> None:
        await until(lambda: self.registry.registered == set(hosts))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.gateways.run())
        yield
        task.cancel()


async def test_gateways_stand_there_as_long_as_they_are_members() -> None:
    scene = Scene()
    await scene.join("api-gateway", "gw-1", grpc="10.0.0.1:9090", rest="10.0.0.1:10080")
    async with scene.running():
        await scene.shown(ONE)
        await scene.join("txn-manager", "txn-1")
        await scene.join("api-gateway", "gw-2", grpc="[fd00::2]:9091")
        await scene.shown(ONE, TWO)
        await scene.world.seed(CLUSTER, MemberLeft("gw-1", 2))
        scene.gateways.wake()
        await scene.shown(TWO)


async def test_only_the_active_instance_registers_them() -> None:
    scene = Scene()
    await scene.join("api-gateway", "gw-1", grpc="10.0.0.1:9090")
    async with scene.running():
        await scene.shown(ONE)
        scene.active = False
        await scene.shown()


async def test_what_zookeeper_refused_is_tried_again() -> None:
    scene = Scene()
    scene.registry.refuses = True
    await scene.join("api-gateway", "gw-1", grpc="10.0.0.1:9090")
    async with scene.running():
        await until(lambda: scene.registry.tried)
        scene.registry.refuses = False
        await scene.shown(ONE)


async def test_a_controller_that_is_none_of_sluices_is_named_once_it_stays() -> None:
    scene = Scene()
    async with scene.running():
        for stays_s, is_named in ((OTHERS_S / 2, False), (OTHERS_S, True)):
            scene.registry.others = {"10.0.0.9:9090:theirs"}
            await asyncio.sleep(stays_s + AGAIN_S)
            assert ("10.0.0.9:9090:theirs" in (scene.gateways.problem() or "")) is is_named
            scene.registry.others = set()
            await asyncio.sleep(2 * AGAIN_S)
            assert scene.gateways.problem() is None


async def test_to_an_instance_that_is_not_active_the_gateways_of_the_active_one_are_no_problem() -> None:
    scene = Scene()
    scene.active = False
    scene.registry.others = {"10.0.0.1:9090:gw-1"}
    async with scene.running():
        await asyncio.sleep(2 * OTHERS_S)
        assert scene.gateways.problem() is None
