"""The client the services command segment stores with.

The container of a segment follows from its name, its host from the map that the service holds at the moment of the call
(segment-store-cluster A7). One attempt for each call: retrying belongs to the owner of the operation. Concurrency: any
number of calls side by side on one event loop; all calls to one container share a connection.
"""

import ssl
from collections.abc import Callable

from sluice.domain.host import Host
from sluice.pravega.calls import SegmentCalls
from sluice.pravega.connection import Connection, ConnectionLimits
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.pool import ConnectionPool
from sluice.pravega.routing import container_of
from sluice.pravega.tokens import NO_TOKENS, Tokens
from sluice.security.watched import Watched

_DEFAULT_LIMITS = ConnectionLimits()


class SegmentStoreClient(SegmentCalls):
    """Commands the segment stores of one cluster; has all methods of `SegmentStore`.

    `route` gives the host of a container, None if it has none. With `tls` new connections take its current context.
    A call ends within the connect time-out, if there is no connection yet, plus `call_timeout_s`; the few methods that
    exchange two requests take that for each.
    """

    def __init__(
        self,
        route: Callable[[int], Host | None],
        container_count: int,
        *,
        call_timeout_s: float = 30.0,
        limits: ConnectionLimits = _DEFAULT_LIMITS,
        tokens: Tokens = NO_TOKENS,
        tls: Watched[ssl.SSLContext] | None = None,
    ) -> None:
        super().__init__(call_timeout_s, tokens)
        self._route = route
        self._container_count = container_count
        self._pool = ConnectionPool(limits, tls)

    async def close(self) -> None:
        """Closes all connections; calls under way end with TryLater."""
        await self._pool.close()

    async def _channel(self, segment: str) -> Connection:
        container = container_of(segment, self._container_count)
        host = self._route(container)
        if host is None:
            raise ConnectionFailure(Failure.NO_ROUTE, f"container {container}")
        return await self._pool.connection(host, container)
