"""Where events go: the boundary to the stream, with a twin in memory for tests.

Concurrency: any number of tasks may write at a time. The events of one call are in order; between calls that overlap
there is none.
"""

from collections.abc import Sequence
from typing import Protocol

from distributed_ingest.records import Event


class SinkError(Exception):
    """The stream did not take events; some of them, or all, may be in it."""


class StreamEndedError(Exception):
    """The stream is sealed or gone: nothing will ever be written to it again."""


class Sink(Protocol):
    """Takes events for one stream."""

    async def write(self, events: Sequence[Event]) -> None:
        """Return when all events are stored for good; when cancelled begin no further attempt.

        Raises SinkError, StreamEndedError.
        """
