"""The work of one reader: read, apply, store, and only then read on.

The reader is asked for more only when the results of all that it returned are stored. So nothing is left to do when it
returns a checkpoint: its next call says that all before is done. A worker that dies at any point loses nothing: who has
its segments next begins at the reader's last checkpoint, and repeats at most what was done since. One that has to stop,
or whose function fails, leaves its group behind what is done, and nothing is repeated.

Concurrency: one task; the function runs in a thread, so that it may take its time while heartbeats go on.
"""

import asyncio
import logging
from collections.abc import Sequence

from at_least_once.functions import Function, Result
from at_least_once.output import Output
from sluice.exceptions import in_words
from sluice_client import Event, EventReader, Position

_WAIT_S = 0.25
"""How long a worker waits for events before it looks whether it is to stop."""
_BATCH_S = 0.25
"""For how long a worker processes before it asks its reader, which has checkpoints to make, once more."""
_LARGEST_BATCH = 500
_log = logging.getLogger(__name__)


class FunctionFailed(Exception):
    """The function raised an exception for an event; the results of everything before it are stored."""


class Processor:
    """Processes what a reader returns. `done` counts the events whose results are stored."""

    def __init__(self, reader: EventReader, function: Function, output: Output) -> None:
        self._reader = reader
        self._function = function
        self._output = output
        self._batch: list[Event] = []
        """What the reader returned, and is not done."""
        self._size = 1
        self.done = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Works until it is to stop, or all is read.

        Raises FunctionFailed, ReaderOffline, and what lasts too long.
        """
        while not stop.is_set():
            item = await self._reader.next(_WAIT_S)
            if item is None and self._reader.at_end_of_data:
                return
            while isinstance(item, Event):
                self._batch.append(item)
                item = await self._reader.next(0) if len(self._batch) < self._size else None
            if self._batch:
                await self._process(stop)

    async def leave(self) -> None:
        """Takes the reader out of its group; others go on behind what is done."""
        returned = self._reader.position
        undone = {event.segment: event.start for event in reversed(self._batch)}
        await self._reader.close_at(Position(returned.offsets | undone, returned.ranges))

    async def _process(self, stop: asyncio.Event) -> None:
        """Processes the batch, and stores the results; when it is to stop, a part of it."""
        now = asyncio.get_running_loop().time
        began = now()
        results, error = await asyncio.to_thread(_apply, self._function, self._batch, stop)
        for event, result in zip(self._batch, results, strict=False):
            if result is not None:
                self._output.add(event.segment, event.start, result)
        # The next batch is as large as may be done in time.
        self._size = max(1, min(2 * len(results), int(len(results) * _BATCH_S / (now() - began)), _LARGEST_BATCH))
        if error is not None:
            # Said before anything else may go wrong.
            failed = self._batch[len(results)]
            failure = FunctionFailed(f"{failed.segment} at offset {failed.start}: {in_words(error)}")
            _log.error("the function failed: %s", failure, exc_info=error)
        await self._output.flush()
        del self._batch[: len(results)]
        self.done += len(results)
        if error is not None:
            raise failure from error


def _apply(
    function: Function, events: Sequence[Event], stop: asyncio.Event
) -> tuple[list[Result | None], Exception | None]:
    """The results of the first events: until it is to stop, or the function fails, and how."""
    results: list[Result | None] = []
    for event in events:
        if stop.is_set():
            break
        try:
            results.append(function(event.data))
        except Exception as error:  # noqa: BLE001 - raised by the caller, once what went before is stored
            return results, error
    return results, None
