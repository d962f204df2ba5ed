"""The table of windows: what a record of `sluice.statistics` changes in it. Pure, but that it changes the table.

Windows expire when a progress record of their partition says that their time is over: only records of a partition may
change the part of the table that belongs to it. They are looked for in the whole table at once, for all partitions.
"""

import logging
from collections import defaultdict
from collections.abc import MutableMapping

import msgspec

from sluice.domain.ids import StreamId
from sluice.engine.partition import partition_of
from sluice.insight.statistics import (
    Folded,
    Reported,
    StatisticsProgress,
    StreamStatistics,
    WindowKind,
    fold_report,
    progress_key,
    window_key,
)

log = logging.getLogger(__name__)

EXPIRY_INTERVAL_MS = 60_000

_reported = msgspec.json.Decoder(Reported)
_folded = msgspec.json.Decoder(Folded)
_encoder = msgspec.json.Encoder()


class Windows:
    """Folds reports into a table of at most `most` windows; a report that would open more is dropped.

    `table` maps keys to encoded `Folded`. It is changed only for the partition of the record that is folded.
    `by` is this process as service/instance.
    """

    def __init__(self, table: MutableMapping[bytes, bytes], partitions: int, most: int, by: str) -> None:
        self._table = table
        self._partitions = partitions
        self._most = most
        self._by = by
        self._looked_at = 0
        self._ending: dict[int, list[tuple[int, bytes]]] = {}
        """By partition, the windows whose time was over by the progress when they were looked for, with their ends."""

    def fold(self, value: bytes, offset: int) -> None:
        """Take in the record that stands there in its partition; what cannot be decoded is logged."""
        try:
            fact = _reported.decode(value)
        except msgspec.DecodeError as error:
            log.warning("no report", extra={"error": str(error)})
            return
        if isinstance(fact, StatisticsProgress):
            self._table[progress_key(fact.partition).encode()] = value
            self._expire(fact)
        else:
            self._add(fact, offset)

    def _add(self, report: StreamStatistics, offset: int) -> None:
        for kind in WindowKind:
            key = window_key(report.stream_id, kind, kind.begin(report.minute)).encode()
            present = self._table.get(key)
            if present is None and len(self._table) >= self._most:
                log.warning("statistics dropped: too many windows", extra={"stream": f"{report.scope}/{report.stream}"})
                return
            window = _folded.decode(present) if present is not None else None
            assert not isinstance(window, StatisticsProgress)
            self._table[key] = _encoder.encode(fold_report(window, kind, report, offset, self._by))

    def _expire(self, progress: StatisticsProgress) -> None:
        if abs(progress.at - self._looked_at) >= EXPIRY_INTERVAL_MS:
            self._looked_at = progress.at
            self._ending = self._over_at(progress.at)
        ending = self._ending.get(progress.partition, [])
        self._ending[progress.partition] = [(end, key) for end, key in ending if end > progress.at]
        for end, key in ending:
            if end <= progress.at and key in self._table:
                del self._table[key]

    def _over_at(self, at: int) -> dict[int, list[tuple[int, bytes]]]:
        """By partition, when the time of each window ended that is over at a time."""
        found = defaultdict(list)
        for key in self._table:
            stream, _, rest = key.decode().partition(" ")
            if stream == "progress":
                continue
            kind, _, begin = rest.partition(" ")
            window = WindowKind(kind)
            end = int(begin) + window.length_ms * window.retained
            if end <= at:
                found[self._partition_of(stream)].append((end, key))
        return found

    def _partition_of(self, stream: str) -> int:
        return partition_of(StreamId.of(stream).key, self._partitions)
