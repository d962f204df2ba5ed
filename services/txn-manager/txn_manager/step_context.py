"""What the steps of this service's workflows are given."""

from functools import partial

from sluice.engine.journal import Journal
from sluice.pravega.store import SegmentStore
from sluice.workflows.step_context import StepContext
from txn_manager.aged_merge import creation_time
from txn_manager.early_answers import EarlyAnswers


class TransactionStepContext(StepContext):
    """`lengths` and `creation_times` are those of segments that are about to be merged.

    `deleted` has, by the commits of a stream, up to which of its batches this process has deleted what they skipped.
    """

    def __init__(self, store: SegmentStore, journal: Journal) -> None:
        super().__init__(store, journal)
        self.now_ms = journal.clock.now_ms
        self.lengths = EarlyAnswers(store.segment_info)
        self.creation_times = EarlyAnswers(partial(creation_time, store))
        self.deleted: dict[str, int] = {}
