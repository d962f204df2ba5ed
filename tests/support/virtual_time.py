"""Time for tests of asyncio code: it stands still while there is work, then leaps to the next timer."""

import asyncio
from collections.abc import Coroutine
from typing import Any

LONGEST_S = 24 * 3600.0


class StuckError(Exception):
    """What the test waits for does not come: no timer will bring it, or a whole day did not."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock only its timers move. For code without threads and sockets."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__()

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready:  # type: ignore[attr-defined]
            timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
            self._now = max(self._now, min(timers, default=LONGEST_S))
            if self._now >= LONGEST_S:
                raise StuckError
        super()._run_once()  # type: ignore[misc]


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test to its end in virtual time; what it left running is cancelled."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work)
