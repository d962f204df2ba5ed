"""Readiness of the data plane: every container must have answered."""

import shutil
from types import SimpleNamespace

import pytest
from support.wait import eventually_async

from sluice import runtime
from sluice.domain.cluster.commands import Heartbeat
from sluice.kafka.requests import decode_request
from sluice.kafka.topics import REQUESTS_CLUSTER
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import InMemorySegmentStore, Moment
from sluice.pravega.routing import container_of
from sluice.runtime import Runtime
from sluice.settings import ServiceSettings
from sluice.workflows.data_plane import DataPlane, open_data_plane


async def test_ready_when_the_last_container_answers() -> None:
    calls: dict[int, int] = {}

    def fault(moment: Moment, _request: str, segment: str) -> None:
        container = container_of(segment, 4)
        if moment == "before":
            calls[container] = calls.get(container, 0) + 1
            if calls[container] <= container:
                raise ConnectionFailure(Failure.CLOSED_BY_PEER)

    data_plane = DataPlane(InMemorySegmentStore(fault), 4)
    problem = data_plane.problem()
    assert problem is not None and "0, 1, 2, 3" in problem
    await data_plane.wait()
    assert data_plane.problem() is None
    assert calls == {0: 1, 1: 2, 2: 3, 3: 4}


async def test_heartbeats_say_which_containers_do_not_answer_and_that_the_disk_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = MemoryBroker()
    settings = ServiceSettings(instance="a", container_count=2)
    running = Runtime("txn-manager", settings, MemoryConnections(MemoryGroups(broker)))
    open_data_plane(running, call_timeout_s=1.0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=0))
    async with running.stack:
        running.spawn(runtime._heartbeat(running), "heartbeat")
        sent = await eventually_async(
            lambda: [beat for log in broker.logs(REQUESTS_CLUSTER.name) for beat in log], 10, "a heartbeat is sent"
        )
    beat = decode_request(sent[0].value()).command
    assert isinstance(beat, Heartbeat) and beat.unresponsive == (0, 1)
    assert "containers 0, 1 do not answer" in beat.problems["segment stores"]
    assert "no space left on device: 0 MiB are free" in beat.problems["disk"]
