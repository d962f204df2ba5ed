"""Where events go: the boundary to the stream, with a twin in memory for tests.

Concurrency: any number of tasks may write at a time. The events of one call are in order; between calls that overlap
there is none.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from distributed_ingest.records import Event


class SinkError(Exception):
    """The stream did not take events; some of them, or all, may be in it."""


class StreamEndedError(Exception):
    """The stream is sealed or gone: nothing will ever be written to it again."""


class Transaction(Protocol):
    """Events that appear in the stream together, or not at all. Belongs to one task."""

    @property
    def id(self) -> str:
        """What it is known by elsewhere."""

    async def write(self, events: Sequence[Event]) -> None:
        """Return when all events are stored with it. Raises SinkError."""

    async def commit(self) -> None:
        """Return when it is certain that its events become part of the stream.

        Raises SinkError: it is not open any more, or there was no answer; `Sink.is_committed` says which.
        """


class Sink(Protocol):
    """Takes events for one stream."""

    async def write(self, events: Sequence[Event]) -> None:
        """Return when all events are stored for good; when cancelled begin no further attempt.

        Raises SinkError, StreamEndedError.
        """

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Begin a transaction, which is aborted if the block ends without a commit, and when this process is gone.

        Raises SinkError, StreamEndedError.
        """

    async def is_committed(self, id: str) -> bool:
        """Whether a transaction is, or is certain to be; one that is still open is aborted first. Raises SinkError."""
