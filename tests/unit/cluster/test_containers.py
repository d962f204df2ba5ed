"""The active and the standby instance against a journal and a ZooKeeper in memory, in virtual time."""

import asyncio

import pytest
from prometheus_client import REGISTRY
from support.virtual_time import run
from unit.cluster.fakes import A, B, C, ClusterWorld, FakeZooKeeper, Instance, host_sets

from cluster_manager.containers import LOOK_AGAIN_S, NEGLECTED_S, RETRY_S
from sluice.domain.cluster.commands import Heartbeat, Host
from sluice.domain.cluster.decide import decide_heartbeat
from sluice.domain.cluster.state import CLUSTER

MOMENT_S = 0.001


class World(ClusterWorld):
    def __init__(self) -> None:
        super().__init__()
        self.zookeeper = FakeZooKeeper()

    def manager(self, name: str, interval_s: float = 10, settle_s: float = 0) -> Instance:
        return Instance(name, self, self.zookeeper, interval_s=interval_s, settle_s=settle_s)

    @property
    def published(self) -> dict[Host, frozenset[int]] | None:
        return self.zookeeper.node.containers if self.zookeeper.node is not None else None

    def agrees(self) -> bool:
        """Whether ZooKeeper says what the journal says, and that covers everything."""
        containers = self.cluster.containers
        published = {c: host for host, ids in (self.published or {}).items() for c in ids}
        return sorted(containers) == [0, 1, 2, 3] and published == containers


def moves() -> float:
    """Containers given to another segment store so far."""
    return REGISTRY.get_sample_value("sluice_container_moves_total") or 0.0


async def settle() -> None:
    await asyncio.sleep(MOMENT_S)


def test_the_node_is_created_early_and_filled_at_once() -> None:
    async def story() -> None:
        world = World()
        one = world.manager("cm-1")
        assert one.manager.problem() == "no segment store has registered yet"
        one.start(active=True)
        await settle()
        assert world.published == {}
        world.zookeeper.set_hosts(A)
        await settle()
        assert world.published == host_sets(A=[0, 1, 2, 3])
        assert world.agrees()
        assert one.manager.problem() is None

    run(story())


def test_later_changes_keep_the_interval_and_move_little() -> None:
    async def story() -> None:
        world = World()
        world.zookeeper.set_hosts(A)
        world.manager("cm-1", interval_s=3).start(active=True)
        await settle()
        world.zookeeper.set_hosts(A, B)
        await asyncio.sleep(2.9)
        assert world.published == host_sets(A=[0, 1, 2, 3])
        moved = moves()
        await asyncio.sleep(0.2)
        assert world.published == host_sets(A=[0, 1], B=[2, 3])
        assert moves() - moved == 2
        await asyncio.sleep(60)
        world.zookeeper.set_hosts(B)
        await settle()
        assert world.published == host_sets(B=[0, 1, 2, 3])

    run(story())


def test_a_host_that_was_away_within_the_interval_keeps_its_containers() -> None:
    async def story() -> None:
        world = World()
        world.zookeeper.set_hosts(A, B)
        world.manager("cm-1").start(active=True)
        await settle()
        writes = len(world.zookeeper.history)
        world.zookeeper.set_hosts(A)
        await asyncio.sleep(5)
        world.zookeeper.set_hosts(A, B)
        await asyncio.sleep(60)
        assert len(world.zookeeper.history) == writes

    run(story())


@pytest.mark.parametrize("gap_s", [0.002, 0.05, 0.4])
def test_a_host_whose_node_is_made_anew_keeps_its_containers(gap_s: float) -> None:
    """A store that restarted finds its old node, which goes when the old session expires, and comes back at once."""

    async def story() -> None:
        world = World()
        world.zookeeper.set_hosts(A, B)
        world.manager("cm-1", settle_s=0.5).start(active=True)
        await asyncio.sleep(60)
        writes = len(world.zookeeper.history)
        for _ in range(3):
            world.zookeeper.set_hosts(A)
            await asyncio.sleep(gap_s)
            world.zookeeper.set_hosts(A, B)
            await asyncio.sleep(60)
        assert len(world.zookeeper.history) == writes
        world.zookeeper.set_hosts(A)
        await asyncio.sleep(0.5 + MOMENT_S)
        assert world.published == host_sets(A=[0, 1, 2, 3])

    run(story())


