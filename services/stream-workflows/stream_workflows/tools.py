"""What the steps of stream-workflows use beside the common tools."""

from collections.abc import Callable, Iterable
from typing import Any

from sluice.domain.commands import Command, ReleaseName
from sluice.domain.decision import Reader
from sluice.domain.scope import find_scope
from sluice.journal.journal import Journal
from sluice.segmentstore.store import SegmentStore
from sluice.workflows.sending import Sender
from sluice.workflows.tools import Tools
from sluice.workflows.waiting import Need


class StreamTools(Tools):
    def __init__(self, store: SegmentStore, journal: Journal, sender: Sender) -> None:
        super().__init__(store, journal)
        self._sender = sender

    async def find_all(self, wanted: Callable[[Any], bool]) -> list[str]:
        """The aggregates whose states are wanted, behind a barrier; looks at every one there is."""
        await self._journal.barrier(range(self._journal.partitions))
        return [name for view in self._journal.views() for name, state in view.aggregates() if wanted(state)]

    async def need_gone(self, needs: Iterable[Need]) -> None:
        """Need what is named here to be gone; what the view does not show may be what it has not yet heard of.

        Raises StillWaiting, JournalError.
        """
        wanted = list(needs)
        unseen = {need.key for need in wanted if need.holds(self.reader(need.key))}
        if unseen:
            await self.catch_up(unseen)
        self.need(wanted)

    async def release(self, commands: Iterable[ReleaseName]) -> None:
        """Need the scope to drop these names."""
        await self.need_gone(_dropped(command) for command in commands)

    async def tell(self, id: str, command: Command) -> None:
        """Have another key carry out a command, without waiting for that. Raises ProduceError."""
        await self._sender.ask(id, command)


def _dropped(command: ReleaseName) -> Need:
    def holds(reader: Reader) -> bool:
        scope = find_scope(reader, command.scope)
        entry = scope.names[command.kind].get(command.name) if scope else None
        return entry is None or entry.incarnation != command.incarnation

    what = f"scope {command.scope} has not yet released the {command.kind.value} {command.name}"
    return Need(what, command.key, holds, command)
