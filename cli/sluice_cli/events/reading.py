"""Reading the events of a stream over all scalings: a segment's successors follow when all that they replace are read.

Without a reader group: nothing is kept of where the reading ended. The events of one routing key come in their order;
segments take turns. Not followed, it ends at the lengths that the segments have when it comes to them.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import NamedTuple

from sluice_client import Client, SegmentMissing, Start, StoredEvent, patiently, read_piece

PIECE_BYTES = 1024 * 1024
PATIENCE_S = 30.0
POLL_S = 0.25


class ReadEvent(NamedTuple):
    """An event, and the qualified name of its segment."""

    segment: str
    event: StoredEvent


async def tail(client: Client, scope: str, stream: str) -> Start:
    """Where the stream ends now; nothing to read of one that is sealed. Raises ClientError, SegmentStoreError."""
    segments = await client.controller.segments(scope, stream)
    return Start({segment: await _length(client, segment) for segment in segments}, {})


class Reading:
    """One reading of a stream; `wanted` says which segments are read. One task."""

    def __init__(self, client: Client, start: Start, wanted: Callable[[str], bool], *, follow: bool) -> None:
        self._client = client
        self._wanted = wanted
        self._follow = follow
        self._positions = {segment: offset for segment, offset in start.segments.items() if wanted(segment)}
        self._waiting = {segment: _only(before, wanted) for segment, before in start.waiting.items()}
        self._ends: dict[str, int] = {}

    async def events(self) -> AsyncGenerator[ReadEvent, None]:
        """The events; followed, for ever, or until a sealed stream is read. Raises ClientError, SegmentStoreError."""
        while self._positions:
            before = dict(self._positions)
            for segment in before:
                for event in await self._piece(segment):
                    yield ReadEvent(segment, event)
            if self._positions == before:
                # Nothing has come yet, or a container that is about to move answers with nothing.
                await asyncio.sleep(POLL_S)

    async def _piece(self, segment: str) -> list[StoredEvent]:
        """The next events of a segment, which is left when they are its last ones."""
        offset, end = self._positions[segment], None
        if not self._follow:
            end = self._ends.get(segment)
            if end is None:
                end = self._ends[segment] = await _length(self._client, segment)
        piece = await read_piece(self._client.store, segment, offset, PIECE_BYTES, PATIENCE_S)
        self._positions[segment] = piece.end
        if piece.finished:
            del self._positions[segment]
            await self._complete(segment)
        elif end is not None and piece.end >= end:
            del self._positions[segment]
        return [event for event in piece.events if end is None or event.start < end]

    async def _complete(self, segment: str) -> None:
        """A segment was read to its end: what follows it is read when nothing else keeps it."""
        for successor, before in (await self._client.controller.successors(segment)).items():
            if self._wanted(successor):
                left = self._waiting.get(successor, _only(before, self._wanted)) - {segment}
                self._waiting[successor] = left
                if not left:
                    self._positions.setdefault(successor, 0)


def _only(segments: Iterable[str], wanted: Callable[[str], bool]) -> frozenset[str]:
    return frozenset(segment for segment in segments if wanted(segment))


async def _length(client: Client, segment: str) -> int:
    """A segment's length, 0 if it is gone."""
    try:
        return (await patiently(lambda: client.store.segment_info(segment), PATIENCE_S)).length
    except SegmentMissing:
        return 0
