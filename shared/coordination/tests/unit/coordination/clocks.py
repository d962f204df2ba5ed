"""Clocks that a test sets, or that go with the loop, and settings of nodes that look often."""

import asyncio

from sluice_coordination import LeaseSettings, NodeSettings

LEASE = LeaseSettings(lease_s=10, margin_s=2)
QUICK = NodeSettings(workers=2, look_s=0.2, keep_done_s=5, lease=LEASE)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at, self.wall = 100.0, 0

    def now(self) -> float:
        return self.at

    def wall_ms(self) -> int:
        return self.wall

    def loop_time(self, at: float) -> float:
        return at


class LoopClock(Clock):
    """The event loop's clock."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()
