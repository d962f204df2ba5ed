"""How many requests may be open: where there are more, the partitions with the most of them are paused.

So a stuck key has its own partition paused in the end, and those that go on are not held up by it. Of what is
acknowledged behind a stuck request only offsets are remembered, but all of it would be delivered a second time after a
crash: many times as many pause the partition, too.
"""

import logging
from collections.abc import Callable, Collection

log = logging.getLogger(__name__)


BEHIND_PER_OPEN = 10


class FlowControl:
    """`pause(partitions)` is called with all that are paused from then on.

    With more than `max_open` open, those with the most are paused until half of that is left to the others. One goes on
    when that half is all that is open, or when it has no more than its share of it itself.
    """

    def __init__(self, topic: str, max_open: int, pause: Callable[[Collection[int]], None]) -> None:
        self.open = 0
        self._topic = topic
        self._max_open = max_open
        self._max_behind = max_open * BEHIND_PER_OPEN
        self._pause = pause
        self._open_of: dict[int, int] = {}
        self._crowded: set[int] = set()
        self._full: set[int] = set()
        self._paused: frozenset[int] = frozenset()

    def took(self, partition: int, behind_first: int) -> None:
        """One more is open; so many stand at or behind the partition's first open one."""
        self.open += 1
        self._open_of[partition] = self._open_of.get(partition, 0) + 1
        if behind_first > self._max_behind and partition not in self._full:
            self._full.add(partition)
            self._apply()

    def batch_ended(self) -> None:
        """A batch is taken whole. What is paused may still deliver what was on its way."""
        if self.open <= self._max_open:
            return
        running = self._open_of.keys() - self._crowded
        left = sum(self._open_of[partition] for partition in running)
        before = len(self._crowded)
        for partition in sorted(running, key=self._open_of.__getitem__, reverse=True):
            if left <= self._max_open // 2:
                break
            self._crowded.add(partition)
            left -= self._open_of[partition]
        if len(self._crowded) > before:
            self._apply()

    def acknowledged(self, partition: int, behind_first: int) -> None:
        """One is not open any more."""
        self.open -= 1
        self._open_of[partition] -= 1
        if partition in self._full and behind_first <= self._max_behind // 2:
            self._full.discard(partition)
            self._apply()
        self._go_on()

    def gone(self, partition: int) -> None:
        """The partition is not ours any more, with what was open of it."""
        self.open -= self._open_of.pop(partition, 0)
        if partition in self._full or partition in self._crowded:
            self._full.discard(partition)
            self._crowded.discard(partition)
            self._apply()
        self._go_on()

    def _go_on(self) -> None:
        if not self._crowded:
            return
        half = self._max_open // 2
        most = half if self.open <= half else half // len(self._open_of)
        resumed = {partition for partition in self._crowded if self._open_of[partition] <= most}
        if resumed:
            self._crowded -= resumed
            self._apply()

    def _apply(self) -> None:
        paused, were_paused = frozenset(self._full | self._crowded), self._paused
        self._paused = paused
        facts = {"topic": self._topic, "open": self.open, "partitions": sorted(paused)}
        if not were_paused:
            log.warning("partitions wait, too many requests are open", extra=facts)
        elif not paused:
            log.info("no partition waits", extra=facts)
        self._pause(paused)
