"""Lengths of segments that callers look at, a cut each minute: past rates of streams that nothing else is sampled of.

Kept in this process, of a few streams, so another gateway or a new start knows nothing of them. Belongs to the event
loop.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping

from sluice.domain.ids import StreamId
from sluice.lookback.rate_history import Sample

EVERY_MS = 60_000
MAX_STREAMS = 50
"""Those that were looked at last."""

MAX_LENGTHS = 2_000
"""Of a stream, all cuts together: those of two segments reach back 16 hours."""


class KeptLengths:
    """`now_ms` is the time, epoch ms."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._cuts: OrderedDict[StreamId, deque[Sample]] = OrderedDict()

    def note(self, stream: StreamId, lengths: Mapping[int, int]) -> None:
        """Keep what the stream's segments hold now, in bytes, unless that was done less than a minute ago."""
        at, cuts = self._now_ms(), self._cuts.setdefault(stream, deque())
        self._cuts.move_to_end(stream)
        if cuts and at - cuts[-1].at < EVERY_MS:
            return
        cuts.append(Sample(at, dict(lengths)))
        while sum(len(cut.cut) for cut in cuts) > MAX_LENGTHS and len(cuts) > 1:
            cuts.popleft()
        if len(self._cuts) > MAX_STREAMS:
            self._cuts.popitem(last=False)

    def since(self, stream: StreamId, begin: int) -> list[Sample]:
        """The cuts of a stream from a time on, epoch ms, by time."""
        return [cut for cut in self._cuts.get(stream, ()) if cut.at >= begin]
