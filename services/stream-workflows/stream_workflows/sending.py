"""Passing commands on to other keys: always by request topic, never by a call."""

import asyncio
from collections.abc import Iterable
from uuid import uuid4

from sluice.domain.commands import Command, Create, CreateReserved, JoinCreation
from sluice.messaging.topics import REQUESTS_STREAMS
from sluice.runtime import Runtime


class Sender:
    """Sends commands under the id of the request whose reply they are to bring about; others get an id of their own."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.journal = runtime.journal

    async def send_all(self, request: str, commands: Iterable[Command]) -> None:
        """Return when all are in the topic. Raises ProduceError."""
        sent = []
        for command in commands:
            answers = isinstance(command, CreateReserved | JoinCreation | Create)
            id = request if answers else f"{request}-{type(command).__name__}"
            sent.append(self._runtime.send(REQUESTS_STREAMS, self._runtime.request(id, command)))
        if sent:
            await asyncio.gather(*sent)

    async def ask(self, command: Command) -> None:
        """Send a command whose effect is awaited in the view, not by its reply; each time it is a new request."""
        await self._runtime.send(REQUESTS_STREAMS, self._runtime.request(uuid4().hex, command))
