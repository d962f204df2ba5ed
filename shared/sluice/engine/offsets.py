"""Which requests of an owned partition are acknowledged. All below the position is; the position is what is committed.

The position is also the partition's floor: every request below it is decided, or needs no decision.
"""

from collections import deque

import msgspec

from sluice.engine.record import Mark, Source


class Offsets:
    """`appended` is when the broker appended those that are not acknowledged, in epoch ms."""

    def __init__(self) -> None:
        self.appended: deque[int] = deque()
        self.position: int | None = None
        """None until the first request came: then nothing is known, and nothing to commit."""
        self._epoch = -1
        self._waiting: deque[Mark] = deque()
        self._done: set[int] = set()

    def took(self, mark: Mark, appended_ms: int) -> None:
        """A request came. They come in the order of their offsets; see `runs_backwards`."""
        if self.position is None:
            self._epoch, self.position = mark
        self._waiting.append(mark)
        self.appended.append(appended_ms)

    def runs_backwards(self, offset: int) -> bool:
        """Whether a request stands where others were before: the topic has lost its end, or is read a second time."""
        return self.position is not None and offset < (self._waiting[-1][1] + 1 if self._waiting else self.position)

    @property
    def floor(self) -> Mark:
        """Below which all requests are decided, or need no decision."""
        return self._epoch, self.position or 0

    @property
    def open(self) -> int:
        """How many are not acknowledged."""
        return len(self._waiting) - len(self._done)

    @property
    def behind_first(self) -> int:
        """How many stand at or behind the first that is not acknowledged."""
        return len(self._waiting)

    def acknowledge(self, offset: int) -> bool:
        """Whether it was open."""
        waiting, done = self._waiting, self._done
        if not waiting or not waiting[0][1] <= offset <= waiting[-1][1] or offset in done:
            return False
        done.add(offset)
        while waiting and waiting[0][1] in done:
            self._epoch, first = waiting.popleft()
            self.appended.popleft()
            done.discard(first)
            self.position = first + 1
        return True


class Origin(msgspec.Struct, frozen=True):
    """Where a request comes from, for the rule against duplicates; `offsets` are those that delivered it."""

    source: Source
    offsets: Offsets
