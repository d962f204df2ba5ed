"""Sending commands to other keys: always by request topic, never by a call."""

from sluice.domain.commands import Command
from sluice.kafka.topics import topic_of
from sluice.runtime import Runtime


class Sender:
    """Sends commands to the keys that they belong to, by the topic of those who decide them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def send(self, id: str, command: Command) -> None:
        """Send a command whose effect is awaited in the view, not by its reply. Raises SendError."""
        await self._runtime.send(topic_of(command), self._runtime.request(id, command))
