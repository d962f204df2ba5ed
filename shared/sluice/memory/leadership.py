"""Who decides by policies, in memory: the member that has waited longest leads. What it saves outlives it."""

from collections.abc import Mapping

from sluice.engine.ports import NotLeaderError


class MemoryLeaders:
    """The group that members of a system lead in turn."""

    def __init__(self) -> None:
        self.members: list[MemoryLeadership] = []
        self.terms = 0
        self.positions: dict[tuple[str, int], int] = {}

    def depose(self) -> None:
        """As when the leader is missed: the next one leads, and it waits behind all others."""
        self.members.append(self.members.pop(0))
        self.terms += 1


class MemoryLeadership:
    """See Terms."""

    def __init__(self, leaders: MemoryLeaders) -> None:
        self._leaders = leaders

    @property
    def term(self) -> int:
        """See Terms."""
        return self._leaders.terms if self._leaders.members[:1] == [self] else 0

    def problem(self) -> str | None:
        """See Terms."""
        return None

    def start(self) -> None:
        """See Terms."""
        self._leaders.terms += not self._leaders.members
        self._leaders.members.append(self)

    async def stop(self) -> None:
        """See Terms."""
        self._leaders.terms += bool(self.term)
        self._leaders.members.remove(self)

    async def read_positions(self, topic: str, partitions: int) -> Mapping[int, int]:
        """See Terms."""
        saved = self._leaders.positions
        return {partition: saved[topic, partition] for partition in range(partitions) if (topic, partition) in saved}

    async def save_positions(self, term: int, topic: str, positions: Mapping[int, int]) -> None:
        """See Terms."""
        if not term or term != self.term:
            raise NotLeaderError("another instance leads by now")
        self._leaders.positions.update({(topic, partition): at for partition, at in positions.items()})
