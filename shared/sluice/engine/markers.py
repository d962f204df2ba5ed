"""Markers: the offsets at which all followers of a journal partition compare how they have judged what is before.

Two followers that judge an entry differently are the one defect that must never be silent. Each keeps its outcome hash
behind the last markers, and every marker brings its proposer's hash behind the one before it. Hashes that have parted
do not meet again: so a marker at which both agree says that they agree on everything before, and takes a difference
back. Belongs to the event loop.
"""

import logging

import msgspec

from sluice.engine.record import Marker
from sluice.telemetry import metrics

log = logging.getLogger(__name__)

FOLD_FORMAT = 1
"""Grows with every change of the fold rule, or of what events do to states: only equal ones compare."""

_REMEMBERED = 64
"""Markers that are known. A proposer names the last one it has folded, and the keeper those of the last snapshots."""


class _Passed(msgspec.Struct, frozen=True):
    """A marker: the id of the record, and the own hash behind it."""

    id: str
    outcome_hash: str


class PartitionMarkers:
    """The markers of one partition as this follower has passed them; `last` is the offset of the last one, or -1.

    `difference` says where another follower judged differently, None if none is known; `agreed` is the last marker at
    which another one judged alike, or -1.
    """

    def __init__(self, partition: int) -> None:
        self.last = -1
        self.last_ms = 0
        self.difference: str | None = None
        self._partition = partition
        self.agreed = -1
        self._passed: dict[int, _Passed] = {}

    def passed(self, offset: int, id: str, timestamp_ms: int, outcome_hash: int) -> None:
        """The follower's hash is this behind the marker at `offset`, which the log took at that time (epoch ms)."""
        self.last, self.last_ms = offset, timestamp_ms
        self._passed[offset] = _Passed(id, in_hex(outcome_hash))
        if len(self._passed) > _REMEMBERED:
            del self._passed[next(iter(self._passed))]

    def has(self, offset: int, id: str) -> bool:
        """Whether this follower has passed that record as a marker, or began behind it."""
        known = self._passed.get(offset)
        return known is not None and known.id == id

    def next(self) -> Marker:
        """What to propose now."""
        known = self._passed.get(self.last)
        return Marker(FOLD_FORMAT, self.last, known.outcome_hash if known is not None else "")

    def compare(self, marker: Marker, offset: int, by: str) -> None:
        """Compare with what the proposer `by` found, as the marker at `offset` says."""
        known = self._passed.get(marker.previous)
        if marker.format != FOLD_FORMAT or known is None:
            return
        own = known.outcome_hash
        if own == marker.outcome_hash:
            self.difference, self.agreed = None, marker.previous
            return
        self.difference = (
            f"partition {self._partition}: {by} judged a record differently, behind offset {self.agreed} and up to "
            f"the marker at {marker.previous}: its outcome hash there is {marker.outcome_hash}, here it is {own}"
        )
        metrics.JOURNAL_DIFFERENCES.inc()
        log.critical(
            "records judged differently",
            extra={
                "partition": self._partition,
                "marker": marker.previous,
                "agreed": self.agreed,
                "by": by,
                "theirs": marker.outcome_hash,
                "ours": own,
                "reported_at": offset,
            },
        )


def in_hex(outcome_hash: int) -> str:
    return f"{outcome_hash:016x}"
