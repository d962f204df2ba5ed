"""A thread for what would hold the event loop: it works on what nothing changes any more, one piece after the other.

Whatever it does competes with the event loop for the interpreter, so there is one of it, and what waits has a bound,
of which one principal has its share.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from api_gateway.edge.shares import Shares

T = TypeVar("T")

MAX_WAITING = 20


class Worker:
    """Belongs to the event loop that calls `run`; the thread starts with the first work."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "worker")
        self._shares = Shares(MAX_WAITING, "calls for the worker")

    async def run(self, work: Callable[[], T]) -> T:
        """What the work returns or raises. Raises OverloadedError or QuotaExceededError at once if too much waits."""
        with self._shares.taken():
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
