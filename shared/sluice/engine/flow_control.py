"""How many requests an instance remembers: where it is more, the partitions with the most of them are paused.

A request is remembered until it and all before it are acknowledged, and all that are would be delivered a second time
after a crash. So a stuck request has its own partition paused in the end, and those that go on are not held up by it.
"""

import logging
from collections.abc import Callable, Collection

log = logging.getLogger(__name__)


class FlowControl:
    """`pause(partitions)` is called with all that are paused from then on.

    Those that are not paused have at most `most` between them, but for the last batch. Some are paused until the rest
    has half of that. One goes on when that leaves them with half, or when it has no more than its share of the half.
    """

    def __init__(self, topic: str, most: int, pause: Callable[[Collection[int]], None]) -> None:
        self.open = 0
        """Requests that are not acknowledged."""
        self._topic = topic
        self._most = most
        self._pause = pause
        self._behind_first: dict[int, int] = {}
        """How many of each partition stand at or behind its first open one."""
        self._paused: set[int] = set()

    def took(self, partition: int, behind_first: int) -> None:
        """One more of the partition is open."""
        self.open += 1
        self._behind_first[partition] = behind_first

    def batch_ended(self) -> None:
        """A batch is taken whole."""
        running = self._running
        if running <= self._most:
            return
        for partition in self._by_size(self._behind_first.keys() - self._paused, largest_first=True):
            self._paused.add(partition)
            running -= self._behind_first[partition]
            if running <= self._most // 2:
                break
        log.warning("partitions wait, too many requests are open", extra=self._facts)
        self._pause(frozenset(self._paused))

    def acknowledged(self, partition: int, behind_first: int) -> None:
        """One of the partition is not open any more."""
        self.open -= 1
        self._behind_first[partition] = behind_first
        if self._paused:
            self._go_on()

    def gone(self, partition: int, open_ones: int) -> None:
        """The partition is not ours any more, and so many that were open."""
        self.open -= open_ones
        self._behind_first.pop(partition, None)
        if partition in self._paused:
            self._paused.discard(partition)
            self._pause(frozenset(self._paused))
        if self._paused:
            self._go_on()

    def _go_on(self) -> None:
        half, running = self._most // 2, self._running
        share, before = half // len(self._behind_first), len(self._paused)
        for partition in self._by_size(self._paused):
            size = self._behind_first[partition]
            if size > share and running + size > half:
                break
            self._paused.discard(partition)
            running += size
        if len(self._paused) < before:
            log.info("partitions go on", extra=self._facts)
            self._pause(frozenset(self._paused))

    @property
    def _running(self) -> int:
        return sum(size for partition, size in self._behind_first.items() if partition not in self._paused)

    def _by_size(self, partitions: Collection[int], *, largest_first: bool = False) -> list[int]:
        return sorted(partitions, key=self._behind_first.__getitem__, reverse=largest_first)

    @property
    def _facts(self) -> dict[str, object]:
        return {"topic": self._topic, "open": self.open, "paused": sorted(self._paused)}
