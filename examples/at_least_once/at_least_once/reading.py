"""Reading several segments side by side, so that one that takes long holds no other up.

Concurrency: a `Reads` belongs to one task.
"""

import asyncio
from collections.abc import Collection, Mapping

from sluice_client import Piece, SegmentStore, read_piece

_LONGEST_WAIT_S = 0.25


class Reads:
    """The next pieces of several segments, read side by side, so that one that takes long delays no other.

    A piece is kept until it is taken. Of those that are ready the one that was begun first comes first, so that
    segments take turns.
    """

    def __init__(self, store: SegmentStore, length: int, patience_s: float) -> None:
        self._store = store
        self._length = length
        self._patience_s = patience_s
        self._begun: dict[str, asyncio.Task[Piece]] = {}

    async def ready(self, positions: Mapping[str, int]) -> list[str]:
        """The segments that can be taken; begins to read the others from their positions, and forgets all but these.

        Waits for what it begins, but not for long: what takes longer is ready at a later call.
        """
        await self._forget(self._begun.keys() - positions.keys())
        missing = positions.keys() - self._begun.keys()
        for segment, offset in positions.items():
            if segment in missing:
                read = read_piece(self._store, segment, offset, self._length, self._patience_s)
                self._begun[segment] = asyncio.create_task(read, name=f"read {segment}")
        if missing:
            await asyncio.wait([self._begun[segment] for segment in missing], timeout=_LONGEST_WAIT_S)
        return [segment for segment, read in self._begun.items() if read.done()]

    def take(self, segment: str) -> Piece:
        """The piece of a segment that is ready. Raises as `read_piece` does."""
        return self._begun.pop(segment).result()

    async def close(self) -> None:
        """Ends what was begun."""
        await self._forget(list(self._begun))

    async def _forget(self, segments: Collection[str]) -> None:
        reads = [self._begun.pop(segment) for segment in segments]
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
