"""Writers in processes of their own: what one prints says how far it is, a line on its input ends it.

The client `pravega` keeps Python's lock while it waits for anything: in the process of the tests nothing else would run
as long as a service or a segment store is away.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Self, TextIO

from sluice_local import launch
from support.wait import SOON_S


class WritingProcess:
    """A process that ends with this one at the latest; begins at once. As a context it is gone after."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.said_at: list[float] = []
        """When each line came, on the monotonic clock."""
        launcher = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]
        self._process = subprocess.Popen(
            [*launcher, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=str(Path(__file__).parents[1]),
        )
        self._reader = threading.Thread(target=self._read, name=f"reads {name}", daemon=True)
        self._reader.start()

    def receive(self, line: str) -> None:
        """Take what it printed."""
        raise NotImplementedError

    def progress(self) -> str:
        """How far it is."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def has_failed(self) -> bool:
        return bool(self._process.poll())

    def stop(self) -> None:
        """Have it end after what it is at."""
        if self.running:
            assert self._process.stdin is not None
            self._process.stdin.write("stop\n")
            self._process.stdin.flush()

    def wait(self, deadline_s: float) -> None:
        """Wait for the end; fail if there is none in time or if writing failed."""
        try:
            status = self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name}: not ended in {deadline_s} s, {self.progress()}") from None
        # What it printed at last may not be read yet.
        self._reader.join(SOON_S)
        assert not self._reader.is_alive(), f"{self.name}: its output has no end"
        assert status == 0, f"{self.name}: {status}, {self.progress()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._reader.join(5)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said_at.append(time.monotonic())
            self.receive(line)


def longest_silence(times: Sequence[float], since: float) -> float:
    """The longest time between two of them that follow each other, in seconds, which ended behind `since`."""
    return max(after - before for before, after in pairwise(times) if after > since)


def program(name: str, *arguments: str) -> list[str]:
    """The command of a program of this folder."""
    return [sys.executable, "-m", f"support.{name}", *arguments]


def own_output() -> TextIO:
    """In the program, at its begin: the standard output for itself alone.

    What its libraries print goes to the standard error: the client prints too, in the middle of a line if need be.
    """
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return output


def on_stop(stop: Callable[[], object]) -> None:
    """In the program: called once a line comes on the input."""

    def listen() -> None:
        if sys.stdin.readline():
            stop()

    threading.Thread(target=listen, daemon=True).start()
