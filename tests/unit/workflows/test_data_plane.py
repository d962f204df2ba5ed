"""Readiness of the data plane: every container must have answered."""

import asyncio
import shutil
from collections.abc import Awaitable
from functools import partial
from types import SimpleNamespace

import pytest
from support.wait import eventually_async

from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.host import Host
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import REQUESTS_CLUSTER
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import InMemorySegmentStore, Moment
from sluice.pravega.routing import container_of
from sluice.runtime import Runtime
from sluice.settings import ServiceSettings
from sluice.workflows.data_plane import ROUND_S, DataPlane, open_data_plane


async def test_ready_when_the_last_container_answers() -> None:
    calls: dict[int, int] = {}

    def fault(moment: Moment, _request: str, segment: str) -> None:
        container = container_of(segment, 4)
        if moment == "before":
            calls[container] = calls.get(container, 0) + 1
            if calls[container] <= container:
                raise ConnectionFailure(Failure.CLOSED_BY_PEER)

    data_plane = DataPlane(InMemorySegmentStore(fault), 4)
    problem = data_plane.never_answered()
    assert problem is not None and "0, 1, 2, 3" in problem
    assert not data_plane.silent, "none was asked"
    await data_plane.wait()
    assert data_plane.never_answered() is None and data_plane.problem() is None
    assert calls == {0: 2, 1: 3, 2: 4, 3: 5}, "and created"


async def test_a_store_with_another_signing_key_is_a_problem_in_words() -> None:
    store = InMemorySegmentStore()
    data_plane = DataPlane(store, 4)
    watching = asyncio.create_task(data_plane.watch())
    await eventually_async(lambda: data_plane.never_answered() is None, 10, "all have answered")
    store.token_refusal = 0
    await asyncio.sleep(2 * ROUND_S)
    problem = data_plane.problem()
    assert problem is not None and "refuses our delegation token: is the signing key the same?" in problem
    assert data_plane.never_answered() is None, "it stays ready, but degraded"
    watching.cancel()


async def test_heartbeats_say_which_containers_do_not_answer_and_that_the_disk_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = MemoryBroker()
    settings = ServiceSettings(instance="a", container_count=2)
    running = Runtime("txn-manager", settings, MemoryConnections(MemoryGroups(broker)))
    open_data_plane(running, call_timeout_s=1.0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=0))
    async with running.stack:
        running.spawn(running.heartbeats.run(), "heartbeat")
        (beat,) = await eventually_async(partial(unresponsive, broker), 10, "a heartbeat says so")
    assert beat.unresponsive == (0, 1)
    assert "containers 0, 1 do not answer" in beat.problems["segment stores"]
    assert "no space left on device: 0 MiB are free" in beat.problems["disk"]


def unresponsive(broker: MemoryBroker) -> list[Heartbeat]:
    """The heartbeats that miss containers."""
    said = [decode_request(beat.value()).command for log in broker.logs(REQUESTS_CLUSTER.name) for beat in log]
    return [beat for beat in said if isinstance(beat, Heartbeat) and beat.unresponsive]


async def test_containers_are_probed_with_segments_that_are_there() -> None:
    missing: list[str] = []

    def fault(moment: Moment, request: str, segment: str) -> None:
        if moment == "before" and request != "CreateSegment" and segment not in store.segments:
            missing.append(segment)

    store = InMemorySegmentStore(fault)
    for _ in range(2):
        watching = asyncio.create_task(DataPlane(store, 4).watch())
        await asyncio.sleep(3 * ROUND_S)
        watching.cancel()
    assert sorted(missing) == sorted(store.segments) and len(missing) == 4, "only until the first probe has created it"


async def test_when_a_store_goes_all_its_containers_are_known_to_be_silent_soon() -> None:
    """Not one in each turn: of many containers the last one would be known only at the end of a round."""
    here, there, count = Host("here", 1), Host("there", 2), 100
    gone: list[Host] = []

    def host_of(container: int) -> Host:
        return there if container % 2 else here

    def fault(moment: Moment, _request: str, segment: str) -> None:
        if moment == "before" and host_of(container_of(segment, count)) in gone:
            raise ConnectionFailure(Failure.CLOSED_BY_PEER)

    data_plane = DataPlane(InMemorySegmentStore(fault), count, host_of)
    watching = asyncio.create_task(data_plane.watch())
    await eventually_async(lambda: data_plane.never_answered() is None, 10, "all have answered")
    gone.append(there)
    await asyncio.sleep(ROUND_S / 5)
    assert set(data_plane.silent) == set(range(1, count, 2))
    gone.clear()
    await asyncio.sleep(ROUND_S)
    assert not data_plane.silent
    watching.cancel()


async def test_a_container_whose_connection_another_call_lost_is_not_silent() -> None:
    lost: list[str] = []
    falls_silent: list[int] = []

    def fault(moment: Moment, _request: str, segment: str) -> None:
        falls_silent.extend(data_plane.silent)
        if moment == "before" and segment not in lost:
            lost.append(segment)
            raise ConnectionFailure(Failure.CLOSED_BY_PEER)

    data_plane = DataPlane(InMemorySegmentStore(fault), 4)
    watching = asyncio.create_task(data_plane.watch())
    await eventually_async(lambda: data_plane.never_answered() is None, 10, "all have answered")
    lost.clear()
    await asyncio.sleep(2 * ROUND_S)
    assert len(lost) == 4 and not falls_silent, "each was asked again at once"
    watching.cancel()


async def test_a_container_that_hangs_hides_no_other_one() -> None:
    failing: set[int] = set()

    def fault(moment: Moment, _request: str, segment: str) -> Awaitable[None] | None:
        container = container_of(segment, 4)
        if moment == "before" and container in failing:
            if container == 0:
                return asyncio.sleep(3600)
            raise ConnectionFailure(Failure.CLOSED_BY_PEER)
        return None

    data_plane = DataPlane(InMemorySegmentStore(fault), 4)
    watching = asyncio.create_task(data_plane.watch())
    await eventually_async(lambda: data_plane.never_answered() is None, 10, "all have answered")
    failing.update((0, 1))
    await asyncio.sleep(2 * ROUND_S)
    assert set(data_plane.silent) == {1}, "0 has not timed out yet"
    failing.remove(1)
    await asyncio.sleep(2 * ROUND_S)
    assert set(data_plane.silent) == {0}
    watching.cancel()
