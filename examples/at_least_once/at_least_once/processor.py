"""The work of one reader: read, apply, flush, record, in this order and never in another.

A position is recorded only when the results of everything before it are stored, so a worker that dies at any point
loses nothing: the segment's next worker begins at the recorded position and repeats at most what was done since. A
worker that has to stop, or whose function fails, flushes and records what is done, so nothing is repeated then.

Segments take turns, also in the middle of what was read, whenever it is time to look for more segments or fewer; so a
slow function keeps no one from their share. One whose reads take long, for it is moving to another segment store, holds
the others up for a moment only.

Concurrency: one task, and one for each read under way; the function runs in a thread, so that it may take its time
while heartbeats go on.
"""

import asyncio
import logging
import time
from collections.abc import Sequence

from at_least_once.functions import Function, Result
from at_least_once.output import Output
from at_least_once.reader_group import ReaderGroup
from at_least_once.reading import Reads
from at_least_once.settings import AppSettings
from sluice.exceptions import in_words
from sluice_client import Client, Piece, StoredEvent

_PIECE_BYTES = 64 * 1024
_LONGEST_PAUSE_S = 0.25
_log = logging.getLogger(__name__)


class FunctionFailed(Exception):
    """The function raised an exception for an event; everything before it is done and recorded."""


class Processor:
    """Processes what `reader` gets of the group's segments. `done` counts the events that are done and recorded."""

    def __init__(
        self,
        client: Client,
        group: ReaderGroup,
        reader: str,
        function: Function,
        output: Output,
        settings: AppSettings,
    ) -> None:
        self._successors = client.controller.successors
        self._reads = Reads(client.store, _PIECE_BYTES, settings.patience_s)
        self._group = group
        self._reader = reader
        self._function = function
        self._output = output
        self._settings = settings
        self._positions: dict[str, int] = {}
        """For each segment, where the event after the last processed one begins."""
        self._recorded: dict[str, int] = {}
        self._unrecorded_events = 0
        self._record_at = 0.0
        self.done = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Works until it is to stop, or all is read.

        Raises FunctionFailed, NotOnline, NotTheReader, and what lasts too long.
        """
        try:
            await self._work(stop)
        finally:
            await self._reads.close()

    async def _work(self, stop: asyncio.Event) -> None:
        rebalance_at, pause_s = 0.0, self._settings.poll_s
        while not stop.is_set():
            if _now() >= rebalance_at:
                if not await self._rebalance():
                    break
                rebalance_at = _now() + self._settings.rebalance_s
            busy = await self._round(stop, rebalance_at)
            if self._is_due:
                await self._record()
            if busy:
                pause_s = self._settings.poll_s
            else:
                await _pause(stop, pause_s)
                pause_s = max(self._settings.poll_s, min(2 * pause_s, _LONGEST_PAUSE_S))
        await self._record()

    async def _rebalance(self) -> bool:
        """Takes segments or gives one back, where this reader stands, because that was recorded before.

        False if the group has no segment any more, and will have none.
        """
        await self._record()
        state = await self._group.rebalance(self._reader)
        held = state.held_by(self._reader)
        if held.keys() != self._positions.keys():
            _log.info("%s has %s", self._reader, ", ".join(sorted(held)) or "no segment")
        self._positions = {segment: self._positions.get(segment, offset) for segment, offset in held.items()}
        self._recorded = dict(self._positions)
        return bool(state.segments)

    @property
    def _is_due(self) -> bool:
        late = self._unrecorded_events > 0 and _now() >= self._record_at
        return late or self._unrecorded_events >= self._settings.record_events

    async def _round(self, stop: asyncio.Event, until: float) -> bool:
        """Processes the next pieces until it is time for something else; False if there was nothing new.

        However late it is, something is done, if there is anything to do.
        """
        busy = False
        for segment in await self._reads.ready(self._positions):
            piece = self._reads.take(segment)
            busy |= piece.finished or piece.end > self._positions[segment]
            if await self._process(piece, stop, until) and piece.finished:
                await self._complete(segment)
            if stop.is_set() or _now() >= until:
                break
        return busy

    async def _process(self, piece: Piece, stop: asyncio.Event, until: float) -> bool:
        """Processes the events of a piece; False if it was to stop, or it was time to, before the last one."""
        settings, rest = self._settings, piece.events
        while rest:
            if stop.is_set():
                return False
            if self._unrecorded_events == 0:
                self._record_at = _now() + settings.record_s
            part = rest[: settings.record_events - self._unrecorded_events]
            results, error = await asyncio.to_thread(_apply, self._function, part, self._record_at - _now())
            for event, result in zip(part, results, strict=False):
                if result is not None:
                    self._output.add(piece.segment, event.start, result)
            self._unrecorded_events += len(results)
            if error is not None:
                failed_at = self._positions[piece.segment] = part[len(results)].start
                failure = FunctionFailed(f"{piece.segment} at offset {failed_at}: {in_words(error)}")
                # Said before anything else may go wrong.
                _log.error("the function failed: %s", failure, exc_info=error)
                await self._record()
                raise failure from error
            self._positions[piece.segment] = part[len(results) - 1].end
            rest = rest[len(results) :]
            if self._is_due:
                await self._record()
            if rest and _now() >= until:
                return False
        self._positions[piece.segment] = piece.end
        return True

    async def _record(self) -> None:
        """Flushes the output, and only then moves the positions."""
        await self._output.flush()
        moved = {
            segment: offset for segment, offset in self._positions.items() if offset > self._recorded.get(segment, -1)
        }
        if moved:
            await self._group.record(self._reader, moved)
            self._recorded |= moved
        self.done += self._unrecorded_events
        self._unrecorded_events = 0

    async def _complete(self, segment: str) -> None:
        """Hands on to the segments that follow one that was read to its end."""
        await self._record()
        successors = await self._successors(segment)
        await self._group.complete(self._reader, segment, successors)
        _log.info("%s read %s to its end", self._reader, segment)
        del self._positions[segment], self._recorded[segment]


def _apply(
    function: Function, events: Sequence[StoredEvent], seconds: float
) -> tuple[list[Result | None], Exception | None]:
    """The results of the first events, of one at least: until the time is up, or the function fails, and how."""
    results: list[Result | None] = []
    end = time.monotonic() + seconds
    for event in events:
        if results and time.monotonic() >= end:
            break
        try:
            results.append(function(event.data))
        except Exception as error:  # noqa: BLE001 - raised by the caller, once what went before is recorded
            return results, error
    return results, None


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
