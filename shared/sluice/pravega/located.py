"""The client for callers that know only a controller, which says which segment store has a segment.

The services follow the container map instead (`SegmentStoreClient`), which a user of the cluster cannot read. One
attempt for each call. Concurrency: any number of calls side by side on one event loop; all calls to one segment share
a connection, of which there are `_LANES` to each store.
"""

import ssl
from collections.abc import Awaitable, Callable

from sluice.domain.host import Host
from sluice.pravega.calls import RequestChannel, SegmentCalls
from sluice.pravega.connection import Connection, ConnectionLimits
from sluice.pravega.errors import AccessDenied, TryLater
from sluice.pravega.pool import ConnectionPool
from sluice.pravega.routing import container_of
from sluice.pravega.tokens import FetchedTokens, FetchToken
from sluice.pravega.wire.command import Command, Numbered
from sluice.security.watched import Watched

_MAX_REMEMBERED = 10_000
_LANES = 8
_DEFAULT_LIMITS = ConnectionLimits()


async def _no_token(_segment: str, _is_append: bool) -> str:
    return ""


class LocatedSegmentStores(SegmentCalls):
    """Commands the segment stores of one cluster; has all methods of `SegmentStore`.

    `locate` gives the segment store that has a segment. It raises ConnectionFailure if that is not known at the moment;
    whatever else it raises comes out of the call as it is. Its answers are remembered until a call fails in a way that
    makes another attempt worth it; that attempt locates anew, and with a new token of `fetch_token`. A call ends within
    the time these two take, the connect time-out, if there is no connection yet, and `call_timeout_s`; the few methods
    that exchange two requests take that for each.
    """

    def __init__(
        self,
        locate: Callable[[str], Awaitable[Host]],
        fetch_token: FetchToken = _no_token,
        *,
        call_timeout_s: float = 10.0,
        limits: ConnectionLimits = _DEFAULT_LIMITS,
        tls: Watched[ssl.SSLContext] | None = None,
    ) -> None:
        self._tokens = FetchedTokens(fetch_token)
        super().__init__(call_timeout_s, self._tokens)
        self._locate = locate
        self._pool = ConnectionPool(limits, tls)
        self._hosts: dict[str, Host] = {}

    async def close(self) -> None:
        """Closes all connections; calls under way end with TryLater."""
        await self._pool.close()

    async def _channel(self, segment: str) -> Connection:
        # Out of the memory while the connection is made: it is back only if there is one.
        host = self._hosts.pop(segment, None) or await self._locate(segment)
        # The controller does not say how many containers there are: segments are spread as if it were so many.
        connection = await self._pool.connection(host, container_of(segment, _LANES) % _LANES)
        if len(self._hosts) >= _MAX_REMEMBERED:
            self._hosts.clear()
        self._hosts[segment] = host
        return connection

    async def _exchange(
        self, channel: RequestChannel, request: Numbered, segment: str, timeout_s: float | None = None
    ) -> Command:
        try:
            return await super()._exchange(channel, request, segment, timeout_s)
        except (TryLater, AccessDenied):
            self._tokens.forget(segment)
            self._hosts.pop(segment, None)
            raise
