"""Long work on the event loop in slices: whenever one is over, other tasks run.

For what reads states of the views, which only the event loop may do. What is read of a state is taken out before the
next pause: it may change meanwhile.
"""

import asyncio

SLICE_S = 0.005


class Slices:
    """Belongs to one task; the first slice begins when this is made."""

    def __init__(self, slice_s: float = SLICE_S) -> None:
        self._loop = asyncio.get_running_loop()
        self._slice_s = slice_s
        self._end = self._loop.time() + slice_s

    def is_over(self) -> bool:
        """Whether it is time for a pause."""
        return self._loop.time() >= self._end

    async def pause(self) -> None:
        """Let other tasks run; the next slice begins behind that."""
        await asyncio.sleep(0)
        self._end = self._loop.time() + self._slice_s
