"""What the steps of this service's workflows are given."""

from sluice.engine.journal import Journal
from sluice.pravega.store import SegmentStore
from sluice.workflows.step_context import StepContext
from txn_manager.early_lengths import EarlyLengths


class TransactionStepContext(StepContext):
    """`lengths` are those of segments that are about to be merged.

    `deleted` has, by the commits of a stream, up to which of its batches this process has deleted what they skipped.
    """

    def __init__(self, store: SegmentStore, journal: Journal) -> None:
        super().__init__(store, journal)
        self.lengths = EarlyLengths(store)
        self.deleted: dict[str, int] = {}
