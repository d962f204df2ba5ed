import msgspec
import pytest
from support.virtual_time import run
from unit.cluster.fakes import ClusterWorld

from cluster_manager.heartbeats import ForeignRequestError, Heartbeats
from cluster_manager.members import LONGEST_STEP_S, MemberWatch
from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.commands import Command
from sluice.domain.scope.commands import CreateScope
from sluice.kafka.requests import Request, encode_request


def beat_seconds(watch: MemberWatch, instance: str, start: int, end: int) -> None:
    for second in range(start, end):
        watch.hear(instance, float(second))


def test_silence_counts_from_the_last_heartbeat() -> None:
    watch = MemberWatch(5.0)
    watch.hear("gw", 0.0)
    beat_seconds(watch, "cm", 1, 6)
    assert watch.silent(["gw", "cm"]) == []
    watch.hear("cm", 6.0)
    assert watch.silent(["gw", "cm"]) == ["gw"]


def test_a_member_never_heard_counts_from_the_first_look() -> None:
    watch = MemberWatch(5.0)
    beat_seconds(watch, "cm", 0, 100)
    assert watch.silent(["gw", "cm"]) == []
    beat_seconds(watch, "cm", 100, 105)
    assert watch.silent(["gw", "cm"]) == []
    watch.hear("cm", 105.0)
    assert watch.silent(["gw", "cm"]) == ["gw"]


def test_no_member_is_silent_for_the_listener_s_own_pause() -> None:
    watch = MemberWatch(5.0)
    watch.hear("gw", 0.0)
    watch.hear("cm", 1.0)
    watch.hear("cm", 1000.0)
    assert watch.silent(["gw", "cm"]) == []
    watch.hear("gw", 1000.1)
    beat_seconds(watch, "cm", 1001, 1006)
    assert watch.silent(["gw", "cm"]) == []


def test_a_pause_counts_no_more_than_one_step() -> None:
    watch = MemberWatch(LONGEST_STEP_S)
    watch.hear("gw", 0.0)
    watch.hear("cm", 1000.0)
    assert watch.silent(["gw"]) == []
    watch.hear("cm", 1000.1)
    assert watch.silent(["gw"]) == ["gw"]


def test_a_restart_forgives_all_members() -> None:
    watch = MemberWatch(5.0)
    watch.hear("gw", 0.0)
    beat_seconds(watch, "cm", 1, 10)
    assert watch.silent(["gw"]) == ["gw"]
    watch.restart()
    watch.hear("cm", 500.0)
    assert watch.silent(["gw"]) == []


def test_those_who_left_are_forgotten() -> None:
    watch = MemberWatch(1.0)
    watch.hear("gw", 0.0)
    beat_seconds(watch, "cm", 1, 5)
    assert watch.silent(["cm"]) == []
    assert watch.silent(["gw", "cm"]) == []


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Service:
    def __init__(self) -> None:
        self.world = ClusterWorld()
        self.clock = Clock()
        self.heartbeats = Heartbeats(self.world.first.journal, 5.0, self.clock)

    async def take(self, command: Command) -> None:
        await self.heartbeats.handle(encode_request(Request(id="r", at=1, by="x/y", command=command)))

    async def beat(self, instance: str, endpoint: str = "", seconds: float = 0.0) -> None:
        self.clock.now += seconds
        await self.take(Heartbeat(service="s", instance=instance, endpoints={"grpc": endpoint}))


def test_heartbeats_become_members_and_silence_ends_them() -> None:
    async def story() -> None:
        service = Service()
        await service.beat("gw")
        await service.beat("cm")
        assert set(service.world.cluster.members) == {"gw", "cm"}
        records = service.world.records
        for _ in range(5):
            await service.beat("gw", seconds=0.5)
            await service.beat("cm", seconds=0.5)
        assert service.world.records == records
        for _ in range(6):
            await service.beat("cm", seconds=1.0)
        assert set(service.world.cluster.members) == {"cm"}
        await service.beat("gw", "10.0.0.9:9090")
        assert service.world.cluster.members["gw"].endpoints == {"grpc": "10.0.0.9:9090"}

    run(story())


def test_a_heartbeat_that_cannot_be_recorded_is_let_go() -> None:
    async def story() -> None:
        service = Service()
        service.world.journal_away(True)
        await service.beat("gw")
        service.world.journal_away(False)
        assert service.world.records == 0
        await service.beat("gw")
        assert set(service.world.cluster.members) == {"gw"}

    run(story())


def test_what_is_no_heartbeat_is_refused() -> None:
    async def story() -> None:
        service = Service()
        with pytest.raises(ForeignRequestError, match="CreateScope"):
            await service.take(CreateScope(scope="sc"))
        with pytest.raises(msgspec.DecodeError):
            await service.heartbeats.handle(b"{no json")
        with pytest.raises(msgspec.ValidationError):
            await service.heartbeats.handle(b'{"id":"1"}')
        assert service.world.records == 0

    run(story())