def test_a_host_whose_node_is_made_anew_when_an_assignment_is_due_keeps_its_containers() -> None:
    async def story() -> None:
        world = World()
        world.zookeeper.set_hosts(A, B)
        world.manager("cm-1", settle_s=0.5).start(active=True)
        await asyncio.sleep(1)
        world.zookeeper.set_hosts(A, B, C)
        await asyncio.sleep(9.49)
        world.zookeeper.set_hosts(A, C)
        await asyncio.sleep(0.02)
        world.zookeeper.set_hosts(A, B, C)
        await asyncio.sleep(60)
        assert [event.hosts for event in world.assignments] == [(A, B), (A, B, C)]

    run(story())


def test_stores_that_start_together_are_assigned_together() -> None:
    async def story() -> None:
        world = World()
        world.manager("cm-1", settle_s=0.5).start(active=True)
        await asyncio.sleep(1)
        for hosts in ([A], [A, B], [A, B, C]):
            world.zookeeper.set_hosts(*hosts)
            await asyncio.sleep(0.4)
        await settle()
        assert world.published == {}
        await asyncio.sleep(0.1)
        assert world.published is not None and set(world.published) == {A, B, C}

    run(story())


def test_stores_that_never_stop_to_come_hold_no_other_up_for_long() -> None:
    async def story() -> None:
        world = World()
        world.manager("cm-1", settle_s=0.5).start(active=True)
        for number in range(1, 8):
            world.zookeeper.set_hosts(*(Host("10.0.0.1", port) for port in range(number)))
            await asyncio.sleep(0.3)
        assert len(world.published or {}) == 7

    run(story())


def test_a_store_without_containers_is_in_the_map() -> None:
    async def story() -> None:
        world = World()
        hosts = [Host("10.0.0.1", 12345 + n) for n in range(5)]
        world.zookeeper.set_hosts(*hosts)
        world.manager("cm-1").start(active=True)
        await settle()
        assert world.published is not None
        assert set(world.published) == set(hosts)
        assert sorted(map(len, world.published.values())) == [0, 1, 1, 1, 1]

    run(story())


def test_without_hosts_the_last_map_stays() -> None:
    async def story() -> None:
        world = World()
        world.zookeeper.set_hosts(A, B)
        world.manager("cm-1").start(active=True)
        await settle()
        before, records = world.published, world.records
        world.zookeeper.set_hosts()
        await asyncio.sleep(100)
        assert world.published == before
        assert world.records == records
        world.zookeeper.set_hosts(C)
        await settle()
        assert world.published == host_sets(C=[0, 1, 2, 3])

    run(story())


@pytest.mark.parametrize("content", [None, {}, host_sets(C=[0, 1, 2, 3])])
def test_what_another_program_writes_is_put_right(content: dict[Host, frozenset[int]] | None) -> None:
    async def story() -> None:
        world = World()
        world.zookeeper.set_hosts(A, B)
        world.manager("cm-1").start(active=True)
        await settle()
        world.zookeeper.put(content)
        await settle()
        assert world.agrees()
        world.zookeeper.remove()
        await settle()
        assert world.agrees()

    run(story())


def test_before_the_first_assignment_a_map_that_is_there_stays() -> None:
    async def story() -> None:
        world = World()
        world.zookeeper.put(host_sets(A=[0, 1], B=[2, 3]))
        world.manager("cm-1").start(active=True)
        await asyncio.sleep(60)
        assert world.published == host_sets(A=[0, 1], B=[2, 3])

    run(story())


