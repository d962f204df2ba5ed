"""Members of the cluster: who has fallen silent, and what heartbeats make of that."""

import pytest
from unit.cluster.fakes import ClusterWorld

from cluster_manager.members import LONGEST_STEP, Members, MemberWatch
from sluice.domain.cluster.commands import Heartbeat


def beat_seconds(watch: MemberWatch, instance: str, start: int, end: int) -> None:
    for second in range(start, end):
        watch.observe(instance, float(second))


def test_a_member_without_heartbeat_counts_from_the_first_check() -> None:
    watch = MemberWatch(5.0)
    beat_seconds(watch, "cm", 0, 100)
    assert watch.silent(["gw", "cm"]) == []
    beat_seconds(watch, "cm", 100, 105)
    assert watch.silent(["gw", "cm"]) == []
    watch.observe("cm", 105.0)
    assert watch.silent(["gw", "cm"]) == ["gw"]


def test_a_pause_of_this_process_makes_no_member_silent() -> None:
    watch = MemberWatch(5.0)
    watch.observe("gw", 0.0)
    watch.observe("cm", 1.0)
    watch.observe("cm", 1000.0)
    assert watch.silent(["gw", "cm"]) == []
    watch.observe("gw", 1000.1)
    beat_seconds(watch, "cm", 1001, 1005)
    assert watch.silent(["gw", "cm"]) == []


def test_a_pause_counts_no_more_than_one_step() -> None:
    watch = MemberWatch(5.0)
    watch.observe("gw", 0.0)
    watch.observe("cm", 1000.0)
    watch.observe("cm", 1000.0 + 5.0 * (1 - LONGEST_STEP))
    assert watch.silent(["gw"]) == []
    watch.observe("cm", 1000.1 + 5.0 * (1 - LONGEST_STEP))
    assert watch.silent(["gw"]) == ["gw"]


def test_a_restart_forgives_all_members() -> None:
    watch = MemberWatch(5.0)
    watch.observe("gw", 0.0)
    beat_seconds(watch, "cm", 1, 10)
    assert watch.silent(["gw"]) == ["gw"]
    watch.restart()
    watch.observe("cm", 500.0)
    assert watch.silent(["gw"]) == []


def test_those_who_left_are_forgotten() -> None:
    watch = MemberWatch(1.0)
    watch.observe("gw", 0.0)
    beat_seconds(watch, "cm", 1, 5)
    assert watch.silent(["cm"]) == []
    assert watch.silent(["gw", "cm"]) == []


class Service:
    """Heartbeats that arrive when the test says."""

    def __init__(self, world: ClusterWorld) -> None:
        self.world = world
        self.now_s = 0.0
        self.heartbeats = Members(world.first.journal, 5.0, lambda: self.now_s)

    @property
    def members(self) -> set[str]:
        return set(self.world.cluster.members)

    async def beat(self, instance: str, endpoint: str = "", seconds: float = 0.0) -> None:
        self.now_s += seconds
        await self.heartbeats.handle(Heartbeat(service="s", instance=instance, endpoints={"grpc": endpoint}))


@pytest.fixture
def service(world: ClusterWorld) -> Service:
    return Service(world)


async def test_heartbeats_become_members_and_missing_ones_end_them(service: Service) -> None:
    await service.beat("gw")
    await service.beat("cm")
    assert service.members == {"gw", "cm"}
    records = service.world.records
    for _ in range(5):
        await service.beat("gw", seconds=0.5)
        await service.beat("cm", seconds=0.5)
    assert service.world.records == records
    for _ in range(6):
        await service.beat("cm", seconds=1.0)
    assert service.members == {"cm"}
    await service.beat("gw", "10.0.0.9:9090")
    assert service.world.cluster.members["gw"].endpoints == {"grpc": "10.0.0.9:9090"}


async def test_a_heartbeat_that_cannot_be_recorded_is_dropped(service: Service) -> None:
    service.world.journal_away(True)
    await service.beat("gw")
    service.world.journal_away(False)
    assert service.world.records == 0
    await service.beat("gw")
    assert service.members == {"gw"}
