"""The reports of load by which streams scale: as a segment store makes them, but of seconds instead of minutes.

A real store averages over 2 to 20 minutes and then keeps quiet for ten: a test would not wait for that. Here a segment
is looked at every few seconds: more than its target rate is a report to split it, less than half to merge it. One to
which nothing is written is reported once. Rules: segment-store-cluster A9, B10. Belongs to the event loop.
"""

import asyncio
import logging
from dataclasses import dataclass
from uuid import uuid4

from sluice.domain.config import ScaleType
from sluice.domain.ids import StreamId
from sluice.domain.names import REQUEST_STREAM, SYSTEM_SCOPE
from sluice.domain.segment import parse_segment_name, segment_name
from sluice.domain.stream.traffic import Direction, Traffic
from sluice.engine.ports import Clock
from sluice.pravega.auto_scale_reports import encode_report
from sluice.pravega.errors import SegmentStoreError
from sluice.pravega.memory import InMemorySegmentStore, MemorySegment
from sluice.pravega.store import EVENT_COUNT_ATTRIBUTE

log = logging.getLogger(__name__)

REPORTS = segment_name(SYSTEM_SCOPE, REQUEST_STREAM, 0)


@dataclass
class _Seen:
    """What had been written to a segment, when that was seen, and whether its silence was reported."""

    written: float
    at_ms: int
    silent: bool = False


class LoadReports:
    """Looks at all segments of a store whose streams scale by load."""

    def __init__(self, store: InMemorySegmentStore, clock: Clock, interval_s: float) -> None:
        self._store = store
        self._clock = clock
        self._interval_s = interval_s
        self._seen: dict[str, _Seen] = {}
        self._writer = uuid4()
        self._number = 0

    async def run(self) -> None:
        """Report for ever."""
        while True:
            await asyncio.sleep(self._interval_s)
            for report, seen in self._look():
                self._number += 1
                try:
                    await self._store.append(
                        REPORTS, self._writer, encode_report(report, self._number), event_number=self._number
                    )
                    seen.silent = report.silent
                except SegmentStoreError as error:
                    log.warning("load not reported", extra={"report": repr(report), "error": str(error)})

    def _look(self) -> list[tuple[Traffic, _Seen]]:
        before, self._seen = self._seen, {}
        found, now_ms = [], self._clock.now_ms()
        for name, segment in self._store.segments.items():
            if segment.scale_type == ScaleType.FIXED.code or segment.sealed or segment.table is not None:
                continue
            seen = self._seen[name] = _Seen(_written(segment), now_ms)
            last = before.get(name)
            if last is None:
                continue
            seen.silent = last.silent and seen.written == last.written
            rate = (seen.written - last.written) * 1000 / (now_ms - last.at_ms)
            report = _report(name, segment.target_rate, rate, now_ms)
            if report is not None and not seen.silent:
                found.append((report, seen))
        return found


def _report(name: str, target: int, rate: float, at_ms: int) -> Traffic | None:
    scope, stream, id, _ = parse_segment_name(name)
    if rate > target:
        return Traffic(StreamId(scope, stream), id, Direction.UP, at_ms, max(2, int(rate // max(1, target))), False)
    if rate < target / 2:
        return Traffic(StreamId(scope, stream), id, Direction.DOWN, at_ms, 0, rate == 0)
    return None


def _written(segment: MemorySegment) -> float:
    """In events, or in KB, as the segment's target counts them."""
    if segment.scale_type == ScaleType.EVENTS.code:
        return float(segment.attributes.get(EVENT_COUNT_ATTRIBUTE, 0))
    return segment.length / 1024
