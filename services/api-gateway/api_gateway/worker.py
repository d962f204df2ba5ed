"""A thread for what would hold the event loop: it works on what nothing changes any more, one piece after the other.

Whatever it does competes with the event loop for the interpreter, so there is one of it, and what waits has a bound.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from api_gateway.errors import OverloadedError

T = TypeVar("T")

MAX_WAITING = 20


class Worker:
    """Belongs to the event loop that calls `run`; the thread starts with the first work."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "worker")
        self._waiting = 0

    async def run(self, work: Callable[[], T]) -> T:
        """What the work returns or raises. Raises OverloadedError at once if too much waits."""
        if self._waiting == MAX_WAITING:
            raise OverloadedError(f"{MAX_WAITING} calls wait for the worker, no more may")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._waiting -= 1
