"""What the steps of stream-workflows use beside the common tools."""

from sluice.domain.commands import ReleaseName
from sluice.domain.decision import Reader
from sluice.domain.scope import find_scope
from sluice.workflows.tools import Tools


class StreamTools(Tools):
    async def release(self, command: ReleaseName) -> None:
        """Have the scope drop a name."""

        def dropped(reader: Reader) -> bool:
            scope = find_scope(reader, command.scope)
            entry = scope.names[command.kind].get(command.name) if scope else None
            return entry is None or entry.incarnation != command.incarnation

        await self.ask_until(command, dropped)
