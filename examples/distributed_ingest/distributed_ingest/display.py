"""What a person sees while it runs, on stderr: bars on a terminal, a line now and then elsewhere; and what goes wrong.

Concurrency: belongs to one event loop; log records may come from any thread.
"""

import logging
import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from distributed_ingest.feed import Reach
from distributed_ingest.tally import Counts
from sluice.exceptions import in_words
from sluice_cli.units import show_size

PLAIN_EVERY_S = 10.0
_RATE_OVER_S = 5.0
_VERBOSE = ("distributed_ingest", "sluice_coordination")
"""Whose log `--verbose` shows."""
_CHATTY = ("opensearch",)
"""Clients that warn of every answer that is not 200, also of those that are expected."""


class Display:
    """Shows how far a job is. As a context it shows bars inside, and takes the log over."""

    def __init__(self, *, bars: bool, verbose: bool) -> None:
        self._console = Console(stderr=True, markup=False, highlight=False, emoji=False)
        self._bars = bars and self._console.is_terminal
        self._verbose = verbose
        self._handler = _Handler(self, verbose=verbose)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[amount]}", markup=False),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._job: TaskID | None = None
        self._node: TaskID | None = None
        self._plain_at = time.monotonic()
        self._rates: list[tuple[float, int]] = []

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self._handler)
        for name in _VERBOSE:
            logging.getLogger(name).setLevel(self._handler.level)
        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.DEBUG if self._verbose else logging.CRITICAL)
        if self._bars:
            self._job = self._progress.add_task("job", total=None, amount="")
            self._node = self._progress.add_task("this node", total=None, amount="")
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars:
            self._progress.stop()
        logging.getLogger().removeHandler(self._handler)
        for name in (*_VERBOSE, *_CHATTY):
            logging.getLogger(name).setLevel(logging.NOTSET)

    def say(self, text: str) -> None:
        """Print a line, above the bars."""
        if self._bars:
            self._progress.console.print(text, soft_wrap=True)
        else:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def show(self, reach: Reach, own: Counts, all_nodes: Counts, busy: int, workers: int, nodes: int) -> None:
        """Show how far it is: the job over all nodes, and what this one has written."""
        job = f"{all_nodes.text()}, {nodes} {'node' if nodes == 1 else 'nodes'}"
        if reach.total is not None:
            job = f"{_amount(reach.done, reach.unit)} of {_amount(reach.total, reach.unit)}; {job}"
        node = f"{own.text()}, {show_size(self._rate(own.bytes))}/s"
        node += f", {busy} of {workers} workers busy" + (f", {own.skipped} left out" if own.skipped else "")
        if self._bars:
            assert self._job is not None and self._node is not None
            self._progress.update(self._job, completed=reach.done, total=reach.total or None, amount=job)
            self._progress.update(self._node, completed=busy, total=workers or None, amount=node)
        elif time.monotonic() - self._plain_at >= PLAIN_EVERY_S:
            self._plain_at = time.monotonic()
            self.say(f"job: {job}; this node: {node}")

    def _rate(self, size: int) -> int:
        """Return bytes per second over the last seconds."""
        now = time.monotonic()
        self._rates = [each for each in self._rates if now - each[0] <= _RATE_OVER_S] + [(now, size)]
        began, before = self._rates[0]
        return round((size - before) / (now - began)) if now > began else 0


class _Handler(logging.Handler):
    """Says what modules log: what went wrong, in one line; with `verbose` everything, and where it came from."""

    def __init__(self, display: Display, *, verbose: bool) -> None:
        super().__init__(logging.DEBUG if verbose else logging.WARNING)
        self._display = display
        self._verbose = verbose
        if verbose:
            self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if self._verbose:
            self._display.say(self.format(record))
            return
        error = record.exc_info[1] if record.exc_info else None
        more = f": {in_words(error)}" if error is not None else ""
        self._display.say(f"{record.levelname.lower()}: {record.getMessage()}{more}")


def _amount(count: int, unit: str) -> str:
    return show_size(count) if unit == "bytes" else f"{count:,} {unit}"
