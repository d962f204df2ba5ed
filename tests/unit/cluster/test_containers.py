"""The active and the standby instance against a journal and a ZooKeeper in memory."""

import asyncio

import pytest
from prometheus_client import REGISTRY
from unit.cluster.fakes import MOMENT_S, A, B, C, ClusterWorld, host_sets, settle

from cluster_manager.containers import LOOK_AGAIN_S, NEGLECTED_S, RETRY_S
from cluster_manager.nodes import HostMap
from sluice.domain.cluster.commands import DrainStore, Heartbeat
from sluice.domain.cluster.decide import decide_drain, decide_heartbeat
from sluice.domain.cluster.events import ContainersAssigned
from sluice.domain.cluster.state import CLUSTER
from sluice.domain.host import Host


def moves() -> float:
    """Containers given to another segment store so far."""
    return REGISTRY.get_sample_value("sluice_container_moves_total") or 0.0


def moving_assignments() -> float:
    """Assignments so far that gave a container to another segment store."""
    return REGISTRY.get_sample_value("sluice_container_assignments_total") or 0.0


async def test_the_node_is_created_early_and_filled_at_once(world: ClusterWorld) -> None:
    one = await world.started()
    assert one.manager.problem() == "no segment store has registered yet"
    assert world.published == {}
    world.zookeeper.set_hosts(A)
    await settle()
    assert world.published == host_sets(A=[0, 1, 2, 3])
    assert world.agrees()
    assert one.manager.problem() is None


async def test_later_changes_keep_the_interval_and_move_little(world: ClusterWorld) -> None:
    assigned = moving_assignments()
    await world.started(A, interval_s=3)
    world.zookeeper.set_hosts(A, B)
    await asyncio.sleep(2.9)
    assert world.published == host_sets(A=[0, 1, 2, 3])
    assert moving_assignments() == assigned, "the first one moves nothing"
    moved = moves()
    await asyncio.sleep(0.2)
    assert world.published == host_sets(A=[0, 1], B=[2, 3])
    assert (moves() - moved, moving_assignments() - assigned) == (2, 1)
    await asyncio.sleep(60)
    world.zookeeper.set_hosts(B)
    await settle()
    assert world.published == host_sets(B=[0, 1, 2, 3])


async def test_a_host_that_was_away_within_the_interval_keeps_its_containers(world: ClusterWorld) -> None:
    await world.started(A, B)
    writes = len(world.zookeeper.history)
    world.zookeeper.set_hosts(A)
    await asyncio.sleep(5)
    world.zookeeper.set_hosts(A, B)
    await asyncio.sleep(60)
    assert len(world.zookeeper.history) == writes


@pytest.mark.parametrize("gap_s", [0.002, 0.05, 0.4])
async def test_a_host_whose_node_is_made_anew_keeps_its_containers(world: ClusterWorld, gap_s: float) -> None:
    """A store that restarted finds its old node, which goes when the old session expires, and comes back at once."""
    await world.started(A, B, settle_s=0.5)
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


async def test_a_host_made_anew_when_an_assignment_is_due_keeps_its_containers(world: ClusterWorld) -> None:
    await world.started(A, B, settle_s=0.5)
    await asyncio.sleep(1)
    world.zookeeper.set_hosts(A, B, C)
    await asyncio.sleep(9.49)
    world.zookeeper.set_hosts(A, C)
    await asyncio.sleep(0.02)
    world.zookeeper.set_hosts(A, B, C)
    await asyncio.sleep(60)
    assert [event.hosts for event in world.assignments] == [(A, B), (A, B, C)]


async def test_stores_that_start_together_are_assigned_together(world: ClusterWorld) -> None:
    world.manager(settle_s=0.5).start(active=True)
    await asyncio.sleep(1)
    for hosts in ([A], [A, B], [A, B, C]):
        world.zookeeper.set_hosts(*hosts)
        await asyncio.sleep(0.4)
    await settle()
    assert world.published == {}
    await asyncio.sleep(0.1)
    assert world.published is not None and set(world.published) == {A, B, C}


async def test_stores_that_keep_joining_delay_no_other_for_long(world: ClusterWorld) -> None:
    world.manager(settle_s=0.5).start(active=True)
    for number in range(1, 8):
        world.zookeeper.set_hosts(*(Host("10.0.0.1", port) for port in range(number)))
        await asyncio.sleep(0.3)
    assert len(world.published or {}) == 7


