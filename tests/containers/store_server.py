"""A segment store for services under test: the in-memory twin, reached over a socket by the wire protocol.

Concurrency: the server has a thread with a loop of its own. What tests look at is read from theirs; what they have the
store do goes through `run`.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from support.loops import LoopInThread

from sluice.domain.host import Host
from sluice.pravega.failure import ConnectionFailure
from sluice.pravega.memory import InMemorySegmentStore, MemorySegment
from sluice.pravega.wire.command import Command, Numbered
from sluice.pravega.wire.frame import HEADER, decode, encode, payload_size
from sluice.pravega.wire.hello import Hello, KeepAlive

_CALL_S = 30.0
_VERSIONS = Hello(high_version=17, low_version=5)

T = TypeVar("T")


class SegmentStoreServer:
    """Serves on `address` at a free port while it is a context."""

    def __init__(self, address: str) -> None:
        self.host = Host(address, 0)
        self._address = address
        self._store = InMemorySegmentStore()
        self._loop = LoopInThread("segment store")
        self._served: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def segments(self) -> Mapping[str, MemorySegment]:
        """What is stored, by name."""
        return dict(self._store.segments)

    @property
    def contents(self) -> dict[str, tuple[bool, int, int]]:
        """Of each segment whether it is sealed, its length and its start."""
        return {name: (s.sealed, s.length, s.start_offset) for name, s in self.segments.items()}

    @property
    def store(self) -> InMemorySegmentStore:
        """The store itself; its methods belong into `run`."""
        return self._store

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of a call of `store`."""
        return self._loop.run(call, _CALL_S)

    def __enter__(self) -> Self:
        self._loop.start()
        self.run(self._open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.run(self._close())
        finally:
            self._loop.stop()

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, self._address, 0)
        self.host = Host(self._address, self._server.sockets[0].getsockname()[1])

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for serving in self._served:
            serving.cancel()
        await asyncio.gather(*self._served, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = cast("asyncio.Task[None]", asyncio.current_task())
        self._served.add(serving)
        try:
            while True:
                code, size = payload_size(await reader.readexactly(HEADER.size))
                writer.write(encode(await self._answer(decode(code, await reader.readexactly(size)))))
        except (asyncio.IncompleteReadError, ConnectionError, ConnectionFailure, asyncio.CancelledError):
            return
        finally:
            self._served.discard(serving)
            writer.close()

    async def _answer(self, command: Command) -> Command:
        if isinstance(command, Hello):
            return _VERSIONS
        if isinstance(command, KeepAlive):
            return command
        return await self._store.call(cast(Numbered, command), _CALL_S)
