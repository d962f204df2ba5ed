"""How slow the machine is while a test waits: what a limit on a time is widened by, where it is the product's own.

A machine that stands still for a second makes everything that is under way a second longer. So beside what is measured
something else is done all the time that goes the same way, and the longest that it took is the measure.
"""

import threading
import time
from collections.abc import Callable
from typing import Self

_ENDS_S = 120.0


class Pace(threading.Thread):
    """Takes the same step again and again; as a context it does inside, and has ended its last step after.

    `longest_s`: the longest that a step took. A step that raises ends it, and shows when the context is left.
    """

    def __init__(self, step: Callable[[], object]) -> None:
        super().__init__(name="pace", daemon=True)
        self.longest_s = 0.0
        self._step = step
        self._done = threading.Event()
        self._error: Exception | None = None

    @property
    def longest_ms(self) -> int:
        return round(self.longest_s * 1000)

    def run(self) -> None:
        began = time.monotonic()
        # No pause between two steps in which the machine could stand still unseen.
        while not self._done.is_set():
            try:
                self._step()
            except Exception as error:  # noqa: BLE001 - raised again by the thread that waits
                self._error = error
                return
            began, before = time.monotonic(), began
            self.longest_s = max(self.longest_s, began - before)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._done.set()
        self.join(_ENDS_S)
        if kind is None:
            assert not self.is_alive(), f"a step goes on after {_ENDS_S:g} s"
            if self._error is not None:
                raise self._error
            assert self.longest_s > 0.0