async def test_a_store_without_containers_is_in_the_map(world: ClusterWorld) -> None:
    hosts = [Host("10.0.0.1", 12345 + n) for n in range(5)]
    await world.started(*hosts)
    assert world.published is not None
    assert set(world.published) == set(hosts)
    assert sorted(map(len, world.published.values())) == [0, 1, 1, 1, 1]


async def test_without_hosts_the_last_map_stays(world: ClusterWorld) -> None:
    await world.started(A, B)
    before, records = world.published, world.records
    world.zookeeper.set_hosts()
    await asyncio.sleep(100)
    assert world.published == before
    assert world.records == records
    world.zookeeper.set_hosts(C)
    await asyncio.sleep(10 + MOMENT_S)
    assert world.published == host_sets(C=[0, 1, 2, 3])


async def test_after_all_had_left_the_first_that_is_back_gets_nothing_of_the_others(world: ClusterWorld) -> None:
    await world.started(A, B, C, settle_s=0.5)
    await asyncio.sleep(60)
    world.zookeeper.set_hosts()
    await asyncio.sleep(100)
    for hosts in ([A], [A, B], [A, B, C]):
        world.zookeeper.set_hosts(*hosts)
        await asyncio.sleep(4.5)
    await asyncio.sleep(60)
    assert [event.hosts for event in world.assignments] == [(A, B, C)]


async def test_after_all_had_left_one_that_stays_away_is_replaced_soon(world: ClusterWorld) -> None:
    await world.started(A, B, settle_s=0.5)
    await asyncio.sleep(60)
    world.zookeeper.set_hosts()
    await asyncio.sleep(100)
    world.zookeeper.set_hosts(A)
    await asyncio.sleep(9.9)
    assert world.published == host_sets(A=[0, 2], B=[1, 3])
    await asyncio.sleep(0.2)
    assert world.published == host_sets(A=[0, 1, 2, 3])
    await asyncio.sleep(60)
    world.zookeeper.set_hosts(A, B)
    await asyncio.sleep(60)
    world.zookeeper.set_hosts(B)
    await asyncio.sleep(0.5 + MOMENT_S)
    assert world.published == host_sets(B=[0, 1, 2, 3])


async def test_the_first_stores_of_a_new_system_wait_for_no_others(world: ClusterWorld) -> None:
    await world.started(settle_s=0.5)
    await asyncio.sleep(60)
    world.zookeeper.set_hosts(A)
    await asyncio.sleep(0.5 + MOMENT_S)
    assert world.published == host_sets(A=[0, 1, 2, 3])


@pytest.mark.parametrize("refusal", ["", "NoAuthError()"])
async def test_a_host_that_had_left_before_zookeeper_did_is_looked_at_anew(world: ClusterWorld, refusal: str) -> None:
    """While no one looked B came back; its node is made anew in the moment in which ZooKeeper answers again."""
    one = await world.started(A, B, settle_s=0.5)
    await asyncio.sleep(60)
    world.zookeeper.set_hosts(A)
    await asyncio.sleep(0.1)
    one.nodes.refusal = refusal
    one.nodes.set_connected(bool(refusal))
    await asyncio.sleep(60)
    one.nodes.refusal = ""
    one.nodes.set_connected(True)
    await asyncio.sleep(0.1)
    world.zookeeper.set_hosts(A, B)
    await asyncio.sleep(60)
    assert [event.hosts for event in world.assignments] == [(A, B)]


async def test_what_zookeeper_refuses_shows_until_a_round_gets_through(world: ClusterWorld) -> None:
    one = await world.started(A)
    assert one.manager.problem() is None
    one.nodes.refusal = "NoAuthError()"
    await asyncio.sleep(LOOK_AGAIN_S + MOMENT_S)
    assert one.manager.problem() == "the container map is not brought up to date: NoAuthError()"
    one.nodes.refusal = ""
    await asyncio.sleep(RETRY_S + MOMENT_S)
    assert one.manager.problem() is None


@pytest.mark.parametrize("content", [None, {}, host_sets(C=[0, 1, 2, 3])])
async def test_what_another_program_writes_is_replaced(world: ClusterWorld, content: HostMap | None) -> None:
    await world.started(A, B)
    world.zookeeper.put(content)
    await settle()
    assert world.agrees()
    world.zookeeper.remove()
    await settle()
    assert world.agrees()


