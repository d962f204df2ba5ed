"""What the steps of workflows use: the segment stores, the view, and other keys by request.

Waiting for another key means: send it the request, then look at the view until it shows the effect; the request is
sent again when that takes long, because the one before may have met a process that died.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from sluice.domain.commands import Command
from sluice.domain.decision import Reader
from sluice.segmentstore.store import SegmentStore
from sluice.workflows.sending import Sender

ASK_AGAIN_S = 2.0


class Tools:
    """What steps of any service have; a service whose steps need more adds it in a class of its own."""

    def __init__(self, store: SegmentStore, sender: Sender) -> None:
        self.store = store
        self._sender = sender

    def reader(self, key: str) -> Reader:
        return self._sender.journal.reader(key)

    async def ask_until(self, command: Command, holds: Callable[[Reader], bool]) -> None:
        """Have another key carry out a command; return when its view shows what `holds` looks for."""
        while not holds(self.reader(command.key)):
            await self._sender.ask(command)
            await self.wait(command.key, holds)

    async def catch_up(self, key: str) -> None:
        """Have the key's view hold all that was acknowledged before this call."""
        await self._sender.journal.barrier([self._sender.journal.partition_of(key)])

    async def ask(self, command: Command) -> None:
        await self._sender.ask(command)

    async def wait(self, key: str, holds: Callable[[Reader], bool]) -> None:
        """Return when the key's view is as wanted, or after a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(ASK_AGAIN_S):
                await self._sender.journal.until(key, holds)
