"""Whether the segment stores take commands yet: every container of the cluster has answered once.

A store registers, and is given containers, before these run; until then the first operations would only be retried. So
the service calls itself ready when a question to each container was answered. Later outages show on the workflows
that meet them.
"""

import asyncio
import itertools

from sluice.segmentstore.errors import SegmentMissing, SegmentStoreError
from sluice.segmentstore.routing import container_of
from sluice.segmentstore.store import SegmentStore

ASK_AGAIN_S = 0.1


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
