"""How many requests may be open: more pause the whole topic, more behind a stuck one pause its partition alone.

Those behind a stuck request are remembered only, but all of them would be delivered a second time after a crash.
"""

import logging
from collections.abc import Callable, Collection

log = logging.getLogger(__name__)


class FlowControl:
    """`pause(partitions)` is called with what is paused from then on; None is everything."""

    def __init__(self, topic: str, max_open: int, pause: Callable[[Collection[int] | None], None]) -> None:
        self.open = 0
        self._topic = topic
        self._max_open = max_open
        self._pause = pause
        self._everything = False
        self._full: set[int] = set()

    def took(self, partition: int, behind_first: int) -> None:
        """One more is open; so many stand at or behind the partition's first open one."""
        self.open += 1
        if behind_first > self._max_open and partition not in self._full:
            self._full.add(partition)
            log.warning("partition waits for a record", extra={"topic": self._topic, "partition": partition})
            self._apply()

    def batch_ended(self) -> None:
        if self.open > self._max_open and not self._everything:
            self._everything = True
            log.warning("topic waits: too many requests are open", extra={"topic": self._topic, "open": self.open})
            self._apply()

    def acknowledged(self, partition: int, behind_first: int) -> None:
        self.open -= 1
        if partition in self._full and behind_first <= self._max_open // 2:
            self._full.discard(partition)
            self._apply()
        self._resume_if_room()

    def dropped(self, count: int) -> None:
        """So many open ones are not ours any more."""
        self.open -= count
        self._resume_if_room()

    def gone(self, partitions: Collection[int]) -> None:
        if not self._full.isdisjoint(partitions):
            self._full.difference_update(partitions)
            self._apply()

    def assigned(self) -> None:
        """New partitions are paused like the others."""
        if self._everything:
            self._apply()

    def _resume_if_room(self) -> None:
        if self._everything and self.open <= self._max_open // 2:
            self._everything = False
            log.info("topic goes on", extra={"topic": self._topic, "open": self.open})
            self._apply()

    def _apply(self) -> None:
        self._pause(None if self._everything else frozenset(self._full))
