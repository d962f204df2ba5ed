"""The segment stores as a service reaches them: routed by the journal, and whether they take commands yet.

A store registers, and is given containers, before these run; until then the first operations would only be retried. So
the service calls itself ready when a question to each container of the cluster was answered. Later outages show on the
workflows that meet them.
"""

import asyncio
import itertools

from sluice.domain.cluster import CLUSTER, cluster_of
from sluice.runtime import Runtime
from sluice.segmentstore.client import SegmentStoreClient
from sluice.segmentstore.errors import SegmentMissing, SegmentStoreError
from sluice.segmentstore.host import Host
from sluice.segmentstore.routing import container_of
from sluice.segmentstore.store import SegmentStore

ASK_AGAIN_S = 0.1


def open_data_plane(runtime: Runtime, call_timeout_s: float) -> SegmentStore:
    """The segment stores where the journal says they are; the service is ready only once all containers have answered.

    Closed with the service.
    """
    journal, container_count = runtime.journal, runtime.settings.container_count

    def route(container: int) -> Host | None:
        host = cluster_of(journal.reader(CLUSTER)).containers.get(container)
        return Host(host.address, host.port) if host is not None else None

    store = SegmentStoreClient(route, container_count, call_timeout_s=call_timeout_s)
    runtime.stack.push_async_callback(store.close)
    data_plane = DataPlane(store, container_count)
    runtime.checks["segment stores"] = data_plane.problem
    runtime.spawn(data_plane.wait(), "data plane probe")
    return store


class DataPlane:
    """Asks each container for a segment that nobody has, until all have said so."""

    def __init__(self, store: SegmentStore, container_count: int) -> None:
        self._store = store
        self._silent = {container: _name_in(container, container_count) for container in range(container_count)}
        self._why = "not asked yet"

    def problem(self) -> str | None:
        """Which containers have yet to answer, and what the last one asked answered instead."""
        if not self._silent:
            return None
        return f"containers {', '.join(map(str, sorted(self._silent)))} do not answer: {self._why}"

    async def wait(self) -> None:
        """Return when every container has answered."""
        while self._silent:
            await asyncio.gather(*(self._ask(container, name) for container, name in list(self._silent.items())))
            if self._silent:
                await asyncio.sleep(ASK_AGAIN_S)

    async def _ask(self, container: int, name: str) -> None:
        try:
            await self._store.segment_info(name)
        except SegmentMissing:
            del self._silent[container]
        except SegmentStoreError as error:
            self._why = str(error)


def _name_in(container: int, count: int) -> str:
    """A segment name that belongs to the container and that no stream can have."""
    names = (f"_system/_probe_{n}/0.#epoch.0" for n in itertools.count())
    return next(name for name in names if container_of(name, count) == container)
