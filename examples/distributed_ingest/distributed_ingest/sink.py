"""Where events go: the boundary to the stream, with a twin in memory for tests.

Concurrency: any number of tasks may write at a time. The events of one call are in order; calls are in the order in
which they began.
"""

from collections.abc import Sequence
from typing import Protocol

from distributed_ingest.records import Event


class SinkError(Exception):
    """The stream did not take events; some of them, or all, may be in it."""


class Sink(Protocol):
    """Takes events for one stream."""

    async def write(self, events: Sequence[Event], usable_s: float) -> None:
        """Return when all events are stored for good.

        `usable_s`: how long from now writing may still begin, in seconds: the caller's lock lasts no longer. Raises
        SinkError.
        """

    async def close(self) -> None:
        """Let go of connections and processes."""
