"""Readiness of the data plane: every container must have answered."""

from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import InMemorySegmentStore, Moment
from sluice.pravega.routing import container_of
from sluice.workflows.data_plane import DataPlane


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
