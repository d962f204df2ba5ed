"""What the steps of stream-workflows use beside the common tools."""

from collections.abc import Callable
from typing import Any

from sluice.domain.commands import ReleaseName
from sluice.domain.decision import Reader
from sluice.domain.scope import find_scope
from sluice.workflows.tools import Tools


class StreamTools(Tools):
    async def find_all(self, wanted: Callable[[Any], bool]) -> list[str]:
        """The aggregates whose states are wanted, behind a barrier; looks at every one there is."""
        journal = self._sender.journal
        await journal.barrier(range(journal.partitions))
        return [name for view in journal.views() for name, state in view.aggregates() if wanted(state)]

    async def release(self, command: ReleaseName) -> None:
        """Have the scope drop a name."""

        def dropped(reader: Reader) -> bool:
            scope = find_scope(reader, command.scope)
            entry = scope.names[command.kind].get(command.name) if scope else None
            return entry is None or entry.incarnation != command.incarnation

        await self.ask_until(command, dropped)
