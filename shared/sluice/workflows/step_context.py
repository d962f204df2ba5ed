"""What the steps of workflows are given: the segment stores, the view, and what they need of other keys."""

from collections.abc import Iterable

from sluice.engine.dependencies import DependenciesPending, Dependency
from sluice.engine.fold import PartitionView
from sluice.engine.journal import Journal
from sluice.pravega.store import SegmentStore


class StepContext:
    """What steps of any service have; a service whose steps need more adds it in a class of its own."""

    def __init__(self, store: SegmentStore, journal: Journal) -> None:
        self.store = store
        self._journal = journal

    def reader(self, key: str) -> PartitionView:
        return self._journal.reader(key)

    def require(self, dependencies: Iterable[Dependency]) -> None:
        """Go on only if the view shows all of it. Raises DependenciesPending: the step is carried out once more."""
        unmet = [dependency for dependency in dependencies if not dependency.holds(self.reader(dependency.key))]
        if unmet:
            raise DependenciesPending(unmet)

    async def catch_up(self, keys: Iterable[str]) -> None:
        """Have the view of these keys hold all that was acknowledged before this call. Raises JournalError."""
        await self._journal.barrier({self._journal.partition_of(key) for key in keys})
