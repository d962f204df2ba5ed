"""Passing commands on to other keys: always by request topic, never by a call."""

import asyncio
from collections.abc import Iterable

from sluice.domain.commands import Command, ConfirmStreamName, ReleaseStreamName
from sluice.messaging.topics import REQUESTS_STREAMS
from sluice.runtime import Runtime


class Sender:
    """Sends commands under the id of the request they serve; notices between keys get an id of their own."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.journal = runtime.journal

    async def send_all(self, request: str, commands: Iterable[Command]) -> None:
        """Return when all are in the topic. Raises ProduceError."""
        sent = []
        for command in commands:
            notice = isinstance(command, ConfirmStreamName | ReleaseStreamName)
            id = f"{request}-{type(command).__name__}" if notice else request
            sent.append(self._runtime.send(REQUESTS_STREAMS, self._runtime.request(id, command)))
        if sent:
            await asyncio.gather(*sent)
