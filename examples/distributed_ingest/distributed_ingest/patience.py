"""To try again what did not work: so many times, or for as long as a lock lasts.

Concurrency: belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from sluice_coordination import StoreUnavailableError

log = logging.getLogger(__name__)
T = TypeVar("T")

PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Between attempts at what the outside world may be in the way of: to write, to read a file."""
ASK_AGAIN_S = 0.2


async def tried(
    act: Callable[[], Awaitable[T]],
    failure: type[Exception],
    pauses_s: Sequence[float],
    tell: Callable[[Exception], None],
) -> T:
    """Do it, and once more after each pause when it fails in that way; raise what it fails with at last.

    `tell` is called with each failure, the last one too.
    """
    for pause_s in (*pauses_s, None):
        try:
            return await act()
        except failure as error:
            tell(error)
            if pause_s is None:
                raise
        await asyncio.sleep(pause_s)
    raise AssertionError("the last attempt returns or raises")


async def until_answered(ask: Callable[[], Awaitable[T]], check: Callable[[], None]) -> T:
    """Ask the store until it answers, as long as `check` raises nothing. The call may be made more than once."""
    while True:
        check()
        try:
            return await ask()
        except StoreUnavailableError as error:
            log.debug("the store is called again: %s", error)
        await asyncio.sleep(ASK_AGAIN_S)
