"""What the steps of workflows use: the segment stores, the view, and what they need of other keys."""

from collections.abc import Iterable

from sluice.domain.decision import Reader
from sluice.journal.journal import Journal
from sluice.segmentstore.store import SegmentStore
from sluice.workflows.waiting import Need, StillWaiting


class Tools:
    """What steps of any service have; a service whose steps need more adds it in a class of its own."""

    def __init__(self, store: SegmentStore, journal: Journal) -> None:
        self.store = store
        self._journal = journal

    def reader(self, key: str) -> Reader:
        return self._journal.reader(key)

    def need(self, needs: Iterable[Need]) -> None:
        """Go on only if the view shows all of it. Raises StillWaiting, and then the step is carried out again."""
        lacking = [need for need in needs if not need.holds(self.reader(need.key))]
        if lacking:
            raise StillWaiting(lacking)

    async def catch_up(self, keys: Iterable[str]) -> None:
        """Have the view of these keys hold all that was acknowledged before this call. Raises JournalError."""
        await self._journal.barrier({self._journal.partition_of(key) for key in keys})
