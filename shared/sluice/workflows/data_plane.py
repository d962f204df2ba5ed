"""The segment stores as a service reaches them: routed by the journal, and whether they take commands.

A store registers, and is given containers, before these run; until then the first operations would only be retried. So
the service calls itself ready when a question to each container of the cluster was answered. From then on it stays so:
the owner of a workflow can still record it, and goes on when the store is back. What does not answer is said in the
heartbeats: from these the journal has it, and every process what it shows (`outages.py`).
"""

import asyncio
import itertools
from collections.abc import Callable
from functools import partial

from sluice.domain.cluster.state import CLUSTER, cluster_of
from sluice.domain.config import ScaleType
from sluice.domain.host import Host
from sluice.pravega.client import SegmentStoreClient
from sluice.pravega.errors import ConnectionClosed, SegmentMissing, SegmentStoreError
from sluice.pravega.routing import probe_name
from sluice.pravega.store import SegmentStore
from sluice.pravega.tokens import OwnTokens
from sluice.runtime import Runtime

RETRY_S = 0.1
ROUND_S = 10.0
"""How long it takes to probe each container once, while all answer."""
SILENT_AT_ONCE = 8


def open_data_plane(runtime: Runtime, call_timeout_s: float) -> SegmentStore:
    """`connect`, for a service that cannot do without: it is ready only once all containers have answered."""
    store = connect(runtime, call_timeout_s)
    hosts = partial(_host_of, runtime)
    data_plane = DataPlane(store, runtime.settings.container_count, hosts)
    runtime.checks["segment stores"] = data_plane.never_answered
    runtime.degraded["segment stores"] = data_plane.problem
    runtime.unresponsive_containers = lambda: data_plane.silent
    runtime.spawn(data_plane.watch(), "data plane probe")
    return store


def connect(runtime: Runtime, call_timeout_s: float) -> SegmentStore:
    """The segment stores where the journal says they are. Closed with the service."""

    tls = runtime.settings.store_client_tls()
    runtime.watch(tls)
    count, tokens = runtime.settings.container_count, OwnTokens(runtime.tokens)
    store = SegmentStoreClient(partial(_host_of, runtime), count, call_timeout_s=call_timeout_s, tokens=tokens, tls=tls)
    runtime.stack.push_async_callback(store.close)
    return store


def _host_of(runtime: Runtime, container: int) -> Host | None:
    return cluster_of(runtime.journal.reader(CLUSTER)).containers.get(container)


class DataPlane:
    """Probes each container with a question about an empty segment, which the first probe of all creates.

    A question about a segment that does not exist would be a warning in the store's log, several times a minute.
    `silent` are the containers without an answer last time, and why. `host_of` says which segment store runs one.
    """

    def __init__(
        self,
        store: SegmentStore,
        container_count: int,
        host_of: Callable[[int], Host | None] = lambda _container: None,
    ) -> None:
        self._store = store
        self._names = {container: probe_name(container, container_count) for container in range(container_count)}
        self._host_of = host_of
        self._unanswered = set(self._names)
        self._under_way: set[int] = set()
        self._suspects: set[int] = set()
        self.silent: dict[int, str] = {}

    def problem(self) -> str | None:
        """Which containers do not answer, and what one of them answered instead."""
        if not self.silent:
            return None
        why = next(reversed(self.silent.values()))
        return f"containers {', '.join(map(str, sorted(self.silent)))} do not answer: {why}"

    def never_answered(self) -> str | None:
        """Which containers have not answered for once since this process was started."""
        if not self._unanswered:
            return None
        return self.problem() or f"containers {', '.join(map(str, sorted(self._unanswered)))} were not probed yet"

    async def wait(self) -> None:
        """Return when every container has answered."""
        while self._unanswered:
            await asyncio.gather(*(self._probe(container) for container in list(self._unanswered)))
            if self._unanswered:
                await asyncio.sleep(RETRY_S)

    async def watch(self) -> None:
        """Wait, then go on probing for ever: one container after the other, those that are silent each time.

        When one falls silent, those of the same segment store are next. No probe waits for that of another container,
        so a store that hangs hides no other.
        """
        await self.wait()
        async with asyncio.TaskGroup() as probes:
            for container in itertools.cycle(self._names):
                await asyncio.sleep(RETRY_S if self._suspects else ROUND_S / len(self._names))
                wanted = (number for number in (*self._suspects, *self.silent) if number not in self._under_way)
                room = max(0, SILENT_AT_ONCE - len(self._under_way))
                for due in {container, *itertools.islice(wanted, room)} - self._under_way:
                    self._suspects.discard(due)
                    self._under_way.add(due)
                    probes.create_task(self._probe(due))

    async def _probe(self, container: int) -> None:
        try:
            await self._query(self._names[container])
        except SegmentStoreError as error:
            if container not in self.silent:
                host = self._host_of(container)
                self._suspects |= {other for other in self._names if host and self._host_of(other) == host}
                self._suspects -= self.silent.keys() | {container}
            self.silent[container] = str(error)
        else:
            self._unanswered.discard(container)
            self.silent.pop(container, None)
        finally:
            self._under_way.discard(container)

    async def _query(self, segment: str) -> None:
        """Raises SegmentStoreError.

        A store closes a connection because of any of its calls (segment-store-wire-protocol 4.1), and the steps that
        another instance left are asked for anew: only a second time it is about the container.
        """
        try:
            await self._ask(segment)
        except ConnectionClosed:
            await self._ask(segment)

    async def _ask(self, segment: str) -> None:
        try:
            await self._store.segment_info(segment)
        except SegmentMissing:
            await self._store.create_segment(segment, ScaleType.FIXED.code, 0)
