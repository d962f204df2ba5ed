"""Passing commands on to other keys: always by request topic, never by a call."""

import asyncio
from collections.abc import Iterable

from sluice.domain.commands import Command, CreateReserved
from sluice.messaging.topics import topic_of
from sluice.runtime import Runtime


class Sender:
    """Sends commands to the keys that they belong to, by the topic of those who decide them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def send_all(self, request: str, commands: Iterable[Command]) -> None:
        """Pass a request on, under its own id: where it goes it is answered. Return when all are in the topic.

        The creation that a name was reserved for has the id of the request that has reserved it. Raises ProduceError.
        """
        ids = ((c.incarnation if isinstance(c, CreateReserved) else request, c) for c in commands)
        await asyncio.gather(*(self._send(id, command) for id, command in ids))

    async def ask(self, id: str, command: Command) -> None:
        """Send a command whose effect is awaited in the view, not by its reply. Raises ProduceError."""
        await self._send(id, command)

    def _send(self, request: str, command: Command) -> asyncio.Future[None]:
        return self._runtime.send(topic_of(command), self._runtime.request(request, command))