def test_the_first_assignment_goes_on_from_a_map_that_is_there() -> None:
    async def story() -> None:
        world = World()
        world.zookeeper.put(host_sets(A=[0, 1, 3], B=[2]))
        world.zookeeper.set_hosts(A, B)
        moved = moves()
        world.manager("cm-1").start(active=True)
        await settle()
        assert world.published == host_sets(A=[0, 1], B=[2, 3])
        assert moves() - moved == 1

    run(story())


def test_away_means_unknown_and_back_means_read_afresh() -> None:
    async def story() -> None:
        world = World()
        world.zookeeper.set_hosts(A, B)
        one = world.manager("cm-1")
        one.start(active=True)
        await settle()
        before, records = world.published, world.records
        one.nodes.set_connected(False)
        world.zookeeper.set_hosts(B)
        await asyncio.sleep(100)
        assert world.published == before
        assert world.records == records
        assert one.manager.problem() is None
        one.nodes.set_connected(True)
        await settle()
        assert world.published == host_sets(B=[0, 1, 2, 3])
        assert one.task is not None
        assert not one.task.done()

    run(story())


@pytest.mark.parametrize("point", ["ask hosts", "hosts read", "ask map", "map read", "write map"])
def test_zookeeper_lost_in_the_middle_is_made_up_for(point: str) -> None:
    async def story() -> None:
        world = World()
        world.zookeeper.set_hosts(A, B)
        one = world.manager("cm-1")
        one.freezer.freeze_at(point)
        one.start(active=True)
        await one.freezer.reached.wait()
        one.nodes.connected = False
        one.freezer.thaw()
        await asyncio.sleep(60)
        assert world.published in (None, {})
        one.nodes.set_connected(True)
        await settle()
        assert world.agrees()

    run(story())


def test_kafka_away_in_the_middle_is_made_up_for() -> None:
    async def story() -> None:
        world = World()
        one = world.manager("cm-1")
        one.start(active=True)
        await settle()
        world.journal_away(True)
        world.zookeeper.set_hosts(A)
        await asyncio.sleep(30)
        assert world.published == {}
        world.journal_away(False)
        await asyncio.sleep(RETRY_S + MOMENT_S)
        assert world.agrees()

    run(story())


def test_hosts_of_before_an_outage_of_kafka_are_given_nothing_after_it() -> None:
    async def story() -> None:
        world = World()
        world.manager("cm-1").start(active=True)
        await settle()
        world.journal_away(True)
        world.zookeeper.set_hosts(A)
        await asyncio.sleep(30)
        world.zookeeper.set_hosts(B)
        await asyncio.sleep(30)
        world.journal_away(False)
        await asyncio.sleep(60)
        assert [event.hosts for event in world.assignments] == [(B,)] and world.agrees()

    run(story())


def test_a_standby_does_nothing_until_it_takes_over() -> None:
    async def story() -> None:
        world = World()
        world.zookeeper.set_hosts(A)
        one, two = world.manager("cm-1"), world.manager("cm-2")
        one.start(active=True)
        two.start(active=False)
        await settle()
        assert one.task is not None
        one.task.cancel()
        one.active = False
        await asyncio.sleep(30)
        world.zookeeper.set_hosts(B)
        await asyncio.sleep(NEGLECTED_S - 1)
        assert world.published == host_sets(A=[0, 1, 2, 3])
        two.activate()
        await settle()
        assert world.published == host_sets(B=[0, 1, 2, 3])
        assert {"cm-1", "cm-2"} <= set(world.cluster.members)

    run(story())


def test_a_standby_stands_in_for_an_active_instance_that_zookeeper_is_away_for() -> None:
    async def story() -> None:
        world = World()
        world.zookeeper.set_hosts(A, B)
        one, two = world.manager("cm-1"), world.manager("cm-2")
        one.start(active=True)
        two.start(active=False)
        await asyncio.sleep(30)
        records = world.records
        one.nodes.set_connected(False)
        await asyncio.sleep(3600)
        world.zookeeper.set_hosts()
        await asyncio.sleep(3600)
        assert world.records == records
        world.zookeeper.set_hosts(A)
        await asyncio.sleep(NEGLECTED_S + LOOK_AGAIN_S)
        assert world.published == host_sets(A=[0, 1, 2, 3])
        one.nodes.set_connected(True)
        world.zookeeper.set_hosts(A, B)
        await settle()
        assert world.agrees() and set(world.published or {}) == {A, B}

    run(story())


