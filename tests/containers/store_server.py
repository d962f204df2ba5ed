"""A segment store for services under test: the twin in memory behind its server.

Concurrency: the server has a thread with a loop of its own. What tests look at is read from theirs; what they have the
store do goes through `run`.
"""

from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from support.loops import LoopInThread

from sluice.domain.host import Host
from sluice.pravega.memory import InMemorySegmentStore, MemorySegment
from sluice.pravega.memory_server import MemoryStoreServer

_CALL_S = 30.0

T = TypeVar("T")


class SegmentStoreServer:
    """Serves on `address` at a free port while it is a context."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._store = InMemorySegmentStore()
        self._server = MemoryStoreServer(self._store)
        self._loop = LoopInThread("segment store")

    @property
    def host(self) -> Host:
        """Where it serves, once it does."""
        return self._server.host

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
            self.run(self._server.stop())
        finally:
            self._loop.stop()

    async def _open(self) -> None:
        await self._server.start(self._address)
