"""Log lines of tests that show all that was logged, as those of the services do."""

import logging

from sluice.telemetry.logs import extra_of


class WithExtra(logging.Formatter):
    """As another formatter, with what the code gave as `extra` at the end of the first line."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        first, *others = self._inner.format(record).split("\n", maxsplit=1)
        shown = (f"{name}={value!r}" for name, value in extra_of(record).items())
        return "\n".join((" ".join((first, *shown)), *others))
