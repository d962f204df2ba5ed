"""Calls wait here while the journal is restored or held, so that clients see a slow answer instead of an error.

Only a process that was started meanwhile has this. `max_calls` bounds how many wait: one more is refused with
RESOURCE_EXHAUSTED. One that has waited for `HOLD_S` is refused with UNAVAILABLE, before a Java client's own deadline of
5 minutes. All clients of Pravega try both again (controller-grpc-api 9.2, 10.2). Belongs to the event loop.
"""

import asyncio
from collections.abc import Mapping

from api_gateway.edge.errors import NotServingError
from api_gateway.metrics import HELD
from api_gateway.pravega.handlers import Context, Handler
from sluice.engine.journal import Journal

HOLD_S = 240.0


class Hold:
    """Holds calls until the journal is loaded."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._waiting = 0

    def problem(self) -> str | None:
        """What callers wait for, and how many do, in words; None once they do not."""
        loading = self._journal.loading
        return f"{loading}; {self._waiting} calls wait" if loading is not None else None

    def before(self, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        """These handlers behind the hold."""
        return {rpc: self._behind(handler) for rpc, handler in handlers.items()}

    def _behind(self, handler: Handler) -> Handler:
        async def answer(request: object, context: Context) -> object:
            await self._released()
            return await handler(request, context)

        return answer

    async def _released(self) -> None:
        if self._journal.loaded.is_set():
            return
        self._waiting += 1
        HELD.set(self._waiting)
        try:
            async with asyncio.timeout(HOLD_S):
                await self._journal.loaded.wait()
        except TimeoutError as error:
            raise NotServingError(f"{self._journal.loading}: try again") from error
        finally:
            self._waiting -= 1
            HELD.set(self._waiting)
