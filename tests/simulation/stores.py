"""The segment stores of the simulation: those in memory, which fail, are slow, and remember everything ever stored.

What was truncated or deleted is kept aside, so that the whole content of a segment can be judged in the end.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, ClassVar

from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import InMemorySegmentStore, MemorySegment, Moment, Writers
from sluice.pravega.wire import segments
from sluice.pravega.wire.command import Command, Numbered

_FAILURES = (Failure.TIMED_OUT, Failure.CLOSED_BY_PEER, Failure.LOST, Failure.NO_ROUTE)


class Stores(InMemorySegmentStore):
    """`failing` is the share of requests that fail, before or after their effect, `slow_s` the longest delay.

    `touch` gets every request from the process that makes it. `past` has what segments do not hold any more, `deleted`
    the greatest length that a segment had when it was deleted. `on_measured` gets the name of a segment whose length
    was just answered.
    """

    def __init__(self, random: Random, clock_ms: Callable[[], int], touch: Callable[[str], None]) -> None:
        super().__init__(self._fate, clock_ms)
        self.random = random
        self.failing = 0.0
        self.slow_s = 0.0
        self.past: dict[str, bytes] = {}
        self.deleted: dict[str, int] = {}
        self.merges: list[tuple[str, str, int]] = []
        """Targets, sources and how many bytes those had."""
        self.on_measured: Callable[[str], None] = lambda _name: None
        self._stale: dict[str, tuple[int, bool]] = {}
        self.under_way = 0
        """Requests that are not answered yet."""
        self._touch = touch

    async def call(self, request: Numbered, timeout_s: float | None, writers: Writers | None = None) -> Command:
        self.under_way += 1
        try:
            return await super().call(request, timeout_s, writers)
        finally:
            self.under_way -= 1

    def lose_containers(self) -> None:
        """From now on a store that has lost them answers now and then for transactions: as they are at this moment."""
        self._stale = {name: (s.length, s.sealed) for name, s in self.segments.items() if "#transaction." in name}

    def find_containers(self) -> None:
        """No store answers any more that should not."""
        self._stale = {}

    def whole(self, name: str) -> bytes:
        """All that was ever stored in a segment."""
        segment = self.segments.get(name)
        return self.past.get(name, b"") + (segment.data if segment is not None else b"")

    def everything(self) -> dict[str, bytes]:
        """The whole content of every segment there ever was, merged ones apart."""
        return {name: self.whole(name) for name in {**self.past, **self.segments}}

    def _fate(self, moment: Moment, request: str, _segment: str) -> Awaitable[None] | None:
        self._touch(f"{moment} {request}")
        random = self.random
        if self.failing and random.random() < self.failing / 2:
            raise ConnectionFailure(random.choice(_FAILURES))
        if self.slow_s and random.random() < 0.3:
            return asyncio.sleep(random.random() * self.slow_s)
        return asyncio.sleep(0.002) if random.random() < 0.1 else None

    def _answer(self, request: Any, name: str, writers: Writers) -> Command:
        if isinstance(request, segments.GetStreamSegmentInfo):
            stale = self._stale.get(name)
            if stale is not None and self.random.random() < 0.7:
                length, sealed = stale
                return segments.StreamSegmentInfo(request.request_id, name, True, sealed, False, 0, length, 0)
        answer = super()._answer(request, name, writers)
        if isinstance(answer, segments.StreamSegmentInfo):
            self.on_measured(name)
        return answer

    def _merge_recorded(self, request: segments.MergeSegmentsBatch, target: MemorySegment) -> Command:
        present = {name: self.segments[name].length for name in request.sources if name in self.segments}
        answer = self._merge(request, target)
        self.merges += [(request.segment, name, size) for name, size in present.items() if name not in self.segments]
        return answer

    def _truncate_recorded(self, request: segments.TruncateSegment, segment: MemorySegment) -> Command:
        before = segment.data
        answer = self._truncate(request, segment)
        kept = before[: len(before) - len(segment.data)]
        if kept:
            self.past[request.segment] = self.past.get(request.segment, b"") + kept
        return answer

    def _delete_recorded(self, request: segments.DeleteSegment, segment: MemorySegment) -> Command:
        self.past[request.segment] = self.past.get(request.segment, b"") + segment.data
        self.deleted[request.segment] = max(segment.length, self.deleted.get(request.segment, 0))
        return self._delete(request, segment)

    ANSWERS: ClassVar[dict[type[Command], Callable[..., Any]]] = {
        **InMemorySegmentStore.ANSWERS,
        segments.MergeSegmentsBatch: _merge_recorded,
        segments.TruncateSegment: _truncate_recorded,
        segments.DeleteSegment: _delete_recorded,
    }
