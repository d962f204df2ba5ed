"""The clocks of a process: the one that measures spans, the one on the wall, and that of the event loop.

Spans are measured with a clock that also counts while the machine is suspended; the event loop's own does not, so a
timer of it may fire late and code that acts on a deadline reads `now` again. Functions without state.
"""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """The time as one process sees it."""

    def now(self) -> float:
        """Seconds since some moment; never set, and going on while the machine sleeps."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, as far as the machine knows; may be wrong and may step."""

    def loop_time(self, at: float) -> float:
        """When the running event loop's clock will show that `now` is `at`."""


class SystemClock:
    """The clocks of the machine."""

    def now(self) -> float:
        """See Clock."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall_ms(self) -> int:
        """See Clock."""
        return time.time_ns() // 1_000_000

    def loop_time(self, at: float) -> float:
        """See Clock."""
        return asyncio.get_running_loop().time() + at - self.now()


SYSTEM_CLOCK = SystemClock()


async def sleep_until(clock: Clock, at: float) -> None:
    """Return when the clock shows that time, or at once if it has passed."""
    await asyncio.sleep(clock.loop_time(at) - asyncio.get_running_loop().time())
