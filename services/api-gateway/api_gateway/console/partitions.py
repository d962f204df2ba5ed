"""How far the consumers of requests are, for pages: Kafka is read while a page shows it, at most every two seconds.

A thread does that, one at a time; all pages that want it meanwhile get the same answer. Belongs to the event loop.
"""

import asyncio

import msgspec

from sluice.engine.ports import Clock, GroupProgress, PartitionProgress
from sluice.kafka.group_progress import GroupsUnavailableError

FRESH_MS = 2_000
HELD_S = 30.0
"""For how long connections to Kafka are held when no page shows it."""


class Progress(msgspec.Struct, frozen=True):
    """What Kafka said at `at`, epoch ms."""

    items: list[PartitionProgress]
    at: int


class Partitions:
    """What `fetch` gives, shared for a moment."""

    def __init__(self, fetch: GroupProgress, clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._last: Progress | None = None
        self._failure = ""
        self._failed_at = 0
        self._turn = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None

    async def progress(self) -> Progress:
        """Not older than `FRESH_MS`, and so is a failure: those who waited for it do not wait anew, one by one.

        Raises GroupsUnavailableError.
        """
        async with self._turn:
            now = self._clock.now_ms()
            if self._failure and now - self._failed_at < FRESH_MS:
                raise GroupsUnavailableError(self._failure)
            if self._last is None or now - self._last.at >= FRESH_MS:
                self._hold()
                self._last = Progress(await self._fetched(now), now)
            return self._last

    async def _fetched(self, now: int) -> list[PartitionProgress]:
        self._failure = ""
        try:
            return await asyncio.to_thread(self._fetch.fetch, now)
        except GroupsUnavailableError as error:
            self._failure, self._failed_at = str(error), self._clock.now_ms()
            raise

    async def stop(self) -> None:
        """Hold no connections any more."""
        if self._closing is not None:
            self._closing.cancel()
        await self._close()

    async def _close(self) -> None:
        async with self._turn:
            await asyncio.to_thread(self._fetch.close)

    def _hold(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
        self._closing = asyncio.get_running_loop().create_task(self._close_later(), name="partitions")

    async def _close_later(self) -> None:
        await asyncio.sleep(HELD_S)
        await self._close()