def test_an_assignment_that_was_not_published_is_by_the_next_instance() -> None:
    async def story() -> None:
        world = World()
        world.zookeeper.set_hosts(A)
        one, two = world.manager("cm-1"), world.manager("cm-2")
        one.freezer.freeze_at("map read")
        one.start(active=True)
        await one.freezer.reached.wait()
        assert one.task is not None
        one.task.cancel()
        assert world.published is None
        two.start(active=True)
        await settle()
        assert world.agrees()

    run(story())


POINTS = ["ask hosts", "hosts read", "append", "folded", "ask map", "map read", "barrier", "write map"]


@pytest.mark.parametrize("still_active", [True, False])
@pytest.mark.parametrize("point", POINTS)
def test_an_instance_frozen_anywhere_brings_nothing_back(point: str, still_active: bool) -> None:
    """It froze while it was about to give B containers; B is gone when it thaws."""

    async def story() -> None:
        world = World()
        world.zookeeper.set_hosts(A)
        old, new = world.manager("cm-1", interval_s=0), world.manager("cm-2", interval_s=0)
        old.start(active=True)
        new.start(active=False)
        await settle()
        old.freezer.freeze_at(point)
        world.zookeeper.set_hosts(A, B)
        await old.freezer.reached.wait()
        new.activate()
        await settle()
        world.zookeeper.set_hosts(A, C)
        await settle()
        assert world.agrees()
        newest, written, decided = world.published, len(world.zookeeper.history), list(world.assignments)
        old.active = still_active
        old.freezer.thaw()
        await asyncio.sleep(60)
        assert world.published == newest == host_sets(A=[0, 1], C=[2, 3])
        assert world.zookeeper.history[written:] == []
        assert world.assignments == decided

    run(story())


@pytest.mark.parametrize("point", ["ask hosts", "hosts read", "append"])
def test_a_frozen_decision_is_void_even_if_nothing_was_decided_meanwhile(point: str) -> None:
    """B came and went: the instance that took over saw no need to assign, yet the old decision must not count."""

    async def story() -> None:
        world = World()
        world.zookeeper.set_hosts(A)
        old, new = world.manager("cm-1", interval_s=0), world.manager("cm-2", interval_s=0)
        old.start(active=True)
        await settle()
        old.freezer.freeze_at(point)
        world.zookeeper.set_hosts(A, B)
        await old.freezer.reached.wait()
        world.zookeeper.set_hosts(A)
        new.start(active=True)
        await settle()
        old.freezer.thaw()
        await asyncio.sleep(60)
        assert [event.hosts for event in world.assignments] == [(A,)]
        assert host_sets(A=[0, 1], B=[2, 3]) not in world.zookeeper.history

    run(story())


def test_a_member_that_joins_meanwhile_does_not_delay_an_assignment() -> None:
    async def story() -> None:
        world = World()
        one = world.manager("cm-1")
        one.start(active=True)
        await settle()
        one.freezer.freeze_at("hosts read")
        world.zookeeper.set_hosts(A)
        await one.freezer.reached.wait()
        beat = Heartbeat(service="api-gateway", instance="gw", endpoints={})
        await world.do(CLUSTER, lambda reader, context: decide_heartbeat(reader, beat, context))
        one.freezer.thaw()
        await settle()
        assert world.agrees()

    run(story())


def test_two_that_both_believe_to_be_active_agree() -> None:
    async def story() -> None:
        world = World()
        for name in ("cm-1", "cm-2"):
            world.manager(name, interval_s=1).start(active=True)
        for hosts in ([A], [A, B], [B, C], [C], [A, B, C]):
            world.zookeeper.set_hosts(*hosts)
            await asyncio.sleep(3)
            assert world.agrees()
            assert set(world.published or {}) == set(hosts)

    run(story())
