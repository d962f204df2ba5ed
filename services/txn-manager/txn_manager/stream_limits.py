"""How many steps on the segments of streams are carried out at once: so many of one stream, so many of all.

So those of a stream whose segment store is silent leave room for those of others. Belongs to the event loop.
"""

import asyncio
from weakref import WeakValueDictionary

from sluice.engine.runner import Limit


class StreamLimits:
    """`of_one` steps of one stream at once, and `of_all` of all streams together."""

    def __init__(self, of_one: int, of_all: int) -> None:
        self._of_one = of_one
        self._shared = asyncio.Semaphore(of_all)
        self._own: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, key: str) -> Limit:
        """What bounds the steps of the stream with this key."""
        own = self._own.get(key)
        if own is None:
            own = self._own[key] = asyncio.Semaphore(self._of_one)
        return _Both(own, self._shared)


class _Both(Limit):
    """A place of a stream together with one of all."""

    def __init__(self, own: asyncio.Semaphore, shared: asyncio.Semaphore) -> None:
        self._own = own
        self._shared = shared

    async def __aenter__(self) -> None:
        await self._own.acquire()
        try:
            await self._shared.acquire()
        except BaseException:
            self._own.release()
            raise

    async def __aexit__(self, *_error: object) -> None:
        self._shared.release()
        self._own.release()
