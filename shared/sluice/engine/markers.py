"""Markers: the offsets at which all followers of a journal partition compare how they have judged what is before.

Two followers that judge an entry differently are the one defect that must never be silent. Each keeps its outcome hash
behind the last markers, and every marker brings its proposer's hash behind the one before it. Hashes that have parted
do not meet again: so a marker at which both agree says that they agree on everything before, and takes a difference
back. Belongs to the event loop.
"""

import logging
from collections import deque

from sluice.engine.record import Marker
from sluice.telemetry import metrics

log = logging.getLogger(__name__)

FOLD_FORMAT = 1
"""Grows with every change of the fold rule, or of what events do to states: only equal ones compare."""

_REMEMBERED = 8
"""Markers behind which the own hash is known. A proposer names the last one it has folded, which is seldom older."""


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
        self._passed: deque[tuple[int, str]] = deque(maxlen=_REMEMBERED)

    def passed(self, offset: int, timestamp_ms: int, outcome_hash: int) -> None:
        """The follower's hash is this behind the marker at `offset`, which the log took at that time (epoch ms)."""
        self.last, self.last_ms = offset, timestamp_ms
        self._passed.append((offset, in_hex(outcome_hash)))

    def next(self) -> Marker:
        """What to propose now."""
        return Marker(FOLD_FORMAT, *(self._passed[-1] if self._passed else (-1, "")))

    def compare(self, marker: Marker, offset: int, by: str) -> None:
        """Compare with what the proposer `by` found, as the marker at `offset` says."""
        own = dict(self._passed).get(marker.previous)
        if marker.format != FOLD_FORMAT or own is None:
            return
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
