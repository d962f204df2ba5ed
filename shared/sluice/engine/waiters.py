"""Who waits for a partition's view: for what it shows, or for the reply to a request.

Belongs to the event loop. Those who wait for a partition that stops get its failure. What they wait for is looked at
where the view changes, because waking up thousands that then go on waiting would cost ten times as much.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Any

from sluice.engine.errors import PartitionFailedError


class Waiters:
    """Those who wait for any partition of one journal."""

    def __init__(self, partitions: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._replies: dict[str, asyncio.Future[Any]] = {}
        self._awaited: list[dict[asyncio.Future[Any], None]] = [{} for _ in range(partitions)]
        self._shown: list[dict[asyncio.Future[None], Callable[[], bool]]] = [{} for _ in range(partitions)]

    @property
    def replies_expected(self) -> int:
        return len(self._replies)

    async def shown(self, partition: int, holds: Callable[[], bool]) -> None:
        """Return after a batch that touched the partition and behind which `holds()` was true.

        Raises PartitionFailedError, and what `holds` raises.
        """
        shown: asyncio.Future[None] = self._loop.create_future()
        self._shown[partition][shown] = holds
        try:
            await shown
        finally:
            del self._shown[partition][shown]

    def reply(self, request: str, partitions: Collection[int]) -> asyncio.Future[Any]:
        """The reply to a request, which takes these partitions; cancel it to forget."""
        reply: asyncio.Future[Any] = self._loop.create_future()
        self._replies[request] = reply
        for partition in partitions:
            self._awaited[partition][reply] = None

        def forget(_: asyncio.Future[Any]) -> None:
            if self._replies.get(request) is reply:
                del self._replies[request]
            for partition in partitions:
                self._awaited[partition].pop(reply, None)

        reply.add_done_callback(forget)
        return reply

    def deliver_reply(self, request: str, reply: Any) -> None:
        """Hand a reply to who waits for it, if anybody does."""
        awaited = self._replies.get(request)
        if awaited is not None and not awaited.done():
            awaited.set_result(reply)

    def wake(self, partitions: Iterable[int]) -> None:
        """These partitions have changed."""
        for partition in partitions:
            for shown, holds in self._shown[partition].items():
                if not shown.done():
                    _look(shown, holds)

    def fail(self, partition: int, failure: PartitionFailedError) -> None:
        """The partition has stopped."""
        for future in (*self._shown[partition], *self._awaited[partition]):
            if not future.done():
                future.set_exception(failure)


def _look(shown: asyncio.Future[None], holds: Callable[[], bool]) -> None:
    try:
        if holds():
            shown.set_result(None)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is for who waits
        shown.set_exception(error)
