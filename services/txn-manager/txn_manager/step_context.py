"""What the steps of this service's workflows are given."""

from sluice.domain.decision import Reader
from sluice.engine.journal import Journal
from sluice.pravega.store import SegmentStore
from txn_manager.early_lengths import EarlyLengths


class TransactionStepContext:
    """The segment stores, and the view.

    `lengths` are those of segments that are about to be merged. `deleted` has, by the commits of a stream, up to which
    of its batches this process has deleted what they skipped.
    """

    def __init__(self, store: SegmentStore, journal: Journal) -> None:
        self.store = store
        self.lengths = EarlyLengths(store)
        self.deleted: dict[str, int] = {}
        self._journal = journal

    def reader(self, key: str) -> Reader:
        return self._journal.reader(key)
