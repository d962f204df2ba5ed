"""Between which times a group is reading a stream, by the watermarks that the controller makes of its writers' times.

They stand in the stream's mark stream. Those that the group has passed are read once, one after the other, up to the
first that it has not: reading goes on there the next time. Rules: background-and-other-workflows 3.6.
"""

from collections import deque
from contextlib import aclosing

import msgspec

from sluice.domain.segment import parse_segment_name
from sluice.domain.stream.upper_bound import Watermark
from sluice.pravega.reader_group_state import Ranges
from sluice.pravega.stream_cut import Offsets
from sluice.pravega.watermarks import decode_watermark
from sluice_client.revision import Revision
from sluice_client.revisioned_stream import RevisionedStream

_ALL_KEYS = 0.0, 1.0


class TimeWindow(msgspec.Struct, frozen=True):
    """Times in the writers' own unit: a group has passed where all writers had noted `lower`, and not so `upper`.

    None is no bound: no such time is known yet.
    """

    lower: int | None
    upper: int | None


class TimeWindows:
    """Those of one stream, for positions that only go forward. Belongs to one task."""

    def __init__(self, marks: RevisionedStream) -> None:
        self._marks = marks
        self._read_to = Revision(marks.segment, 0)
        self._ahead: deque[Watermark] = deque()
        self._lower: int | None = None

    async def at(self, positions: Offsets, ranges: Ranges) -> TimeWindow:
        """The window when a group is at these positions. Raises as `RevisionedStream.read`; MalformedPayload."""
        while self._ahead and _order(positions, ranges, self._ahead[0]) > 0:
            self._lower = self._ahead.popleft().lower
        if not self._ahead or _order(positions, ranges, self._ahead[-1]) == 0:
            await self._read_on(positions, ranges)
        return TimeWindow(self._lower, self._ahead[-1].upper if self._ahead else None)

    async def _read_on(self, positions: Offsets, ranges: Ranges) -> None:
        # Of what was truncated the controller knows that no reader needs it.
        start = max(self._read_to, await self._marks.head())
        async with aclosing(self._marks.read(start)) as entries:
            async for revision, entry in entries:
                mark = decode_watermark(entry)
                self._read_to, order = revision, _order(positions, ranges, mark)
                if order > 0:
                    self._lower = mark.lower
                else:
                    self._ahead.append(mark)
                if order < 0:
                    return


def _order(positions: Offsets, ranges: Ranges, mark: Watermark) -> int:
    """Above 0 if the positions lie behind a watermark, below 0 if before it; 0 if some do, and some do not, or none.

    They are compared where they have the same keys, of which a segment of an unknown range may have any.
    """
    marked = {segment.id: offset for segment, offset in mark.cut.items()}
    behind = before = False
    for name, position in positions.items():
        id, offset = parse_segment_name(name)[2], float("inf") if position < 0 else position
        if id in marked:
            behind, before = behind or offset > marked[id], before or offset < marked[id]
            continue
        low, high = ranges.get(name, _ALL_KEYS)
        others = [segment.id for segment in mark.cut if segment.low < high and low < segment.high]
        behind, before = behind or any(id > other for other in others), before or any(id < other for other in others)
    return behind - before
