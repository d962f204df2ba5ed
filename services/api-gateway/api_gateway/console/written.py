"""Bytes written in each of the last minutes, to the streams whose cuts are sampled: those with a policy.

A sample says how many bytes were ever written to its stream, so two of them say how many came between. Of each
partition of the topic the last `MOST` records are read, and then what comes; so the hour is there at once, if no
partition has more samples in an hour. A stream that nothing is written to has fewer samples, and no minute waits for
them. Belongs to the event loop.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from api_gateway.edge.following import follow
from sluice.engine.lately import KEPT_MINUTES, MINUTE_MS
from sluice.engine.ports import Message
from sluice.kafka.topics import RETENTION
from sluice.lookback.rate_history import MAX_GAP_MS
from sluice.runtime import Runtime

MOST = 5_000
LATEST = -2000 - MOST
"""Its offset before the end, as librdkafka counts (`RD_KAFKA_OFFSET_TAIL`)."""

WAITED_MS = 3 * MINUTE_MS
"""So long a minute waits for the next sample of a stream that is written to, for those come once a minute."""


class _Size(msgspec.Struct, frozen=True):
    size: int


class _Report(msgspec.Struct, frozen=True):
    """What counts here of a report; see RetentionReport."""

    at: int
    scope: str
    stream: str
    creation_id: str
    sample: _Size | None = None


_decode = msgspec.json.Decoder(_Report).decode


class Written:
    """See the module."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], _Report] = {}
        self._silent: set[tuple[str, str]] = set()
        self._minutes: defaultdict[int, float] = defaultdict(float)
        self._known_from: dict[int, int] = {}
        self._first_ms = 0

    def bytes_by_minute(self, minutes: Iterable[int]) -> list[int | None]:
        """Bytes of each minute that begins at one of these times, epoch ms; None where not all of it is known."""
        newest = max((one.at for one in self._last.values()), default=0)
        # Of one that is silent another sample would have come; while all are, nothing says how late it is.
        times = (
            max(one.at, newest - MINUTE_MS) if stream in self._silent else one.at for stream, one in self._last.items()
        )
        known_from = max([self._first_ms, *self._known_from.values()])
        known_to = min((at for at in times if newest - at < WAITED_MS), default=0)
        return [
            round(self._minutes.get(minute, 0)) if known_from <= minute <= known_to - MINUTE_MS else None
            for minute in minutes
        ]

    def take_in(self, batch: Sequence[Message]) -> None:
        """Take in records of the topic; what is no report is retention-spark's to say."""
        for message in batch:
            if message.error() is not None:
                continue
            try:
                report = _decode(message.value() or b"")
            except msgspec.DecodeError:
                continue
            # A partition that is read from its beginning on is known.
            self._known_from.setdefault(message.partition(), message.timestamp()[1] if message.offset() else 0)
            self._take_in(report)

    def _take_in(self, report: _Report) -> None:
        stream = (report.scope, report.stream)
        if not report.creation_id:
            # There is no such stream any more.
            self._last.pop(stream, None)
            self._silent.discard(stream)
        if report.sample is None:
            return
        before, self._last[stream] = self._last.get(stream), report
        self._first_ms = min(self._first_ms or report.at, report.at)
        self._silent.discard(stream)
        if before is None or before.sample is None or before.creation_id != report.creation_id:
            return
        if before.sample.size == report.sample.size:
            self._silent.add(stream)
        span_ms, grown = report.at - before.at, report.sample.size - before.sample.size
        if 0 < span_ms <= MAX_GAP_MS and grown > 0:
            self._spread(before.at, report.at, grown / span_ms)

    def _spread(self, begin: int, end: int, per_ms: float) -> None:
        """So much was written in each ms of [begin, end)."""
        while begin < end:
            minute = begin - begin % MINUTE_MS
            to = min(minute + MINUTE_MS, end)
            self._minutes[minute] += per_ms * (to - begin)
            begin = to
        if len(self._minutes) > 4 * KEPT_MINUTES:
            latest = sorted(self._minutes)[-2 * KEPT_MINUTES :]
            self._minutes = defaultdict(float, {minute: self._minutes[minute] for minute in latest})


def follow_written(runtime: Runtime) -> Written:
    """Listens as long as the service lives."""
    written = Written()
    begins = dict.fromkeys(range(runtime.journal.partitions), LATEST)
    follow(runtime, "written", RETENTION.name, begins, written.take_in)
    return written
