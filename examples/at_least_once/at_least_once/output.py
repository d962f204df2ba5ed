"""Where the results of a worker go."""

from typing import Protocol

from at_least_once.functions import Result
from at_least_once.settings import AppSettings
from at_least_once.streams import ensure_stream
from sluice_client import Client, EventWriter


class Output(Protocol):
    """Takes results; those that were flushed survive everything. One task at a time."""

    def add(self, segment: str, offset: int, result: Result) -> None:
        """Takes the result of the event at an offset of a segment."""

    async def flush(self) -> None:
        """Stores what was added."""

    def discard(self) -> None:
        """Forgets what was added and not flushed."""


class StreamOutput:
    """Writes to a stream: at least once. See Output."""

    def __init__(self, client: Client, settings: AppSettings) -> None:
        self._client = client
        self._settings = settings
        self._writer = self._new_writer()

    @classmethod
    async def open(cls, client: Client, settings: AppSettings) -> "StreamOutput":
        """The output of these settings; makes the stream if it is not there."""
        await ensure_stream(client, settings.scope, settings.output, settings.scaling)
        return cls(client, settings)

    def add(self, _segment: str, _offset: int, result: Result) -> None:
        self._writer.add(result.key, result.data)

    async def flush(self) -> None:
        await self._writer.flush()

    def discard(self) -> None:
        self._writer = self._new_writer()

    def _new_writer(self) -> EventWriter:
        return self._client.event_writer(self._settings.scope, self._settings.output)
