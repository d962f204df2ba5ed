"""Up to where reports are in what is remembered *and saved*: from there the next driver reads them.

Reports that come a second time change nothing. So the position is that before the batch in which the oldest change was
made that is not saved yet. Belongs to the query's thread in the driver.
"""

from collections import deque
from collections.abc import Collection, Mapping

from sluice.workflows.report_buckets import Outcome

APART_MS = 10_000


class ReadPosition:
    """Of one run of a query; `begin` is where it began to read, by partition."""

    def __init__(self, begin: Mapping[int, int]) -> None:
        self._read = dict(begin)
        self._saved = dict(begin)
        self._before: deque[tuple[int, dict[int, int]]] = deque()
        """Batches that have read something: their times, and where they began. Some stand for those behind them."""
        self._unsaved: dict[int, int] = {}

    def observe(self, outcomes: Collection[Outcome]) -> None:
        """A batch has ended, and what was to be saved of it is."""
        ends: dict[int, int] = {}
        for outcome in outcomes:
            ends |= {partition: max(end, ends.get(partition, 0)) for partition, end in outcome.ends.items()}
            if outcome.unsaved_since is None:
                self._unsaved.pop(outcome.bucket, None)
            else:
                self._unsaved[outcome.bucket] = outcome.unsaved_since
        if ends:
            at = max(outcome.at for outcome in outcomes)
            if not self._before or at - self._before[-1][0] >= APART_MS:
                self._before.append((at, self._read))
            self._read = self._read | ends
        oldest = min(self._unsaved.values(), default=None)
        if oldest is None:
            self._before.clear()
        while len(self._before) > 1 and self._before[1][0] <= (oldest or 0):
            self._before.popleft()
        self._saved = self._before[0][1] if self._before else self._read

    def saved(self) -> Mapping[int, int]:
        """Before this, all reports are in what is saved."""
        return self._saved
