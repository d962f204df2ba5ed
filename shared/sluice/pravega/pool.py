"""The connections of one client: at most one to each lane of a segment store, made when first needed.

A store closes the connection when a container is not running yet, and when it has no reply for an error
(segment-store-wire-protocol 4.1): all calls on the connection end with that. So containers have lanes of their own, and
a call fails for its own container only.

Concurrency: callers that need the same missing connection share one attempt, which goes on if some of them leave;
`max_waiting` of them at most wait for it. A connection leaves the pool the moment it is lost, worn out or unused for
long, so that a store which left is forgotten.
"""

import asyncio
import ssl
from collections import Counter
from functools import partial

from sluice.domain.host import Host
from sluice.pravega.connection import Connection, ConnectionLimits
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.security.watched import Watched

Lane = tuple[Host, int]


class ConnectionPool:
    """Hands out the one connection to a lane of a host."""

    def __init__(self, limits: ConnectionLimits, tls: Watched[ssl.SSLContext] | None = None) -> None:
        self._limits = limits
        self._tls = tls
        self._open: dict[Lane, Connection] = {}
        self._leaving: set[Connection] = set()
        self._attempts: dict[Lane, asyncio.Task[Connection]] = {}
        self._waiting: Counter[Lane] = Counter()
        self._closed = False

    async def connection(self, host: Host, number: int) -> Connection:
        """The connection to the host's lane of this number.

        Raises ConnectionFailure: what keeps it from being made, CLOSED if the pool was closed, OVERLOADED.
        """
        lane = (host, number)
        connection = self._open.get(lane)
        if connection is not None:
            return connection
        if self._closed:
            raise ConnectionFailure(Failure.CLOSED)
        if self._waiting[lane] >= self._limits.max_waiting:
            raise ConnectionFailure(Failure.OVERLOADED, f"{self._waiting[lane]} calls wait for a connection already")
        attempt = self._attempts.get(lane)
        if attempt is None:
            attempt = self._attempts[lane] = asyncio.create_task(self._connect(lane), name=f"connect to {host}")
            attempt.add_done_callback(_retrieve)
        self._waiting[lane] += 1
        try:
            # Not by awaiting it: that would pass the end of the attempt on as the end of the caller.
            await asyncio.wait((attempt,))
        finally:
            self._leave(lane)
        if attempt.cancelled():
            raise ConnectionFailure(Failure.CLOSED)
        return attempt.result()

    async def close(self) -> None:
        """Ends all connections and attempts; calls under way, and who waits for a connection, end with CLOSED."""
        self._closed = True
        attempts = list(self._attempts.values())
        for attempt in attempts:
            attempt.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)
        await asyncio.gather(*(connection.close() for connection in [*self._open.values(), *self._leaving]))

    def _leave(self, lane: Lane) -> None:
        self._waiting[lane] -= 1
        if not self._waiting[lane]:
            del self._waiting[lane]

    async def _connect(self, lane: Lane) -> Connection:
        try:
            tls = self._tls.current if self._tls is not None else None
            connection = await Connection.open(lane[0], self._limits, partial(self._forget, lane), tls)
            if connection.lost:
                raise ConnectionFailure(Failure.LOST, "right after it was made")
            self._open[lane] = connection
            return connection
        finally:
            del self._attempts[lane]

    def _forget(self, lane: Lane, connection: Connection) -> None:
        if self._open.get(lane) is connection:
            del self._open[lane]
        if connection.lost:
            self._leaving.discard(connection)
        else:
            self._leaving.add(connection)


def _retrieve(attempt: "asyncio.Task[Connection]") -> None:
    """Retrieves a failure that no caller may be left to receive."""
    if not attempt.cancelled():
        attempt.exception()
