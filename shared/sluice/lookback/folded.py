"""Partitions of the journal that were folded once, for jobs that want a moment near to one that others wanted.

What is kept is the captured state, which is bytes: so its size is known, and no two jobs share a view. Methods may be
called by several threads.
"""

import threading
import time
from collections.abc import Callable

import msgspec

from sluice.domain.model import DomainModel
from sluice.engine.capture import Part
from sluice.engine.fold import PartitionView

MAX_BYTES = 256 * 1024 * 1024
KEPT_S = 300.0

_PART_BYTES = 240
"""What a part takes beside its name and its value."""

PartitionId = tuple[str, int]
"""The id of the journal's topic, and the number of the partition."""


class _Folded(msgspec.Struct):
    partition: PartitionId
    offset: int
    parts: tuple[Part, ...]
    bytes: int
    used_s: float


class FoldedPartitions:
    """At most `max_bytes` of captured states, each kept for `kept_s` after it was used last."""

    def __init__(
        self, max_bytes: int = MAX_BYTES, kept_s: float = KEPT_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_bytes = max_bytes
        self._kept_s = kept_s
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[tuple[PartitionId, int], _Folded] = {}

    @property
    def bytes(self) -> int:
        """How much is kept."""
        return sum(one.bytes for one in self._kept.values())

    def nearest(self, partition: PartitionId, offset: int) -> PartitionView:
        """A view of the partition, folded to this offset or to one before it; an empty one if nothing is kept."""
        with self._lock:
            self._forget_old()
            fitting = [one for one in self._kept.values() if one.partition == partition and one.offset <= offset]
            found = max(fitting, key=lambda one: one.offset, default=None)
            if found is not None:
                found.used_s = self._clock()
        view = PartitionView(DomainModel())
        if found is not None:
            view.restore(found.parts)
        return view

    def keep(self, partition: PartitionId, view: PartitionView) -> bool:
        """Whether there was room for the view's state: what was used longest ago goes for it."""
        key = partition, view.next_offset
        with self._lock:
            if (present := self._kept.get(key)) is not None:
                present.used_s = self._clock()
                return True
        parts = tuple(view.capture())
        size = sum(_PART_BYTES + len(part.name) + len(part.value) for part in parts)
        if size > self._max_bytes:
            return False
        with self._lock:
            self._kept[key] = _Folded(partition, view.next_offset, parts, size, self._clock())
            self._forget_old()
            oldest = sorted(self._kept, key=lambda one: self._kept[one].used_s)
            for other in oldest:
                if self.bytes <= self._max_bytes:
                    break
                if other != key:
                    del self._kept[other]
        return True

    def _forget_old(self) -> None:
        oldest_s = self._clock() - self._kept_s
        for key in [key for key, one in self._kept.items() if one.used_s < oldest_s]:
            del self._kept[key]
