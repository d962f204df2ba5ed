"""What the steps of stream-workflows use beside what all steps have."""

from collections.abc import Awaitable

from sluice.domain.commands import Command
from sluice.domain.decision import Decision
from sluice.engine.journal import Journal
from sluice.engine.proposer import Decide
from sluice.kafka.sending import RequestSender
from sluice.pravega.store import SegmentStore
from sluice.workflows.step_context import StepContext


class StreamStepContext(StepContext):
    def __init__(self, store: SegmentStore, journal: Journal, sender: RequestSender) -> None:
        super().__init__(store, journal)
        self._sender = sender

    def propose(self, key: str, decide: Decide) -> Awaitable[Decision | None]:
        """Record something in another partition. Raises JournalError."""
        return self._journal.propose(key, decide)

    async def send(self, id: str, command: Command) -> None:
        """Have another key carry out a command, without waiting for that. Raises SendError."""
        await self._sender.send(id, command)
