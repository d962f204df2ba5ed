"""The connections of one client: at most one to each segment store, made when first needed.

Concurrency: callers that need the same missing connection share one attempt, which goes on if some of them give up. A
connection leaves the pool the moment it is lost, worn out or unused for long, so that a store which left is forgotten.
"""

import asyncio
import ssl

from sluice.segmentstore.connection import Connection, ConnectionLimits
from sluice.segmentstore.failure import ConnectionFailure, Failure
from sluice.segmentstore.host import Host


class ConnectionPool:
    """Hands out the one connection to a host."""

    def __init__(self, limits: ConnectionLimits, tls: ssl.SSLContext | None = None) -> None:
        self._limits = limits
        self._tls = tls
        self._open: dict[Host, Connection] = {}
        self._leaving: set[Connection] = set()
        self._attempts: dict[Host, asyncio.Task[Connection]] = {}
        self._closed = False

    @property
    def hosts(self) -> frozenset[Host]:
        """The hosts there is a connection to right now."""
        return frozenset(self._open)

    async def connection(self, host: Host) -> Connection:
        """The connection to a host. Raises ConnectionFailure if it cannot be made, CLOSED if the pool was closed."""
        connection = self._open.get(host)
        if connection is not None:
            return connection
        if self._closed:
            raise ConnectionFailure(Failure.CLOSED)
        attempt = self._attempts.get(host)
        if attempt is None:
            attempt = self._attempts[host] = asyncio.create_task(self._connect(host), name=f"connect to {host}")
            attempt.add_done_callback(_retrieve)
        # Not by awaiting it: that would pass the end of the attempt on as the end of the caller.
        await asyncio.wait((attempt,))
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

    async def _connect(self, host: Host) -> Connection:
        try:
            connection = await Connection.open(host, self._limits, self._forget, self._tls)
            if connection.lost:
                raise ConnectionFailure(Failure.LOST, "right after it was made")
            self._open[host] = connection
            return connection
        finally:
            del self._attempts[host]

    def _forget(self, connection: Connection) -> None:
        if self._open.get(connection.host) is connection:
            del self._open[connection.host]
        if connection.lost:
            self._leaving.discard(connection)
        else:
            self._leaving.add(connection)


def _retrieve(attempt: "asyncio.Task[Connection]") -> None:
    """Takes note of a failure that may have nobody left to hear it."""
    if not attempt.cancelled():
        attempt.exception()
