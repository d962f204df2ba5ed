"""Writes events into segments for callers on many threads, with as little of the processor as possible.

One event loop on a thread of its own has the connections to the segment stores. Every append is one of a new writer,
as a client's first event in a transaction is: a set-up, then the event, acknowledged when it is durable.
"""

import asyncio
import threading
import uuid
from collections.abc import Callable, Sequence

import uvloop

from bench import secured
from sluice.domain.host import Host
from sluice.domain.segment import TRANSACTION_INFIX
from sluice.engine.step import all_done
from sluice.pravega.located import LocatedSegmentStores
from sluice.settings import ServiceSettings

EVENT = b"e" * 100
_LIMIT_S = 60.0


class EventWriter:
    """`host_of` says which segment store has a segment of a stream; it blocks, and is called once for each of those."""

    def __init__(self, host_of: Callable[[str], Host]) -> None:
        self._host_of = host_of
        self._hosts: dict[str, Host] = {}
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="event-writer", daemon=True)
        self._thread.start()
        self._tokens = secured.tokens()
        self._stores = LocatedSegmentStores(self._locate, self._token, tls=ServiceSettings().store_client_tls())

    def write(self, segments: Sequence[str]) -> None:
        """Append one event of 100 bytes to each of these segments of transactions, all at once. Blocking."""
        if not segments:
            return
        for parent in {_parent(name) for name in segments} - self._hosts.keys():
            self._hosts[parent] = self._host_of(parent)
        asyncio.run_coroutine_threadsafe(self._append(segments), self._loop).result(_LIMIT_S)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stores.close(), self._loop).result(_LIMIT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LIMIT_S)
        self._loop.close()

    async def _append(self, segments: Sequence[str]) -> None:
        await all_done(self._stores.append(name, uuid.uuid4(), EVENT) for name in segments)

    async def _locate(self, segment: str) -> Host:
        return self._hosts[_parent(segment)]

    async def _token(self, segment: str, _is_append: bool) -> str:
        return await self._tokens.for_request(segment)


def _parent(segment: str) -> str:
    return segment.partition(TRANSACTION_INFIX)[0]