async def test_before_the_first_assignment_a_map_that_is_there_stays(world: ClusterWorld) -> None:
    world.zookeeper.put(host_sets(A=[0, 1], B=[2, 3]))
    world.manager().start(active=True)
    await asyncio.sleep(60)
    assert world.published == host_sets(A=[0, 1], B=[2, 3])


async def test_the_first_assignment_goes_on_from_a_map_that_is_there(world: ClusterWorld) -> None:
    world.zookeeper.put(host_sets(A=[0, 1, 3], B=[2]))
    moved = moves()
    await world.started(A, B)
    assert world.published == host_sets(A=[0, 1], B=[2, 3])
    assert moves() - moved == 1


@pytest.mark.parametrize("containers", [range(3), range(5)])
@pytest.mark.parametrize("is_imported", [False, True])
async def test_a_map_of_another_number_of_containers_is_not_touched(
    world: ClusterWorld, containers: range, is_imported: bool
) -> None:
    world.zookeeper.put(host_sets(A=containers))
    if is_imported:
        await world.seed(CLUSTER, ContainersAssigned(dict.fromkeys(containers, A), (A,), 1))
    assigned = len(world.assignments)
    one = await world.started(A)
    assert world.published == host_sets(A=containers) and len(world.assignments) == assigned
    assert f"the map has {len(containers)} containers, SLUICE_CONTAINER_COUNT says 4" in (one.manager.problem() or "")


async def test_without_zookeeper_the_map_stays_and_hosts_are_read_when_it_is_back(world: ClusterWorld) -> None:
    one = await world.started(A, B)
    before, records = world.published, world.records
    one.nodes.set_connected(False)
    world.zookeeper.set_hosts(B)
    await asyncio.sleep(100)
    assert world.published == before
    assert world.records == records
    assert one.manager.problem() is None
    one.nodes.set_connected(True)
    await settle()
    assert world.published == before, "A may come back, too"
    await asyncio.sleep(10)
    assert world.published == host_sets(B=[0, 1, 2, 3])
    assert one.task is not None
    assert not one.task.done()


@pytest.mark.parametrize("point", ["ask hosts", "hosts read", "ask map", "map read", "write map"])
async def test_a_round_without_zookeeper_is_repeated_when_it_is_back(world: ClusterWorld, point: str) -> None:
    world.zookeeper.set_hosts(A, B)
    one = world.manager()
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


async def test_a_round_without_kafka_is_repeated_when_it_is_back(world: ClusterWorld) -> None:
    await world.started()
    world.journal_away(True)
    world.zookeeper.set_hosts(A)
    await asyncio.sleep(30)
    assert world.published == {}
    world.journal_away(False)
    await asyncio.sleep(RETRY_S + MOMENT_S)
    assert world.agrees()


async def test_hosts_of_before_an_outage_of_kafka_are_given_nothing_after_it(world: ClusterWorld) -> None:
    await world.started()
    world.journal_away(True)
    world.zookeeper.set_hosts(A)
    await asyncio.sleep(30)
    world.zookeeper.set_hosts(B)
    await asyncio.sleep(30)
    world.journal_away(False)
    await asyncio.sleep(60)
    assert [event.hosts for event in world.assignments] == [(B,)] and world.agrees()


async def test_a_standby_does_nothing_until_it_takes_over(world: ClusterWorld) -> None:
    one, two = await world.started(A), world.manager("cm-2")
    two.start(active=False)
    await settle()
    one.kill()
    await asyncio.sleep(30)
    world.zookeeper.set_hosts(B)
    await asyncio.sleep(NEGLECTED_S - 1)
    assert world.published == host_sets(A=[0, 1, 2, 3])
    two.activate()
    await settle()
    assert world.published == host_sets(B=[0, 1, 2, 3])
    assert {"cm-1", "cm-2"} <= set(world.cluster.members)


