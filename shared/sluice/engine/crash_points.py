"""Named points at which a test lets the process die as by kill -9: what comes next must not depend on being reached."""

import os
import signal

_passed: set[str] = set()


class CrashPoints:
    """Kills this process at the point called `chosen`; with an empty name it does nothing.

    With a signal behind the name, as in `sent:SIGSTOP`, it gets that one: once, so that it goes on when it is woken.
    """

    def __init__(self, chosen: str) -> None:
        self._chosen, _, signal_name = chosen.partition(":")
        self._signal = signal.Signals[signal_name or "SIGKILL"]

    def passed(self, point: str) -> None:
        if point == self._chosen and point not in _passed:
            _passed.add(point)
            os.kill(os.getpid(), self._signal)
