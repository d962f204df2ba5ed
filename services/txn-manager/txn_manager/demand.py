"""How many transactions of a stream should be prepared, from when its clients open them. Times in s, of the loop."""

from math import ceil, exp

import msgspec

MIN_PREPARED = 4
"""Of a stream in use, so that the records of a range serve several opens."""


class PreparedLimits(msgspec.Struct, frozen=True):
    """At most `per_stream` and `total` are prepared; 0 of either prepares none.

    They are as many as a stream opens in `horizon_s`. Every `idle_s` what is more than that is discarded, and all of a
    stream that opened none in that time.
    """

    per_stream: int = 256
    total: int = 4096
    horizon_s: float = 4.0
    idle_s: float = 60.0


class Demand:
    """Of one stream. `level` is about the number of opens in the last horizon; it decays exponentially."""

    def __init__(self, limits: PreparedLimits, now_s: float) -> None:
        self.last_open_s = now_s
        self.level = 0.0
        self._limits = limits
        self._opens = 0

    def opened(self, now_s: float) -> None:
        """A client has opened a transaction."""
        since_s = now_s - self.last_open_s
        self._opens = self._opens + 1 if since_s < self._limits.idle_s else 1
        self.level = self.level * exp(-since_s / self._limits.horizon_s) + 1
        self.last_open_s = now_s

    @property
    def wanted(self) -> int:
        """How many should be prepared; none for the first open after a while, which may stay the only one."""
        return min(self._limits.per_stream, max(MIN_PREPARED, ceil(self.level))) if self._opens > 1 else 0

    def idle_for(self, now_s: float) -> float:
        """Until when it is idle: how long it has to be without an open still, in s; not more than 0 if it is."""
        return self.last_open_s + self._limits.idle_s - now_s
