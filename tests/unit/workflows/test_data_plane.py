"""Readiness of the data plane: every container must have answered."""

import asyncio

from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import InMemorySegmentStore, Moment
from sluice.pravega.routing import container_of
from sluice.workflows.data_plane import ROUND_S, DataPlane


async def test_ready_when_the_last_container_answers() -> None:
    asked: dict[int, int] = {}

    def fault(moment: Moment, _request: str, segment: str) -> None:
        container = container_of(segment, 4)
        if moment == "before":
            asked[container] = asked.get(container, 0) + 1
            if asked[container] <= container:
                raise ConnectionFailure(Failure.CLOSED_BY_PEER)

    data_plane = DataPlane(InMemorySegmentStore(fault), 4)
    problem = data_plane.problem()
    assert problem is not None and "0, 1, 2, 3" in problem
    await data_plane.wait()
    assert data_plane.problem() is None
    assert asked == {0: 2, 1: 3, 2: 4, 3: 5}, "and created"


async def test_containers_are_asked_about_segments_that_are_there() -> None:
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