async def test_a_standby_assigns_when_the_active_instance_has_lost_zookeeper(world: ClusterWorld) -> None:
    one, two = await world.started(A, B), world.manager("cm-2")
    two.start(active=False)
    await asyncio.sleep(30)
    records = world.records
    one.nodes.set_connected(False)
    await asyncio.sleep(3600)
    world.zookeeper.set_hosts()
    await asyncio.sleep(3600)
    assert world.records == records
    world.zookeeper.set_hosts(A)
    await asyncio.sleep(10 + NEGLECTED_S + 10 + 1)  # The second ten are for B, which may come back, too.
    assert world.published == host_sets(A=[0, 1, 2, 3])
    await asyncio.sleep(10)
    one.nodes.set_connected(True)
    world.zookeeper.set_hosts(A, B)
    await settle()
    assert world.agrees() and set(world.published or {}) == {A, B}


async def test_a_store_that_is_drained_gives_its_containers_up_when_the_interval_is_over(world: ClusterWorld) -> None:
    await world.started(A, B)
    await drain(world, A)
    await asyncio.sleep(9)
    assert world.published == host_sets(A=[0, 2], B=[1, 3])
    await asyncio.sleep(1)
    assert world.published == host_sets(A=[], B=[0, 1, 2, 3])
    world.zookeeper.set_hosts(B)
    await asyncio.sleep(60)
    world.zookeeper.set_hosts(A, B)
    await asyncio.sleep(60)
    assert world.published == host_sets(A=[], B=[0, 1, 2, 3]), "it is drained until an operator says otherwise"


async def test_a_standby_drains_a_store_when_the_active_instance_has_lost_zookeeper(world: ClusterWorld) -> None:
    one, two = await world.started(A, B), world.manager("cm-2")
    two.start(active=False)
    await asyncio.sleep(30)
    one.nodes.set_connected(False)
    await drain(world, A)
    await asyncio.sleep(10 + NEGLECTED_S - 1)
    assert world.published == host_sets(A=[0, 2], B=[1, 3])
    await asyncio.sleep(1 + MOMENT_S)
    assert world.published == host_sets(A=[], B=[0, 1, 2, 3])


async def drain(world: ClusterWorld, store: Host) -> None:
    await world.do(CLUSTER, lambda reader, context: decide_drain(reader, DrainStore(store), context))


async def test_an_assignment_that_was_not_published_is_by_the_next_instance(world: ClusterWorld) -> None:
    world.zookeeper.set_hosts(A)
    one, two = world.manager(), world.manager("cm-2")
    one.freezer.freeze_at("map read")
    one.start(active=True)
    await one.freezer.reached.wait()
    one.kill()
    assert world.published is None
    two.start(active=True)
    await settle()
    assert world.agrees()


POINTS = ["ask hosts", "hosts read", "append", "folded", "ask map", "map read", "barrier", "write map"]


@pytest.mark.parametrize("still_active", [True, False])
@pytest.mark.parametrize("point", POINTS)
async def test_an_instance_frozen_anywhere_brings_nothing_back(
    world: ClusterWorld, point: str, still_active: bool
) -> None:
    """It froze while it was about to give B containers; B is gone when it thaws."""
    old = await world.started(A, interval_s=0)
    new = world.manager("cm-2", interval_s=0)
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


@pytest.mark.parametrize("point", ["ask hosts", "hosts read", "append"])
async def test_a_frozen_decision_is_void_if_nothing_was_decided_meanwhile(world: ClusterWorld, point: str) -> None:
    """B came and went: the instance that took over saw no need to assign, yet the old decision must not count."""
    old = await world.started(A, interval_s=0)
    new = world.manager("cm-2", interval_s=0)
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


async def test_a_member_that_joins_meanwhile_does_not_delay_an_assignment(world: ClusterWorld) -> None:
    one = await world.started()
    one.freezer.freeze_at("hosts read")
    world.zookeeper.set_hosts(A)
    await one.freezer.reached.wait()
    beat = Heartbeat(service="api-gateway", instance="gw", endpoints={})
    await world.do(CLUSTER, lambda reader, context: decide_heartbeat(reader, beat, context))
    one.freezer.thaw()
    await settle()
    assert world.agrees()


async def test_two_active_instances_agree(world: ClusterWorld) -> None:
    for name in ("cm-1", "cm-2"):
        world.manager(name, interval_s=1).start(active=True)
    for hosts in ([A], [A, B], [B, C], [C], [A, B, C]):
        world.zookeeper.set_hosts(*hosts)
        await asyncio.sleep(3)
        assert world.agrees()
        assert set(world.published or {}) == set(hosts)
